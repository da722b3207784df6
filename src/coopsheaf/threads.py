"""PyTorch's own threads, for what computes beside its operations."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

_LIBRARIES = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}  # elsewhere .so
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@cache
def parallel_loop() -> ctypes.c_void_p | None:
    """The address of PyTorch's parallel loop, where it has a C function for it (from 2.10)."""
    name = _LIBRARIES.get(sys.platform, "libtorch_cpu.so")
    path = Path(torch.__file__).parent / "lib" / name
    try:
        return ctypes.cast(ctypes.CDLL(str(path)).torch_parallel_for, ctypes.c_void_p)
    except (OSError, AttributeError):
        return None


def on_every_thread(function: Callable[[], object]) -> None:
    """Call a function once in this thread and once in every other that PyTorch computes with.

    What a thread asks of its processor is its own: one that has started does not learn what another
    asks for later. Where PyTorch has no C function for its loop, only this thread calls.
    """
    loop, count = parallel_loop(), torch.get_num_threads()
    if loop is None or count == 1:
        function()
        return
    run = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, _BODY, ctypes.c_void_p
    )(loop.value)  # type: ignore[arg-type]
    body = _BODY(lambda begin, end, context: function())  # as many pieces as threads: one for each
    run(0, count, 1, body, None)
