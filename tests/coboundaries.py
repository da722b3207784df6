"""Undirected sheaves as dense matrices, edge by edge, with no code of the package."""

from __future__ import annotations

import networkx as nx
import torch
from graphs import bidirected, generator
from torch import Tensor


def atlas(step: int = 8) -> list[tuple[int, Tensor]]:
    """All graphs of up to four nodes and every ``step``-th of five to seven, both ways, shuffled."""
    found = []
    everything = nx.graph_atlas_g()
    for graph in [*everything[1:19], *everything[19::step]]:
        pairs = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).T
        edges = bidirected(pairs)
        order = torch.randperm(edges.shape[1], generator=generator(len(found)))
        found.append((graph.number_of_nodes(), edges[:, order]))
    return found


def reverse_of(edges: Tensor) -> list[int]:
    """Where the reverse of each edge of a simple graph is."""
    place = {(int(u), int(v)): e for e, (u, v) in enumerate(edges.T)}
    return [place[int(v), int(u)] for u, v in edges.T]


def coboundary_matrix(n: int, edges: Tensor, maps: Tensor, weight: Tensor | None = None) -> Tensor:
    """δ, ``(pairs·d, n·d)``: for u < v the rows √w (F_v x_v - F_u x_u).

    ``maps[e]``, ``(d, d)``, belongs to the target of edge e.
    """
    d, rows = maps.shape[-1], []
    for e, back in enumerate(reverse_of(edges)):
        u, v = int(edges[0, e]), int(edges[1, e])
        if u < v:
            root = 1.0 if weight is None else weight[e].sqrt()
            blocks = [torch.zeros(d, d).to(maps) for _ in range(n)]
            blocks[v], blocks[u] = root * maps[e], -root * maps[back]
            rows.append(torch.cat(blocks, dim=1))
    return torch.cat(rows) if rows else maps.new_zeros(0, n * d)


def laplacian_matrix(n: int, edges: Tensor, maps: Tensor, weight: Tensor | None = None) -> Tensor:
    delta = coboundary_matrix(n, edges, maps, weight)
    return delta.T @ delta


def inverse_roots(matrices: Tensor) -> Tensor:
    """The power -1/2 of positive definite matrices ``(n, d, d)`` by Newton's iteration.

    Differentiable where eigenvalues coincide, which going through them is not.
    """
    size = matrices.square().sum((1, 2), keepdim=True).sqrt()
    eye = torch.eye(matrices.shape[-1]).to(matrices)
    y, z = matrices / size, eye
    for _ in range(20):
        step = (3 * eye - z @ y) / 2
        y, z = y @ step, step @ z
    return z / size.sqrt()


def augmented_matrix(matrix: Tensor, n: int) -> Tensor:
    """(D + I)^-½ L (D + I)^-½ with D the block diagonal of L, one block at a time."""
    d = matrix.shape[0] // n
    blocks = [matrix[i * d : (i + 1) * d, i * d : (i + 1) * d] for i in range(n)]
    roots = torch.block_diag(*inverse_roots(torch.stack(blocks) + torch.eye(d).to(matrix)))
    return roots @ matrix @ roots


def adjacency_matrix(n: int, edges: Tensor, weight: Tensor | None = None) -> Tensor:
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for e, (u, v) in enumerate(edges.T):
        matrix[v, u] = 1.0 if weight is None else weight[e]
    return matrix


def symmetric_weight(edges: Tensor, seed: int = 0) -> Tensor:
    """Random weights in [½, 3/2], the same both ways."""
    weight = 0.5 + torch.rand(edges.shape[1], generator=generator(seed), dtype=torch.float64)
    back = torch.tensor(reverse_of(edges), dtype=torch.int64)
    return (weight + weight[back]) / 2
