"""Files that are written whole or not at all, by one process at a time."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

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
            with contextlib.suppress(OSError):  # gives up after ten seconds
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


@contextlib.contextmanager
def locked(target: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Keep other processes from writing ``target``; ``waiting`` is called once if one does.

    The operating system drops the lock when its process ends, however it ends, so there is no
    stale lock to clean up. The empty file ``.<name>.lock`` stays: removing it would be a race.
    """
    lock = target.with_name(f".{target.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)  # not inherited by children
    try:
        if not _try_lock(descriptor):
            waiting()
            _wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write to that becomes ``target`` at the end of the block, if there is no error.

    Hold :func:`locked` around it: the temporary file has a fixed name, so that what a killed
    process left behind is overwritten by the next one.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
