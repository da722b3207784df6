"""Makes this process look like one on Windows, as far as a library can see; for ``python -c``.

What is not ours is imported before, so that only our own code meets the other system: no C library
to ask for, no ``fcntl``, no ``resource``, no POSIX calls in ``os``, locks through ``msvcrt``.
"""

from __future__ import annotations

import asyncio  # noqa: F401 (as subprocess below)
import ctypes
import errno
import fcntl
import os
import signal
import subprocess  # noqa: F401 (chooses its system when it is imported)
import sys
import types

import rich.console
import rich.progress
import rich.table  # noqa: F401
import tyro
import tyro._calling  # noqa: F401

POSIX_ONLY = ("fork", "sysconf", "getuid", "geteuid", "getloadavg", "sched_getaffinity", "mkfifo")
SIGNALS = ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGQUIT", "SIGCHLD")


def become(*, with_torch: bool) -> None:
    if with_torch:
        import torch_geometric.data
        import torch_geometric.nn  # noqa: F401
    sys.modules["msvcrt"] = _msvcrt()
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None  # type: ignore[assignment]
    for name in POSIX_ONLY:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        delattr(signal, name)
    ctypes.CDLL = _cdll  # type: ignore[misc, assignment]
    sys.platform = "win32"


def _cdll(name: str | None, *arguments: object) -> None:
    if name is None:
        raise TypeError("bad argument type for built-in operation")
    raise FileNotFoundError(errno.ENOENT, "could not find module", name)


def _msvcrt() -> types.ModuleType:
    """Locks of one byte, as the C library of Windows has them."""
    module, lock, release = types.ModuleType("msvcrt"), fcntl.lockf, fcntl.LOCK_UN
    kinds = {1: fcntl.LOCK_EX, 2: fcntl.LOCK_EX | fcntl.LOCK_NB, 0: release}
    module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK = 0, 1, 2  # type: ignore[attr-defined]
    module.locking = lambda descriptor, kind, size: lock(descriptor, kinds[kind], size)  # type: ignore[attr-defined]
    return module
