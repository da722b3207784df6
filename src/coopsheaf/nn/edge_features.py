"""What nodes see of the features of their edges: means over those that come and those that go."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.edges import check_order
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.laplacian import sum_at
from coopsheaf.tensor_checks import check_same, check_shape


class EdgeMeans(NamedTuple):
    """The means of the features of the edges at every node, zero where there are none.

    A :class:`~coopsheaf.CSNN` takes them in place of ``edge_attr``. So a part of a graph can have
    those of the whole graph, which the edges that are left in it would not give::

        means = edge_means(graph, edge_attr)
        part = graph.subgraph(nodes)
        out = model(x[nodes], part.graph, edge_attr=means.at(nodes))
    """

    into: Tensor  # (n, k), over the edges into a node
    out: Tensor  # (n, k), over those out of it

    def at(self, nodes: Tensor) -> EdgeMeans:
        """Those of some nodes."""
        return EdgeMeans(self.into[nodes], self.out[nodes])

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> EdgeMeans:
        """On another device, or of another dtype."""
        return EdgeMeans(*(part.to(device, dtype) for part in self))

    def check(self, num_nodes: int, channels: int, x: Tensor) -> EdgeMeans:
        """Themselves, if they are of this size and of the dtype and on the device of x."""
        for name, part in zip(self._fields, self, strict=True):
            rule = f"(n, {channels}) with n = {num_nodes}"
            check_shape(f"edge_attr.{name}", part, rule, (num_nodes, channels))
        here = self.to(dtype=x.dtype) if torch.is_autocast_enabled(x.device.type) else self
        for name, part in zip(self._fields, here, strict=True):
            check_same(f"edge_attr.{name}", part, "x", x)
        return here


EdgeFeatures = Tensor | EdgeMeans
"""Features of edges as ``(m, k)``, or their means at the nodes."""


def edge_means(edge_index: Tensor | Graph, edge_attr: Tensor) -> EdgeMeans:
    r"""The mean features of the edges into every node, and of those out of it.

    .. math::
        \bar a^{in}_i = \frac{1}{\deg^{in}(i)} \sum_{e = (j \to i)} a_e, \qquad
        \bar a^{out}_i = \frac{1}{\deg^{out}(i)} \sum_{e = (i \to j)} a_e,

    and 0 where there is no such edge. Parallel edges count one by one, a loop on both sides; edge
    weights do not count.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`, which also knows of nodes without
            edges at the end of the list.
        edge_attr: ``(m, k)``.
    """
    check_order("edge_attr", edge_index)
    graph = as_graph(edge_index)
    m = graph.num_edges
    check_shape("edge_attr", edge_attr, f"(m, k) with m = {m}", (m, None))
    sides = ((graph.target, graph.in_degree), (graph.source, graph.out_degree))
    return EdgeMeans(*(_mean(edge_attr, ends, degree, graph) for ends, degree in sides))


def _mean(edge_attr: Tensor, ends: Tensor, degree: Tensor, graph: Graph) -> Tensor:
    total = sum_at(ends, edge_attr, graph.num_nodes)
    return total / degree.clamp(min=1).to(total.dtype).unsqueeze(1)
