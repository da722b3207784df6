"""Many graphs, sorted once: any of them side by side without sorting again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import CSR, Graph


class SideBySide(NamedTuple):
    """Some graphs as one, and where its parts are among all nodes and all edges."""

    graph: Graph  # n nodes, m edges
    batch: Tensor  # (n,) the place of each node's graph
    nodes: Tensor  # (n,) which nodes of all graphs
    edges: Tensor  # (m,) which edges of all graphs


class ManyGraphs:
    """Many graphs as one that is sorted both ways, out of which batches are cut.

    The edges of one graph lie behind one another in all of its lists. So a batch of sorted graphs
    is sorted: it takes a gather and an offset per graph where :class:`~coopsheaf.Graph` sorts. It
    equals the graph that is built anew of the same edges.

    Args:
        edge_indices: ``(2, m_g)`` of each graph, its nodes counted from 0.
        sizes: the number of nodes of each graph.
    """

    def __init__(self, edge_indices: Sequence[Tensor], sizes: Sequence[int]) -> None:
        self.nodes = _bounds(sizes)  # (graphs + 1,)
        self.edges = _bounds([edges.shape[1] for edges in edge_indices])
        self._check(edge_indices, sizes)
        shift = torch.repeat_interleave(self.nodes[:-1], self.edges.diff())
        joined = torch.cat([torch.empty(2, 0, dtype=torch.int64), *edge_indices], dim=1)
        self.graph = Graph(joined.long() + shift, int(self.nodes[-1]))

    @staticmethod
    def _check(edge_indices: Sequence[Tensor], sizes: Sequence[int]) -> None:
        """An edge that leaves its graph would end in the next one."""
        for number, (edges, size) in enumerate(zip(edge_indices, sizes, strict=True)):
            if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < size:
                raise ValueError(
                    f"`edge_index` of graph {number} must hold integers in [0, {size}); "
                    f"got {int(edges.min())} to {int(edges.max())}"
                )

    def take(self, index: Tensor) -> SideBySide:
        """The graphs at places ``index (k,)``, in that order."""
        node, batch = _places(self.nodes, index)
        edge, owner = _places(self.edges, index)
        node_shift = _starts(self.nodes, index) - self.nodes[index]  # (k,)
        edge_shift = _starts(self.edges, index) - self.edges[index]

        def cut(rows: CSR) -> CSR:
            ends = torch.cat([rows.ptr[node] + edge_shift[batch], edge.new_tensor([len(edge)])])
            return CSR(ends, rows.other[edge] + by_node, rows.edge[edge] + by_edge)

        by_node, by_edge = node_shift[owner], edge_shift[owner]
        graph = Graph._build(
            self.graph.source[edge] + by_node,
            self.graph.target[edge] + by_node,
            cut(self.graph.by_target),
            cut(self.graph.by_source),
        )
        return SideBySide(graph, batch, node, edge)


def _bounds(sizes: Sequence[int]) -> Tensor:
    return torch.tensor([0, *sizes], dtype=torch.int64).cumsum(0)


def _places(bounds: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The places of everything in some parts, and the part that each is in."""
    return CSR(bounds, bounds, bounds).take(index)


def _starts(bounds: Tensor, index: Tensor) -> Tensor:
    """Where each of some parts begins when they lie behind one another."""
    sizes = bounds[index + 1] - bounds[index]
    return sizes.cumsum(0) - sizes
