"""What can happen to a table on its way to a reader: to its columns, its text or its bytes."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable

Columns = dict[str, list[str]]
"""Names and texts of a table, all of one length."""

NASTY = (
    "", " ", "NA", "NaN", "null", "None", "-", "?", "inf", "-inf", "1e308", "-1e308", "1e-320",
    "1e400", "9" * 30, "9" * 400, "-0", "007", "0x1F", "1_000", "1,234.56", "1.234,56",
    "1.234.567", "12 %", "%", "€ 5", "$-3", "(12)", "1e5e5", "٣٤", "½", "true", "FALSE", "yes",
    "n", "2020-02-30", "31/12/2021", "12/31/2021", "0000-00-00", "9999-12-31", "99999-01-01",
    "2021-01-01T25:61:00Z", "1970-01-01 00:00:00+99:99", "a|b", "|", "a|", ",", ";", "\t", '"',
    '""', '"a', "'", "\\", "\n", "\r\n", "\x00", "\x1a", "\ufeff", "\u2028", "\u202e", "é",
    "e\u0301", "😀", "\ud7ff", "x" * 2000, "=1+1", "<script>", "../../etc/passwd", "%s%n", "{0}",
    "node_id", "p1", "p1 ", "P1", "train", "tset", "unknown", "-1", "1", "0", "1.0",
    "18446744073709551616", "-9223372036854775809",
)  # fmt: skip
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7", "utf-8-sig", "cp500")
NAMES = (
    "", " ", "id", "ID", "Unnamed: 0", "source", "target", "dst", "split", "fold", "train_mask",
    "graph", "label", "weight", "<node>", "a" * 500, "a\nb", "'", "é", "0", "node",
)  # fmt: skip


# --- what happens to columns -------------------------------------------------------------------


def odd_cells(rng: random.Random, columns: Columns) -> Columns:
    for _ in range(rng.choice((1, 1, 3, 20))):
        name = rng.choice(list(columns))
        column = list(columns[name])
        if column:
            column[rng.randrange(len(column))] = rng.choice(NASTY)
        columns[name] = column
    return columns


def odd_column(rng: random.Random, columns: Columns) -> Columns:
    name = rng.choice([*columns, "extra"])
    size = len(next(iter(columns.values())))
    choice = rng.sample(NASTY, rng.choice((1, 2, 10)))
    return columns | {name: [rng.choice(choice) for _ in range(size)]}


def long_column(rng: random.Random, columns: Columns) -> Columns:
    """Huge or tiny numbers everywhere."""
    name = rng.choice(list(columns))
    power = rng.choice((30, 38, 39, 300, 308, -300))
    return columns | {name: [f"{rng.uniform(-9, 9):.3f}e{power}" for _ in columns[name]]}


def drop_column(rng: random.Random, columns: Columns) -> Columns:
    columns.pop(rng.choice(list(columns)))
    return columns


def rename_column(rng: random.Random, columns: Columns) -> Columns:
    old = rng.choice(list(columns))
    new = rng.choice((*NAMES, *columns))
    return {new if name == old else name: texts for name, texts in columns.items()}


def swap_columns(rng: random.Random, columns: Columns) -> Columns:
    names = list(columns)
    rng.shuffle(names)
    return {name: columns[name] for name in names}


def copy_rows(rng: random.Random, columns: Columns) -> Columns:
    size = len(next(iter(columns.values())))
    rows = sorted([*range(size), *(rng.randrange(size) for _ in range(3))]) if size else []
    return {name: [texts[row] for row in rows] for name, texts in columns.items()}


def drop_rows(rng: random.Random, columns: Columns) -> Columns:
    size = len(next(iter(columns.values())))
    rows = rng.sample(range(size), size - min(size, rng.choice((1, 3, 10, size))))
    return {name: [texts[row] for row in sorted(rows)] for name, texts in columns.items()}


def wide(rng: random.Random, columns: Columns) -> Columns:
    size = len(next(iter(columns.values())))
    return columns | {f"x{i}": [str(rng.random()) for _ in range(size)] for i in range(300)}


COLUMN_STEPS: dict[str, Callable[[random.Random, Columns], Columns]] = {
    step.__name__: step
    for step in (
        odd_cells, odd_column, long_column, drop_column, rename_column, swap_columns, copy_rows,
        drop_rows, wide,
    )
}  # fmt: skip


# --- what happens to a text --------------------------------------------------------------------


def separator(rng: random.Random, text: str) -> str:
    return text.replace(",", rng.choice((";", "\t", "|", " ", ":", "\x01", "")))


def line_ends(rng: random.Random, text: str) -> str:
    ending = rng.choice(("\r\n", "\r", "\n\n", "\n\r", "\x0b", "\u2028", ""))
    return text.replace("\n", ending, rng.choice((-1, 1, 5)))


def encoding(rng: random.Random, text: str) -> str:
    """Written in one encoding: the bytes are told apart later, each as a character."""
    data = text.encode(rng.choice(ENCODINGS), "replace")
    return data.decode("utf-8", "surrogateescape")


def quotes(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(('"', '""', '"\n', ',"', '",', "'", '\\"')) + text[at:]
    return text


def texts_inside(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((1, 3))):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(NASTY) + text[at:]
    return text


def lines(rng: random.Random, text: str) -> str:
    """Lines that are lost, doubled, exchanged, empty, comments, or without their last cells."""
    rows = text.split("\n")
    for _ in range(rng.choice((1, 2, 6))):
        at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
        what = rng.randrange(6)
        if what == 0 and len(rows) > 1:
            rows.pop(at)
        elif what == 1:
            rows.insert(at, rows[at])
        elif what == 2:
            rows[at], rows[other] = rows[other], rows[at]
        elif what == 3:
            rows.insert(at, rng.choice(("", "# a comment", ",,,", "   ", "sep=;")))
        elif what == 4:
            rows[at] = rows[at].rpartition(",")[0]
        else:
            rows[at] += rng.choice((",", ",x", ",,,,"))
    return "\n".join(rows)


TEXT_STEPS: dict[str, Callable[[random.Random, str], str]] = {
    step.__name__: step for step in (separator, line_ends, encoding, quotes, texts_inside, lines)
}


# --- what happens to bytes ---------------------------------------------------------------------


def flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 30)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def numbers_inside(rng: random.Random, data: bytes) -> bytes:
    """Four or eight bytes that readers may take for a size."""
    size = rng.choice((1, 4, 8))
    value = rng.choice(
        (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, rng.getrandbits(64))
    )
    at = rng.randrange(len(data) + 1)
    return data[:at] + (value % 2 ** (8 * size)).to_bytes(size, "little") + data[at + size :]


def cut(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return rng.choice((data[:at], data[at:], data[: len(data) - rng.randrange(12)]))


def insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 2, 16, 500))
    new = rng.choice(
        (b"\x00" * size, b'"' * size, b"\xff" * size, rng.randbytes(size), b"\n" * size)
    )
    return data[:at] + new + data[at:]


def swap_blocks(rng: random.Random, data: bytes) -> bytes:
    a, b, c = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def repeat_block(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:b] + data[a:b] * rng.choice((1, 1, 20)) + data[b:]


def blank_block(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:a] + rng.choice((b"", b"\x00", b" ", b"\xff")) * (b - a) + data[b:]


def other_format(rng: random.Random, data: bytes) -> bytes:
    """What is in the file is not what its name says."""
    packed = gzip.compress(data, mtime=0)
    return rng.choice(
        (packed, b"", b"PAR1", b"ARROW1\x00\x00", b"PAR1" + data, b"<html>", rng.randbytes(200))
    )


BYTE_STEPS: dict[str, Callable[[random.Random, bytes], bytes]] = {
    step.__name__: step
    for step in (
        flip,
        numbers_inside,
        cut,
        insert,
        swap_blocks,
        repeat_block,
        blank_block,
        other_format,
    )
}
