"""The operators as dense matrices: slow, and reads like the equations."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.sheaves.kernels.terms import Terms


def node_matrix(terms: Terms) -> Tensor:
    """The ``(nd, nd)`` matrix with maps at nodes: block (i, j) gets -w Lᵢᵀ Rⱼ for each edge j→i."""
    graph, left, right = terms.graph, terms.left, terms.right
    return edge_matrix(terms._replace(left=left[graph.target], right=right[graph.source]))


def edge_matrix(terms: Terms) -> Tensor:
    """The ``(nd, nd)`` matrix with maps at edges: block (i, j) gets -w Lₑᵀ Rₑ for each e = j→i."""
    graph, diagonal, left, right, edge_weight = terms
    n, d = graph.num_nodes, left.shape[-1]
    matrix = left.new_zeros(n, n, d, d)
    for e in range(graph.num_edges):
        j, i = int(graph.source[e]), int(graph.target[e])
        weight = 1.0 if edge_weight is None else edge_weight[e]
        matrix[i, j] = matrix[i, j] - weight * left[e].T @ right[e]
    for i in range(n):
        block = diagonal[i] * torch.eye(d).to(left) if diagonal.dim() == 1 else diagonal[i]
        matrix[i, i] = matrix[i, i] + block
    return matrix.transpose(1, 2).reshape(n * d, n * d)


def node_maps(x: Tensor, terms: Terms) -> Tensor:
    matrix = node_matrix(terms)
    return (matrix @ x.flatten(0, 1)).view_as(x)


def edge_maps(x: Tensor, terms: Terms) -> Tensor:
    matrix = edge_matrix(terms)
    return (matrix @ x.flatten(0, 1)).view_as(x)
