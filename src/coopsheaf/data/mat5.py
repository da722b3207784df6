"""Read matrices of numbers from a MATLAB 5 file.

scipy's reader trusts the lengths in a file and crashes the interpreter on damaged ones; this one
knows full and sparse matrices of real numbers only and checks every length before it uses it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coopsheaf.data.tensors import reading, rule

HEADER = 128  # bytes
MAX_BYTES = 1 << 29  # of one matrix after decompression
MATRIX, COMPRESSED = 14, 15
SPARSE_CLASS = 5
NUMBER_CLASSES = range(6, 16)  # double, single, then integers of 8 to 64 bits
COMPLEX = 0x08
NUMBERS = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}  # fmt: skip


class Sparse(NamedTuple):
    """A sparse matrix by its entries, column by column."""

    shape: tuple[int, int]
    rows: np.ndarray  # (entries,)
    columns: np.ndarray  # (entries,)
    values: np.ndarray  # (entries,)


def read_mat(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray | Sparse]:
    """The matrices of these names; other variables are not even decoded."""
    with reading(path, "a MATLAB 5 file"):
        data = path.read_bytes()
        order = {b"IM": "<", b"MI": ">"}.get(data[HEADER - 2 : HEADER])
        if order is None or data.startswith(b"MATLAB 7.3"):
            raise ValueError("its header is of another format")
        found: dict[str, np.ndarray | Sparse] = {}
        others = []
        for kind, body in _elements(data[HEADER:], order):
            if kind == COMPRESSED:
                kind, body = next(_elements(_decompress(body), order))
            if kind == MATRIX:
                parts = _elements(body, order)
                # flags, dimensions, name, content
                flags, shape, name = next(parts)[1], _shape(next(parts)[1], order), next(parts)[1]
                text = name.decode("ascii")
                others.append(text)
                if text in names:
                    with reading(path, f"a MATLAB 5 file of real matrices; {text}"):
                        found[text] = _matrix(flags, shape, parts, order)
        missing = [name for name in names if name not in found]
        have = ", ".join(others[:10]) or "none"
        rule(path, not missing, f"must have the variable {', '.join(missing)}", have)
        return found


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """The (type, content) pairs that some bytes consist of."""
    at = 0
    if not data:
        raise ValueError("it ends too early")
    while at < len(data):
        first, size = struct.unpack_from(order + "II", data, at)
        if first >> 16:  # a short one: type, length and content in eight bytes
            kind, size, start, end = first & 0xFFFF, first >> 16, at + 4, at + 8
            if size > 4:
                raise ValueError(f"a short element of {size} bytes")
        else:
            kind, start = first, at + 8
            # Content is padded to eight bytes, but not around compressed elements.
            end = start + size + (0 if kind == COMPRESSED else -size % 8)
        if start + size > len(data):
            raise ValueError(f"it ends within an element of {size} bytes")
        yield kind, data[start : start + size]
        at = end


def _decompress(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    content = stream.decompress(data, MAX_BYTES)
    if not stream.eof:
        raise ValueError(f"a compressed element is cut off or has more than {MAX_BYTES} bytes")
    return content


def _shape(data: bytes, order: str) -> tuple[int, ...]:
    return tuple(int(size) for size in np.frombuffer(data, dtype=order + "i4"))


def _matrix(
    flags: bytes, shape: tuple[int, ...], parts: Iterator[tuple[int, bytes]], order: str
) -> np.ndarray | Sparse:
    """A full matrix, or the entries of a sparse one."""
    (word,) = struct.unpack_from(order + "I", flags)
    number_class, is_complex = word & 0xFF, bool(word >> 8 & COMPLEX)
    if len(shape) != 2 or min(shape) < 0 or is_complex:
        raise ValueError(f"must be real and of two dimensions; found {shape}")
    if number_class == SPARSE_CLASS:
        return _sparse((shape[0], shape[1]), [_numbers(*next(parts), order) for _ in range(3)])
    if number_class not in NUMBER_CLASSES:
        raise ValueError(f"must be numbers; found MATLAB class {number_class}")
    values = _numbers(*next(parts), order)
    if len(values) != shape[0] * shape[1]:
        raise ValueError(f"must have {shape[0]} x {shape[1]} values; found {len(values)}")
    return values.reshape(shape, order="F")


def _sparse(shape: tuple[int, int], content: list[np.ndarray]) -> Sparse:
    rows, pointers, values = content
    if rows.dtype.kind not in "iu" or pointers.dtype.kind not in "iu":
        raise ValueError("must have whole numbers for its rows and columns; found others")
    rows, pointers = rows.astype(np.int64), pointers.astype(np.int64)
    steps = pointers[1:] - pointers[:-1]
    fits = len(pointers) == shape[1] + 1 and pointers[0] == 0 and bool((steps >= 0).all())
    count = int(pointers[-1]) if fits else -1
    rows = rows[: max(count, 0)]
    inside = bool(((rows >= 0) & (rows < shape[0])).all())
    if not 0 <= count <= min(len(rows), len(values)) or not inside:
        raise ValueError("must have rows and columns within its shape; found others")
    return Sparse(shape, rows, np.repeat(np.arange(shape[1]), steps), values[:count])


def _numbers(kind: int, data: bytes, order: str) -> np.ndarray:
    if kind not in NUMBERS:
        raise ValueError(f"must consist of numbers; found type {kind}")
    return np.frombuffer(data, dtype=order + NUMBERS[kind])
