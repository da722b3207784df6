r"""Maps :math:`\rho_{j \to i}` of arcs, from what the two ends ask and answer.

Each kind is a module for one head of dimension p: it gets the queries of the nodes that hear and
the keys of those that are heard, both ``(n, p)``, and makes one map per arc.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.sheaves.laplacian import sum_at


class ArcMaps(nn.Module, ABC):
    """A kind of maps of arcs.

    Args:
        channels: dimension p of a head.

    Shapes:
        queries, keys ``(n, p)``; graph of n nodes and m arcs. Maps are ``(m, p, p)``, or ``(m, p)``
        where they are diagonal.
    """

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.lin = nn.Linear(2 * channels, out_channels, bias=False)

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()

    def forward(self, queries: Tensor, keys: Tensor, graph: Graph) -> Tensor:
        """The maps of all arcs."""
        at_target, at_source = self.lin.weight.split(self.channels, dim=1)
        z = F.linear(queries, at_target).index_select(0, graph.target)
        return self.make(z + F.linear(keys, at_source).index_select(0, graph.source))

    @abstractmethod
    def make(self, z: Tensor) -> Tensor:
        """Maps of ``W [q_i ‖ k_j]``, ``(m, out_channels)``."""

    def carry(self, maps: Tensor, share: Tensor, values: Tensor, graph: Graph) -> Tensor:
        r""":math:`\sum_{e = j \to i} a_e \rho_e v_j`.

        Args:
            maps: ρ of every arc.
            share: a, ``(m,)``.
            values: v, ``(n, p, k)``.
            graph: n nodes, m arcs.
        """
        return sparse_product(values, graph, share[:, None, None] * maps)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels})"


class FullArcMaps(ArcMaps):
    r""":math:`\rho = I + \tanh(W [q \,\Vert\, k])`; W starts at 0, where ρ is the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels**2)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.lin.weight)

    def make(self, z: Tensor) -> Tensor:
        p = self.channels
        return torch.eye(p, dtype=z.dtype, device=z.device) + torch.tanh(z).unflatten(1, (p, p))


class PositiveArcMaps(ArcMaps):
    r""":math:`\rho = I + Q Q^\top`, :math:`Q = W [q \,\Vert\, k]`: no eigenvalue below 1.

    W starts as linear layers do: at 0 it would have no gradient.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels**2)

    def make(self, z: Tensor) -> Tensor:
        p = self.channels
        q = z.unflatten(1, (p, p))
        return torch.eye(p, dtype=z.dtype, device=z.device) + q @ q.mT


class DiagonalArcMaps(ArcMaps):
    r""":math:`\rho = \operatorname{diag}(\operatorname{sigmoid}(\operatorname{MLP}[q \,\Vert\,
    k]))`, of layers 2p → 2p → p with ReLU between."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, 2 * channels)
        self.bias = nn.Parameter(torch.empty(2 * channels))
        self.last = nn.Linear(2 * channels, channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.bias)
        self.last.reset_parameters()

    def make(self, z: Tensor) -> Tensor:
        return torch.sigmoid(self.last(F.relu(z + self.bias)))

    def carry(self, maps: Tensor, share: Tensor, values: Tensor, graph: Graph) -> Tensor:
        sent = (share[:, None] * maps).unsqueeze(2) * values.index_select(0, graph.source)
        return sum_at(graph.target, sent, graph.num_nodes)


ARC_MAPS: dict[str, type[FullArcMaps | PositiveArcMaps | DiagonalArcMaps]] = {
    "fc": FullArcMaps,
    "spd": PositiveArcMaps,
    "diagonal": DiagonalArcMaps,
}
