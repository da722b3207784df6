"""How many processes this one is of, as ``torchrun`` tells them. Imports no PyTorch."""

from __future__ import annotations

import os
from typing import NamedTuple


class FirstFailed(Exception):
    """The first process has met an error, and says so; there is nothing to add."""


class Launch(NamedTuple):
    """Which process this is, of how many, and how many of them are on this machine."""

    rank: int
    size: int
    local_size: int


def find_launch() -> Launch:
    """A process that was started in the ordinary way is the only one."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return Launch(0, 1, 1)
    numbers = (os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    return Launch(*map(int, numbers))
