"""The normalised adjacency matrix of many networks, as scalings around one bare sparse product."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.sheaves.laplacian import weighted_degree


class Propagation:
    r"""The matrix :math:`D^{-1/2} (A + I) D^{-1/2}`, or without loops :math:`D^{-1/2} A D^{-1/2}`.

    .. math:: (S x)_i = \frac{1}{\sqrt{d_i}} \Bigl(\frac{x_i}{\sqrt{d_i}}
              + \sum_{j \to i} \frac{w_{ji}\, x_j}{\sqrt{d_j}}\Bigr), \qquad
              d_i = 1 + \sum_{j \to i} w_{ji}

    The weight of an edge is a product of one number at each of its ends, so nothing of the size of
    the edges is made. On directed edges both degrees are in-degrees, as in PyG; a node without
    edges has :math:`d_i = 0` where no loops are added, and hears nothing.

    A loop is added to those that the graph has: such a node then has two, as in :math:`A + I`.
    PyG's ``gcn_norm`` gives a node with a loop no second one; on a graph without loops both are the
    same.

    Built once per forward pass, applied as often as there are hops.

    Args:
        graph: the graph of n nodes.
        like: a tensor of the dtype that is propagated.
        edge_weight: ``(m,)``.
        loops: add a loop at every node.
        least: degrees are at least this.

    Shapes:
        x ``(n, c)``; returns ``(n, c)``.
    """

    def __init__(
        self,
        graph: Graph,
        like: Tensor,
        edge_weight: Tensor | None = None,
        *,
        loops: bool = True,
        least: float = 0.0,
    ) -> None:
        degree = weighted_degree(graph, edge_weight).to(like.dtype) + (1 if loops else 0)
        degree = degree.clamp(min=least)
        some = degree > 0
        root = torch.where(some, degree, torch.ones_like(degree)).rsqrt() * some
        self.graph, self.loops = graph, loops
        self.scale = root.unsqueeze(1)  # (n, 1)
        self.blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        sent = self.scale * x
        heard = sparse_product(sent.unsqueeze(1), self.graph, self.blocks).squeeze(1)
        return self.scale * (heard + sent if self.loops else heard)

    def with_weights(self, x: Tensor, weight: Tensor) -> Tensor:
        """The same with a weight ``(m,)`` of every edge on top; loops keep theirs, 1."""
        sent = self.scale * x
        blocks = weight.view(-1, 1, 1)
        blocks = blocks if self.blocks is None else self.blocks * blocks
        heard = sparse_product(sent.unsqueeze(1), self.graph, blocks).squeeze(1)
        return self.scale * (heard + sent if self.loops else heard)
