"""Where the bytes of a table come from: a file, a pipe or standard input, each read once."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from coopsheaf.data.compressed import check_unpacked
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show_path

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"


class NotFast(Exception):
    """A file has something in it of which a slower reader takes more care."""


class Source:
    """The bytes of a table, decompressed where they are gzip.

    A regular file is opened whenever it is asked for. A pipe gives its bytes only once: they go
    to a temporary file first.

    Args:
        path: the file; ``-`` is standard input.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = str(path)
        self.name = "standard input" if self.path == STANDARD_INPUT else show_path(self.path)
        self._spool: IO[bytes] | None = None

    @property
    def is_file(self) -> bool:
        """Whether the bytes will be there tomorrow."""
        if self.path == STANDARD_INPUT:
            return False
        try:
            return stat.S_ISREG(Path(self.path).stat().st_mode)
        except (OSError, ValueError):
            return False

    def open(self) -> IO[bytes]:
        """The stored bytes from their start."""
        try:
            if self.is_file:
                return Path(self.path).open("rb")
            if self._spool is None:
                self._spool = self._read_pipe()
            return cast(IO[bytes], _Kept(self._spool))
        except FileNotFoundError:
            raise DataError(f"{self.name} does not exist: give the path of a table") from None
        except IsADirectoryError:
            raise DataError(f"{self.name} must be a file; it is a folder") from None
        except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
            reason = getattr(error, "strerror", None) or "not a valid path"
            raise DataError(f"{self.name} cannot be read: {reason}") from None

    def _read_pipe(self) -> IO[bytes]:
        standard = self.path == STANDARD_INPUT
        with nullcontext(sys.stdin.buffer) if standard else Path(self.path).open("rb") as stream:
            spool = tempfile.SpooledTemporaryFile(max_size=64 * 2**20)  # noqa: SIM115 -- kept open
            weakref.finalize(self, spool.close)
            shutil.copyfileobj(stream, spool)
        return cast(IO[bytes], spool)

    def head(self, size: int = 8) -> bytes:
        """The first stored bytes, by which formats are told apart."""
        with self.open() as stream:
            return stream.read(size)

    def whole(self) -> bytes:
        """All stored bytes."""
        with self.open() as stream:
            return stream.read()

    def digest(self) -> str:
        """sha256 of the stored bytes, in hexadecimal."""
        found = hashlib.sha256()
        with self.open() as stream:
            while part := stream.read(1 << 20):
                found.update(part)
        return found.hexdigest()

    @property
    def is_gzip(self) -> bool:
        """By its name, or by its first bytes where there is no telling name."""
        return self.path.lower().endswith(".gz") or (not self.is_file and self.head(2) == GZIP)

    def text(self, separator: str = ",", progress: Callable[[int], None] | None = None) -> Tap:
        """The decompressed bytes from their start, watched on their way."""
        return Tap(self, separator, progress)


class _Kept(io.RawIOBase):
    """A stream that stays open when its reader is done with it, and that others read, too."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._place = stream, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._stream.seek(self._place)
        self._place = self._stream.seek(offset, whence)
        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        self._stream.seek(self._place)
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


class Tap(io.RawIOBase):
    """The bytes of a table as they flow by: counted, hashed, and looked at for what readers differ
    in.

    Attributes:
        checksum: sha256 of all bytes so far, in hexadecimal.
        size: how many.
        quotes: how many quotes there were.
        spaces: whether a field began with a space.
        odd_quotes: whether a quote stood inside of a field, where readers take it differently.
        last_opens: whether the last quote may begin a field; at the end that one is never closed.
        plain_lines: whether every line so far ended in one line feed and none was empty.
        nul: whether there was a NUL.
    """

    def __init__(
        self, source: Source, separator: str, progress: Callable[[int], None] | None
    ) -> None:
        self._source, self._progress = source, progress
        self._gzip = source.is_gzip  # before it is opened: this may look at its first bytes
        self._stored = source.open()
        self._stream = (
            cast(IO[bytes], gzip.GzipFile(fileobj=self._stored)) if self._gzip else self._stored
        )
        mark = re.escape(separator.encode())
        self._space = re.compile(rb"(?:^|[\r\n]|" + mark + rb") ")
        self._odd = re.compile(rb"(?<![\r\n])(?<!" + mark + rb')"[^\r\n"' + mark + rb"]")
        self._hash, self._tail = hashlib.sha256(), b"\n"
        self.size = 0
        self.quotes = 0
        self.spaces = self.odd_quotes = self.last_opens = self.nul = False
        self._borders = tuple(separator.encode() + b"\r\n")
        self.plain_lines = True

    @property
    def checksum(self) -> str:
        return self._hash.hexdigest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        try:
            data = self._stream.read(size)
        except (OSError, EOFError, zlib.error):
            if not self._gzip:
                raise
            raise DataError(
                f"{self._source.name} must be a complete gzip file, as its name says; it is "
                "damaged, cut short or of another format"
            ) from None
        self._look_at(data)
        if self._progress is not None:
            self._progress(self.size)
        return data

    def _look_at(self, data: bytes) -> None:
        self._hash.update(data)
        self.size += len(data)
        self.nul = self.nul or b"\0" in data
        # With the last two bytes of before, so that nothing hides at a border.
        seen = self._tail + data
        self.quotes += data.count(b'"')
        last = seen.rfind(b'"')
        if last >= len(self._tail):
            self.last_opens = seen[last - 1] in self._borders
        self.spaces = self.spaces or (b" " in data and self._space.search(seen) is not None)
        if self.quotes and not self.odd_quotes and b'"' in seen:
            # Not from the first byte: what stood before it is not known any more.
            self.odd_quotes = self._odd.search(seen, 1) is not None
        if self.plain_lines:
            self.plain_lines = b"\r" not in data and b"\n\n" not in seen and not self.quotes
        self._tail = seen[-2:]
        if self._gzip:
            check_unpacked(self._source.name, self._stored.tell(), self.size)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._stored.close()
        super().close()
