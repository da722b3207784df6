"""The coboundary of an undirected sheaf, whose square is the Laplacian."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.sheaf import Sheaf, check_kind


class Coboundary(Operator):
    r"""The coboundary of an undirected sheaf, :math:`(\delta X)_e = \sqrt{w_e} (F_{v \unlhd e} x_v
    - F_{u \unlhd e} x_u)` for e = (u, v): from nodes to edges.

    What it returns has one e×h block per edge, e the dimension of the stalks of edges. Because of
    the root it has no gradient with respect to a weight of exactly 0; the Laplacian has.

    Args:
        graph: each edge once.
        maps: ``(m, 2, e, d)``.
        edge_weight: w, ``(m,)``.
    """

    def __init__(self, graph: Graph, maps: Tensor, edge_weight: Tensor | None = None) -> None:
        self.graph = graph
        root = None if edge_weight is None else edge_weight.sqrt()[:, None, None, None]
        self.maps = maps if root is None else root * maps

    @property
    def domain(self) -> tuple[int, int]:
        return self.graph.num_nodes, self.maps.shape[-1]

    @property
    def codomain(self) -> tuple[int, int]:
        return self.graph.num_edges, self.maps.shape[-2]

    def _mv(self, x: Tensor) -> Tensor:
        graph = self.graph
        return self.maps[:, 1] @ x[graph.target] - self.maps[:, 0] @ x[graph.source]

    def to_dense(self) -> Tensor:
        (n, d), (m, e) = self.domain, self.codomain
        graph, edges = self.graph, torch.arange(m, device=self.maps.device)
        matrix = self.maps.new_zeros(m, n, e, d)
        matrix = matrix.index_put((edges, graph.target), self.maps[:, 1], accumulate=True)
        matrix = matrix.index_put((edges, graph.source), -self.maps[:, 0], accumulate=True)
        return matrix.transpose(1, 2).reshape(m * e, n * d)

    @property
    def T(self) -> Operator:
        return CoboundaryTranspose(self)


class CoboundaryTranspose(Operator):
    """The transpose of :class:`Coboundary`: from edges to nodes."""

    def __init__(self, coboundary: Coboundary) -> None:
        self.coboundary = coboundary

    @property
    def domain(self) -> tuple[int, int]:
        return self.coboundary.codomain

    @property
    def codomain(self) -> tuple[int, int]:
        return self.coboundary.domain

    def _mv(self, x: Tensor) -> Tensor:
        graph, maps = self.coboundary.graph, self.coboundary.maps
        out = x.new_zeros(*self.codomain, x.shape[2])
        out = out.index_add(0, graph.target, maps[:, 1].mT @ x)
        return out.index_add(0, graph.source, -(maps[:, 0].mT @ x))

    def to_dense(self) -> Tensor:
        return self.coboundary.to_dense().T

    @property
    def T(self) -> Operator:
        return self.coboundary


def coboundary(sheaf: Sheaf) -> Coboundary:
    """The coboundary δ of an undirected sheaf; ``delta.T @ delta`` is its Laplacian."""
    check_kind(sheaf, Sheaf)
    return Coboundary(sheaf.graph, sheaf.maps, sheaf.edge_weight)
