"""A graph whose edges stay as they come, for programs that leave this library."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph


class EdgeList(Graph):
    """A :class:`~coopsheaf.Graph` of which nothing is sorted, counted or checked.

    Whatever networks ask of it is made of gathering and adding at an index, which every exporter
    and every runtime knows; numbers of nodes and edges may be symbols. What needs the edges grouped
    by one of their ends (``by_target``, ``by_source``) does not work with it.

    Args:
        edge_index: ``(2, m)`` int64.
        num_nodes: the number n of nodes.
    """

    _nodes: int

    __slots__ = ("_nodes",)

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        parts: dict[str, object] = {"source": edge_index[0], "target": edge_index[1]}
        for name, value in {**parts, "_nodes": num_nodes, "whole": None, "_memo": {}}.items():
            object.__setattr__(self, name, value)

    @property
    def num_nodes(self) -> int:
        return self._nodes

    @property
    def in_degree(self) -> Tensor:
        return self._count(self.target)

    @property
    def out_degree(self) -> Tensor:
        return self._count(self.source)

    def reverse(self) -> EdgeList:
        return EdgeList(torch.stack([self.target, self.source]), self._nodes)

    def with_self_loops(self) -> EdgeList:
        nodes = torch.arange(self._nodes, device=self.device)
        return EdgeList(torch.cat([self.edge_index, nodes.expand(2, -1)], dim=1), self._nodes)

    def to(self, device: torch.device | str) -> EdgeList:
        return EdgeList(self.edge_index.to(device), self._nodes)

    def __reduce__(self) -> tuple[object, ...]:
        return EdgeList, (self.edge_index, self._nodes)

    def _count(self, ends: Tensor) -> Tensor:
        """Edges at each node, ``(n,)``."""
        return ends.new_zeros(self._nodes).index_add(0, ends, torch.ones_like(ends))
