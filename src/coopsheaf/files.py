"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash, a full disk or a second writer leaves the old or the new one.

    The content goes to a temporary file in the same folder, is forced to disk, and takes the
    file's name in one step.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _about(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with _about(path):
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # temporary files are private
            os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Make an error name the file that was to be written, not the temporary one, or none."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, value: Any) -> None:
    """Write JSON, atomically; what is not finite becomes null."""
    text = json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, (text + "\n").encode())


def finite(value: Any) -> Any:
    """The same plain value with ``None`` for NaN and infinities, which JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on ``path`` (created beside what it guards) against other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as file:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined,unused-ignore]
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)


def append_line(
    path: Path, line: str, *, is_whole: Callable[[bytes], bool] = lambda tail: True
) -> None:
    """Append one line under a lock; processes that append at once never mix or lose lines.

    A last line without an end is what a writer left that died in the middle of it: unless
    ``is_whole`` says that only its end is missing, it is cut off.
    """
    with locked(path.with_name(f".{path.name}.lock")):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as file:
            end = file.tell()
            if end:
                end = _end_last_line(path, file, end, is_whole)
            try:
                with _about(path):
                    file.write(line.encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    os.truncate(path, end)
                raise


def _end_last_line(path: Path, file: BinaryIO, end: int, is_whole: Callable[[bytes], bool]) -> int:
    """Make the file end with the end of a line; returns its size."""
    with open(path, "rb") as reader:
        reader.seek(end - 1)
        if reader.read(1) == b"\n":
            return end
        reader.seek(0)
        content = reader.read()
    start = content.rfind(b"\n") + 1
    if not is_whole(content[start:]):
        file.truncate(start)
        return start
    file.write(b"\n")
    file.flush()
    return end + 1
