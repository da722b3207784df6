"""Numbers of threads and processes that a machine can bear. Imports no PyTorch."""

from __future__ import annotations

import os

# A record that was made with many threads may be run again on few cores; a crash helps nobody.
_FEW_CORES = 64


def check_threads(threads: int) -> int:
    """``--threads``: more than a machine can start end the program without a word."""
    return _check("threads", threads)


def check_workers(workers: int) -> int:
    """``--workers``: each is a process with PyTorch in it."""
    return _check("workers", workers)


def _check(name: str, value: int) -> int:
    if value < 1:
        raise ValueError(f"--{name} must be at least 1; got {value}")
    cores = os.cpu_count() or 1
    most = 4 * max(cores, _FEW_CORES)
    if value > most:
        raise ValueError(f"--{name} must be at most {most} ({cores} cores are here); got {value}")
    return value
