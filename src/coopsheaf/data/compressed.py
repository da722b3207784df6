"""Compressed files that do not burst: how much may come out of how little."""

from __future__ import annotations

import gzip
import io
import math
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show_path

FREE = 1 << 29  # bytes that may come out of anything
RATIO = 250  # sparse features shrink to a hundredth part and less; nobody's data to a thousandth
MOST = 1 << 34  # bytes in all


def check_unpacked(path: object, packed: int, unpacked: int) -> None:
    """Refuse a file of ``packed`` bytes out of which ``unpacked`` or more come."""
    if unpacked > MOST or (unpacked > FREE and unpacked > RATIO * packed):
        raise DataError(
            f"{show_path(path)}: must unpack to at most {FREE >> 20} MB, or to {RATIO} times its "
            f"size and {MOST >> 30} GB; its {packed / 1e6:.1f} MB become {unpacked / 1e6:,.0f} MB "
            "or more"
        )


def gunzip(data: bytes, path: object) -> bytes:
    """What a gzip file in memory holds; damage is what ``gzip.decompress`` raises.

    Args:
        data: the file.
        path: its name in an error.
    """
    return Unpacking(gzip.GzipFile(fileobj=io.BytesIO(data)), len(data), path).readall()


def open_gzip(path: Path) -> io.BufferedReader:
    """A gzip file to read from, bit by bit; it stops before it bursts."""
    source: Any = gzip.open(path, "rb")  # noqa: SIM115 (closed with what wraps it)
    return io.BufferedReader(Unpacking(source, path.stat().st_size, path))


class Unpacking(io.RawIOBase):
    """A stream that counts what comes out of a compressed one, and stops before it is too much."""

    def __init__(self, stream: Any, packed: int, path: object) -> None:
        self._stream, self._packed, self._path, self._count = stream, packed, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        self._count += len(content)
        check_unpacked(self._path, self._packed, self._count)
        buffer[: len(content)] = content
        return len(content)

    def readall(self) -> bytes:
        parts = []
        while part := self.read(1 << 20):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        self._stream.close()
        super().close()


def check_npz(path: Path, archive: zipfile.ZipFile, names: list[str]) -> None:
    """Compare what members of an npz file say of themselves with their sizes, before one is read.

    Raises:
        DataError: one is no array of numbers, or they would burst.
        Exception: whatever a damaged file makes its readers raise.
    """
    members = [archive.getinfo(name) for name in names]
    check_unpacked(path, path.stat().st_size, sum(member.file_size for member in members))
    for member in members:
        with archive.open(member) as stream:
            shape, dtype, start = _header(stream)
        wrong = f"{dtype} of shape {shape} does not fit its {member.file_size} bytes"
        if dtype.hasobject:
            wrong = "found objects, which would have to be unpickled"
        elif math.prod(shape) * dtype.itemsize == member.file_size - start:
            continue
        name = f"{show_path(path)}: {member.filename[:60]!r}"
        raise DataError(f"{name} must be an array of numbers; {wrong}")


def _header(stream: BinaryIO | Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, dtype and the first byte of an array in the format of ``.npy``."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read(stream)
    return shape, dtype, stream.tell()
