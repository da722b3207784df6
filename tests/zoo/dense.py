"""Slow dense matrices that the networks of the zoo are compared with; receivers are rows."""

from __future__ import annotations

import torch
from torch import Tensor


def adjacency(n: int, edges: Tensor, weight: Tensor | None = None) -> Tensor:
    """A, whose entry (i, j) is the sum of the weights of the edges j→i."""
    weight = torch.ones(edges.shape[1], dtype=torch.float64) if weight is None else weight
    zeros = torch.zeros(n * n, dtype=torch.float64)
    return zeros.index_add(0, edges[1] * n + edges[0], weight).view(n, n)


def symmetric(a: Tensor, *, loops: bool = True) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 with row sums D, or the same without I; 1/0 is 0."""
    a = a + torch.eye(len(a), dtype=a.dtype) if loops else a
    degree = a.sum(1)
    root = torch.where(degree > 0, degree, torch.ones_like(degree)) ** -0.5 * (degree > 0)
    return root[:, None] * a * root[None, :]
