"""How large the blocks of a launch are: shared by all that launch something."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

# Entries of a tile that one program holds at most, of those that sum over neighbours.
TILE = 2048
# Entries of a block of those that go entry by entry.
ENTRIES = 1024


def columns(width: int, rows: int = 1) -> int:
    """Columns of a block: a power of two that covers the width, or all that a tile has room for."""
    return min(triton.next_power_of_2(max(width, 1)), max(TILE // rows, 16))


def options(entries: int) -> dict[str, Any]:
    """How a tile of so many entries is worked on: by warps with about four entries per thread."""
    # Fused multiply-adds are Triton's default today, but it warns of another one to come.
    return {"num_warps": max(1, min(8, entries // 128)), "enable_fp_fusion": True}


def blocks(size: int, block: int) -> int:
    return triton.cdiv(size, block)


def sum_type(x: Tensor) -> Any:
    """In which numbers to sum."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32
