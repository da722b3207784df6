"""What every kernel is given: the parts of one operator."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph


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


class Terms(NamedTuple):
    r"""The parts of :math:`y_i = D_i x_i - \sum_{e = (j \to i)} w_e\, L_e^\top R_e\, x_j`.

    Maps belong to the n nodes (:math:`L_e = L_i, R_e = R_j`) or to the m edges; the kernel that is
    called says to which.
    """

    graph: Graph
    diagonal: Tensor  # (n,) or (n, d, d)
    left: NodeMaps  # (n, d, d), (m, d, d) or n conformal maps
    right: NodeMaps  # as left
    edge_weight: Tensor | None = None  # (m,)

    def dense(self) -> Terms:
        """The same with maps as matrices, as all kernels but the compiled one want them."""
        return self._replace(left=dense_maps(self.left), right=dense_maps(self.right))
