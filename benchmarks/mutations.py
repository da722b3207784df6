"""Ways to damage a file: bytes, text, JSON, archives, safetensors. Used by ``fuzz.py``."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

Mutation = Callable[[random.Random, bytes], bytes]

NUMBERS = [0, -1, 1, 2, 7, 255, 2**31, 2**53, 2**63, 10**20, 10**400, -(10**20)]
VALUES: list[Any] = [
    None,
    True,
    False,
    "",
    "x",
    "0",
    "1e999",
    "nan",
    "=1+1",
    "../../etc/passwd",
    "/dev/zero",
    "\0",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [[]],
    {"a": 1},
    [None],
    ["x"],
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    *NUMBERS,
]
WORDS = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b",",
    b";",
    b"\t",
    b"{",
    b"[",
    b"nan",
    b"inf",
    b"-1",
    b"1e999",
    b"99999999999999999999",
    b"NA",
    b"train",
    b"=1+1",
    b"../../x",
    b"\xf0\x9f\xa6\x84",
    b"[" * 5000,
]


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at, length = rng.randint(0, len(data)), rng.choice((1, 1, 2, 4, 8, 64, len(data) // 2))
        piece = data[at : at + length]
        kind = rng.randrange(6)
        if kind == 0:
            flipped = bytes(byte ^ (1 << rng.randrange(8)) for byte in piece[:4])
            data = data[:at] + flipped + data[at + len(flipped) :]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + piece + data[at:]
        elif kind == 3:
            data = data[:at] + rng.choice(WORDS) + data[at:]
        elif kind == 4:
            data = data[:at] + rng.randbytes(min(length, 64)) + data[at + length :]
        else:
            data = data[:at]
    return data


def mutate_text(rng: random.Random, data: bytes) -> bytes:
    """Lines and cells of a table or a settings file."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    separator = rng.choice((b",", b"\t", b"=", b" "))
    cells = lines[at].split(separator)
    kind = rng.randrange(7)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif kind == 2:
        cells[rng.randrange(len(cells))] = rng.choice(WORDS)
    elif kind == 3:
        cells.append(rng.choice(WORDS))
    elif kind == 4:
        del cells[rng.randrange(len(cells))]
    elif kind == 5:
        rng.shuffle(cells)
    else:
        return mutate_bytes(rng, data)
    if kind >= 2:
        lines[at] = separator.join(cells)
    return b"\n".join(lines)


def mutate_value(rng: random.Random, value: Any) -> Any:
    """One place of a plain value changed."""
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        places = list(value) if isinstance(value, dict) else range(len(value))
        place = rng.choice(list(places))
        changed: Any = dict(value) if isinstance(value, dict) else list(value)
        if rng.random() < 0.15:
            del changed[place]
        else:
            changed[place] = mutate_value(rng, value[place])
        if isinstance(changed, dict) and rng.random() < 0.1:
            changed[rng.choice(("magic", "", "name", "x" * 300))] = rng.choice(VALUES)
        return changed
    if isinstance(value, int) and rng.random() < 0.5:
        return rng.choice((value + 1, -value, value * 1000, *NUMBERS))
    return rng.choice(VALUES)


def mutate_json(rng: random.Random, data: bytes) -> bytes:
    """A JSON file, as a value or as text."""
    if rng.random() < 0.2:
        return mutate_bytes(rng, data)
    value = json.loads(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = mutate_value(rng, value)
    return json.dumps(value).encode()


def mutate_estimator(rng: random.Random, data: bytes) -> bytes:
    """Mostly what ``run.json`` says of an estimator, which is a small part of it."""
    if rng.random() < 0.3:
        return mutate_json(rng, data)
    info = json.loads(data)
    for _ in range(rng.choice((1, 1, 2))):
        info["estimator"] = mutate_value(rng, info["estimator"])
    return json.dumps(info).encode()


def mutate_gz(rng: random.Random, data: bytes) -> bytes:
    """The text inside of a compressed file that is whole."""
    return gzip.compress(mutate_text(rng, gzip.decompress(data)), 1, mtime=0)


def mutate_json_lines(rng: random.Random, data: bytes) -> bytes:
    """A file of JSON Lines."""
    if rng.random() < 0.3:
        return mutate_text(rng, data)
    lines = data.rstrip(b"\n").split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = mutate_json(rng, lines[at])
    return b"\n".join(lines) + b"\n"


def mutate_npz(rng: random.Random, data: bytes) -> bytes:
    """The archive, or a member of it in an archive that is whole."""
    if rng.random() < 0.4:
        return mutate_bytes(rng, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    head = rng.random() < 0.6  # the first bytes are the header
    part = members[name][:128] if head else members[name]
    members[name] = mutate_bytes(rng, part) + (members[name][128:] if head else b"")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, content in members.items():
            archive.writestr(key, content)
    return stream.getvalue()


def mutate_safetensors(rng: random.Random, data: bytes) -> bytes:
    """The header as JSON, with the length that it then has, or any bytes."""
    if rng.random() < 0.4:
        return mutate_bytes(rng, data)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    inner = header.get("__metadata__", {}).get("json")
    if inner and rng.random() < 0.6:
        header["__metadata__"]["json"] = json.dumps(mutate_value(rng, json.loads(inner)))
    else:
        header = mutate_value(rng, header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]
