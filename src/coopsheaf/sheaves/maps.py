"""Maps at the nodes: any matrices, or multiples of orthogonal ones."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class ConformalMaps(NamedTuple):
    """One map per node of the form scale × orthogonal matrix."""

    scale: Tensor  # (n,)
    orthogonal: Tensor  # (n, d, d)

    def to_dense(self) -> Tensor:
        """The maps as matrices, ``(n, d, d)``."""
        return self.scale[:, None, None] * self.orthogonal


NodeMaps = Tensor | ConformalMaps
"""One d×d map per node: any matrices ``(n, d, d)``, or :class:`ConformalMaps`."""


def dense_maps(maps: NodeMaps) -> Tensor:
    """The maps as matrices, ``(n, d, d)``."""
    return maps.to_dense() if isinstance(maps, ConformalMaps) else maps


def cast_maps(maps: NodeMaps, dtype: torch.dtype) -> NodeMaps:
    """The maps in another precision."""
    if isinstance(maps, ConformalMaps):
        return ConformalMaps(maps.scale.to(dtype), maps.orthogonal.to(dtype))
    return maps.to(dtype)
