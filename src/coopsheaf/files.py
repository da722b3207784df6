"""Files that are there whole or not at all, written by one process at a time."""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _wait_for_lock(descriptor: int) -> None:
        while True:
            os.lseek(descriptor, 0, os.SEEK_SET)
            with suppress(OSError):  # gives up after ten seconds
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
                return

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _wait_for_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash, a full disk or a second writer leaves the old or the new one.

    The content goes to a temporary file in the same folder, is forced to disk, and takes the
    file's name in one step. A link stays what it is, and the file behind it is written; a device
    or a pipe is written through, never replaced. What dead processes left of theirs is removed.
    """
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    if path.exists() and not path.is_file():
        with _about(path), open(path, "wb") as stream:  # a folder is an error here
            stream.write(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep_drafts(path)
    with _about(path):
        handle, name = _make_draft(path, _open_new_file)
    assert handle is not None
    try:
        # The lock goes with the last handle, and the file must have its name by then.
        with _about(path), os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())  # temporary files are private
            if sys.platform == "win32":
                file.close()  # what is open cannot be renamed there
            os.replace(name, path)
            _sync_folder(path.parent)
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
def locked(target: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep other processes from writing ``target``; ``waiting`` is called once if one does.

    The operating system drops the lock when its process ends, however it ends, so there is no
    stale lock to clean up. The empty file ``.<name>.lock`` stays: removing it would be a race.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_name(f".{target.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)  # not inherited by children
    try:
        if not _try_lock(descriptor):
            waiting()
            _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes ``target`` at the end of the block, if there is no error.

    Hold :func:`locked` around it: the temporary file has a fixed name, so that what a killed
    process left behind is overwritten by the next one.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as stream:
            if sys.platform != "win32":
                with suppress(OSError):
                    _try_lock(stream.fileno())  # it is nobody's but ours
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


@contextmanager
def draft_folder(target: Path) -> Iterator[Path]:
    """A folder to fill that becomes ``target`` at the end of the block, if there is no error.

    A folder of that name is replaced. Linux and macOS exchange the two names in one step, so that
    there is no moment without the one or the other; elsewhere the old one is moved away first, to
    where the next writer finds it if this one ends just then.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep_drafts(target)
    with _about(target):
        handle, name = _make_draft(target, _open_new_folder)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o777 & ~_umask())  # temporary folders are private
        _give_name(draft, target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # with an error; or the old one, by exchange
        if handle is not None:
            os.close(handle)


def _give_name(draft: Path, target: Path) -> None:
    if target.exists() and _exchange(draft, target):
        _sync_folder(target.parent)
        return
    old = target.with_name(f".{target.name}.old")
    if target.exists():
        target.replace(old)
    draft.replace(target)
    _sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step, if the system and the file system can."""
    names, system = (os.fsencode(first), os.fsencode(second)), str(sys.platform)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if system == "linux":
            here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
            return bool(library.renameat2(here, names[0], here, names[1], exchange) == 0)
        if system == "darwin":
            return bool(library.renamex_np(*names, 2) == 0)  # RENAME_SWAP
    except (AttributeError, OSError, TypeError):  # an old library, or another system
        pass
    return False


def sweep_drafts(target: Path) -> None:
    """Remove what dead processes left while they wrote ``target``.

    A draft is locked by the process that writes it, and the system drops the lock when that ends:
    what can be locked is nobody's.
    """
    old = target.with_name(f".{target.name}.old")
    if old.is_dir() and not target.exists():
        old.replace(target)
    with suppress(OSError):
        draft = re.compile(rf"\.{re.escape(target.name)}\.\w{{8}}\.part")
        for entry in list(os.scandir(target.parent)):
            if draft.fullmatch(entry.name):
                _remove_if_abandoned(entry.path)


def _remove_if_abandoned(name: str) -> None:
    with suppress(OSError):
        if sys.platform == "win32":  # what is open cannot be removed there; folders by their age
            if time.time() - os.stat(name).st_mtime < _A_DAY:
                return
            _remove(name)
            return
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if _try_lock(handle):
                _remove(name)
        finally:
            os.close(handle)


def _remove(name: str) -> None:
    if os.path.isdir(name):
        shutil.rmtree(name, ignore_errors=True)
    else:
        os.unlink(name)


_A_DAY = 86_400.0  # seconds


def _make_draft(
    target: Path, make: Callable[[Path, str], tuple[int | None, str]]
) -> tuple[int | None, str]:
    """A new temporary file or folder beside ``target``, locked, and a handle of it."""
    while True:
        handle, name = make(target.parent, f".{target.name}.")
        if handle is None or sys.platform == "win32":
            return handle, name
        try:
            ours = _try_lock(handle)
        except OSError:  # a file system without locks
            return handle, name
        if ours and os.path.lexists(name):  # nobody took it for abandoned in between
            return handle, name
        os.close(handle)


def _open_new_file(folder: Path, prefix: str) -> tuple[int | None, str]:
    return tempfile.mkstemp(dir=folder, prefix=prefix, suffix=".part")


def _open_new_folder(folder: Path, prefix: str) -> tuple[int | None, str]:
    name = tempfile.mkdtemp(dir=folder, prefix=prefix, suffix=".part")
    return (None if sys.platform == "win32" else os.open(name, os.O_RDONLY)), name


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def append_line(
    path: Path, line: str, *, is_whole: Callable[[bytes], bool] = lambda tail: True
) -> None:
    """Append one line under a lock; processes that append at once never mix or lose lines.

    A last line without an end is what a writer left that died in the middle of it: unless
    ``is_whole`` says that only its end is missing, it is cut off.
    """
    with locked(path), open(path, "ab") as file:
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


def is_json(line: bytes) -> bool:
    """Whether a line holds one JSON value; what a writer left half done does not."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


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
