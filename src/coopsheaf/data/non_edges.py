"""The pairs of nodes that no edge joins, and draws among them."""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 1 << 14  # so many sources at a time: memory does not grow with their number


class NonEdges:
    r"""For every node the nodes that it has no edge to, itself aside.

    They are never listed. With the targets :math:`a_0 < a_1 < \dots` of a node's edges (itself
    among them), :math:`a_t - t` of the nodes below :math:`a_t` are not targets, so the r-th node
    that is none, from zero on, is

    .. math:: r + |\{t : a_t - t \le r\}|,

    which a search in the sorted numbers :math:`a_t - t` finds.

    Args:
        edge_index: ``(2, m)`` integers in ``[0, num_nodes)``, on the CPU; repeats do not matter.
        num_nodes: the number n of nodes.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        n = self.num_nodes = num_nodes
        own = torch.arange(n) * (n + 1)  # the pairs (i, i)
        pairs = torch.cat([edge_index[0] * n + edge_index[1], own]).unique()
        source, target = pairs // n, pairs % n
        degree = torch.bincount(source, minlength=n)
        self.start = degree.cumsum(0) - degree  # (n,) where the targets of a node begin
        place = torch.arange(len(pairs)) - self.start[source]
        self.keys = source * n + target - place  # sorted: a_t - t never falls
        self.count = n - degree  # (n,) non-edges of each node

    def draw(self, source: Tensor, number: int, rng: torch.Generator) -> Tensor:
        """Targets that the sources have no edge to, ``(k, number)``.

        In a row all are different and every set of them is equally likely. A source that has fewer
        has all of them, each as often as the others, give or take one.

        Args:
            source: ``(k,)`` nodes with at least one non-edge each.
            number: how many for each.
            rng: decides.
        """
        found = [self._draw(part, number, rng) for part in source.split(ROWS)]
        return torch.cat(found) if found else source.new_empty(0, number)

    def _draw(self, source: Tensor, number: int, rng: torch.Generator) -> Tensor:
        count = self.count[source]
        chosen = source.new_empty(len(source), number)
        # Floyd's way to different numbers: step s draws from one number more than step s - 1, and
        # takes the new one if the draw is there already.
        for s in range(number):
            last = (count - number + s).clamp(min=0)
            share = torch.rand(len(source), generator=rng, dtype=torch.float64)
            drawn = torch.minimum((share * (last + 1)).long(), last)
            taken = (chosen[:, :s] == drawn[:, None]).any(1)
            chosen[:, s] = torch.where(count < number, s % count, torch.where(taken, last, drawn))
        keys = source[:, None] * self.num_nodes + chosen
        below = torch.searchsorted(self.keys, keys, right=True) - self.start[source, None]
        return chosen + below
