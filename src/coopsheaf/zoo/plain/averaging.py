"""Means over neighbours: the row-normalised adjacency matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.sheaves.laplacian import weighted_degree


class Averaging:
    r"""The matrix :math:`D^{-1} (A + I)`, whose rows sum to one; or :math:`A` as it is.

    .. math:: (P x)_i = \frac{1}{d_i} \Bigl(x_i + \sum_{j \to i} w_{ji}\, x_j\Bigr), \qquad
              d_i = 1 + \sum_{j \to i} w_{ji}

    A loop is added to those that the graph has, as in
    :class:`~coopsheaf.zoo.plain.propagation.Propagation`. Built once per forward pass.

    Args:
        graph: the graph of n nodes.
        like: a tensor of the dtype that is propagated.
        edge_weight: ``(m,)``.
        raw: no loops and no division: the adjacency matrix itself.

    Shapes:
        x ``(n, c)``; returns ``(n, c)``.
    """

    def __init__(
        self,
        graph: Graph,
        like: Tensor,
        edge_weight: Tensor | None = None,
        *,
        raw: bool = False,
    ) -> None:
        self.graph = graph
        self.blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
        self.inverse: Tensor | None = None
        if not raw:
            degree = weighted_degree(graph, edge_weight).to(like.dtype) + 1
            self.inverse = torch.reciprocal(degree).unsqueeze(1)  # (n, 1)

    def __call__(self, x: Tensor) -> Tensor:
        heard = sparse_product(x.unsqueeze(1), self.graph, self.blocks).squeeze(1)
        return heard if self.inverse is None else self.inverse * (heard + x)
