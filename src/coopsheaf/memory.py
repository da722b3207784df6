"""What the C library does with memory that is free again. Imports no PyTorch."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Keep freed memory for the next step instead of giving it back to the system.

    A training step allocates and frees the same large tensors over and over. By default the C
    library of Linux returns them to the system each time, which clears them page by page when they
    are needed again: on graphs of 10⁵ to 10⁷ edges that is a third to a half of a step. The price:
    this process holds what it needed most until it ends, and up to 40 % more, since memory is
    reused in pieces. For the whole process, and what it forks. ``coopsheaf`` on the command line
    does it, unless ``COOPSHEAF_KEEP_MEMORY=0``.

    Returns:
        Whether it was done: with glibc, and unless the environment says no.
    """
    if os.environ.get("COOPSHEAF_KEEP_MEMORY") == "0":
        return False
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 (other libraries do not have it)
        # Nothing apart from the heap, and the heap never shrinks.
        return bool(library.mallopt(_MMAP_MAX, 0) and library.mallopt(_TRIM_THRESHOLD, -1))
    return False
