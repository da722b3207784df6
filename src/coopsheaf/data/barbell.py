"""Two cliques and a bridge: every node is asked for the mean of the other clique."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.unions import Piece, both_ways, check_counts, join

GRAPHS = (160, 40, 40)
HOPS = 3  # from a node that is not at the bridge to one that is not, on the other side


def barbell_edges(size: int) -> Tensor:
    """Two cliques of ``size`` nodes, 0 to N - 1 and N to 2N - 1, and the edge 0 – N: ``(2, m)``."""
    inner = [(i, j) for i in range(size) for j in range(i)]
    return both_ways([*inner, *((size + i, size + j) for i, j in inner), (0, size)])


def barbell(size: int = 10, *, graphs: tuple[int, int, int] = GRAPHS, seed: int = 0) -> NodeDataset:
    r"""The Barbell task (Bamberger et al., ICLR 2025): over-squashing through one edge.

    Two cliques of N nodes are joined by one edge. A node has one number, drawn evenly around
    :math:`-\sqrt{3N}` in one clique and :math:`\sqrt{3N}` in the other, with deviation
    :math:`\sqrt N`; its target is the mean of the numbers of the *other* clique. That mean has
    deviation 1. So a mean squared error of

    * :math:`3N + 1` is that of one number for all nodes,
    * 1 is that of a node which knows on which side it is and nothing of the others',
    * below 1 takes something that came over the bridge.

    Graph, features and targets are as published; how many graphs there are and how they are divided
    is ours. All graphs have 2N nodes, one after the other
    (:func:`~coopsheaf.data.unions.join`).

    Args:
        size: N, nodes of a clique, at least 2.
        graphs: numbers of graphs for training, validation and test.
        seed: of everything.
    """
    n = check_int("size", size, minimum=2)
    count = sum(check_counts(graphs))
    rng = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    edges, everybody = barbell_edges(n), torch.ones(2 * n, dtype=torch.bool)
    pieces = []
    for _ in range(count):
        x = _draw(n, rng)
        y = x.view(2, n).mean(1).flip(0).repeat_interleave(n)
        pieces.append(Piece(x.unsqueeze(1), edges, y, everybody))
    return join(f"barbell-{n}", pieces, graphs, task="regression", metric="rmse")


def _draw(n: int, rng: torch.Generator) -> Tensor:
    """The numbers of both cliques, ``(2n,)``."""
    centre = math.sqrt(3 * n) * torch.tensor([-1.0, 1.0]).repeat_interleave(n)
    return centre + math.sqrt(3 * n) * (2 * torch.rand(2 * n, generator=rng) - 1)
