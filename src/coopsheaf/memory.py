"""What this process holds, and what the C library does with what is free again. No PyTorch."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

# Of glibc's malloc.h, and what it does by default, about.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_DEFAULTS = {_MMAP_MAX: 65536, _MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 64 << 20}

_keeping = False


def keep_freed_memory() -> bool:
    """Keep freed memory for the next step instead of giving it back to the system.

    A training step allocates and frees the same large tensors over and over. By default the C
    library of Linux returns them to the system each time, which clears them page by page when they
    are needed again: on graphs of 10⁵ to 10⁷ edges that is a third to a half of a step. The price:
    this process holds what it needed most until it ends, and up to two thirds more, since memory is
    reused in pieces; :func:`ease_memory` stops it where that gets tight. Memory that stays may as
    well lie in large pages, where the system has them on request: fewer look-ups of addresses. For
    the whole process, and what it forks. ``coopsheaf`` on the command line does it, unless
    ``COOPSHEAF_KEEP_MEMORY=0``.

    Returns:
        Whether it was done: with glibc, and unless the environment says no.
    """
    global _keeping
    if os.environ.get("COOPSHEAF_KEEP_MEMORY") == "0":
        return False
    library = _glibc()
    if library is None:
        return False
    # Nothing apart from the heap, and the heap never shrinks.
    _keeping = bool(library.mallopt(_MMAP_MAX, 0) and library.mallopt(_TRIM_THRESHOLD, -1))
    if _keeping:
        _ask_for_large_pages(library, machine_bytes() // 2)  # beyond that it is given back
    return _keeping


def _glibc() -> ctypes.CDLL | None:
    """The C library of this process if it is glibc; ``None`` on Windows, macOS and with musl."""
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL(None)  # on Windows a TypeError
        library.gnu_get_libc_version  # noqa: B018 (other libraries do not have it)
    except (OSError, AttributeError, TypeError):
        return None
    return library


def _ask_for_large_pages(library: ctypes.CDLL, size: int) -> None:
    """Let the next ``size`` bytes of the heap come in large pages, if this process needs them.

    To allocate that much and free it at once lets the heap reach so far and takes no memory: pages
    come when they are first written to. Where it fails, as under a limit, nothing has changed.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
    allocate, free, advise = library.malloc, library.free, library.madvise
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    free.restype, free.argtypes = None, [ctypes.c_void_p]
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    start = allocate(size) if advice is not None else None
    if start:
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        advise(first, start + size - first, advice)
        free(start)


def ease_memory() -> bool:
    """Stop keeping freed memory, and give it back, once this process has half of the machine's.

    Training calls it after every epoch.

    Returns:
        Whether memory was given back.
    """
    global _keeping
    if not _keeping or resident_bytes() <= machine_bytes() // 2:
        return False
    library = _glibc()
    assert library is not None  # somebody is keeping memory
    for option, value in _DEFAULTS.items():
        library.mallopt(option, value)
    library.malloc_trim(0)
    _keeping = False
    return True


def resident_bytes() -> int:
    """What this process holds; 0 if the system does not say."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def peak_bytes() -> float:
    """The most it has held; on Linux since it began or since :func:`forget_peak`; NaN if unknown.

    Linux's VmHWM starts anew with every program; ``ru_maxrss`` may come from the parent process.
    """
    with suppress(OSError):
        line = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if line is not None:
            return int(line[1]) * 1024
    try:
        import resource
    except ImportError:  # not on Windows
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Let the peak be that of what follows; Linux only."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def machine_bytes() -> int:
    """What the machine has, or what this group of processes may have of it."""
    if not hasattr(os, "sysconf"):  # Windows: no limit that anybody here could know
        return sys.maxsize
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total
