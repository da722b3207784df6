"""The bare shape of a graph: who is next to whom, directions and repetitions aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Adjacency:
    """Neighbours of each node, each once, in ascending order; no self-loops.

    Args:
        ptr: ``(n + 1,)``: the neighbours of i are ``other[ptr[i]:ptr[i + 1]]``.
        other: ``(2 e,)`` for e pairs of neighbours.
    """

    ptr: Ints
    other: Ints

    @property
    def num_nodes(self) -> int:
        return len(self.ptr) - 1

    @property
    def degree(self) -> Ints:
        return np.diff(self.ptr)

    @property
    def rows(self) -> Ints:
        """The node whose neighbour each entry of ``other`` is, ``(2 e,)``."""
        return np.repeat(np.arange(self.num_nodes), self.degree)

    def of(self, nodes: Ints) -> Ints:
        """The neighbours of some nodes, one list after the other."""
        start, length = self.ptr[nodes], self.degree[nodes]
        ends = np.cumsum(length)
        skip = np.repeat(start - (ends - length), length)
        return self.other[skip + np.arange(ends[-1] if len(ends) else 0)]

    def within(self, nodes: Ints) -> Adjacency:
        """The part between some nodes, which are numbered in the order given."""
        number = np.full(self.num_nodes, -1)
        number[nodes] = np.arange(len(nodes))
        row, column = number[self.rows], number[self.other]
        both = (row >= 0) & (column >= 0)
        return pair_up(row[both], column[both], len(nodes))

    def between(self, start: int, end: int) -> Adjacency:
        """The nodes from ``start`` to ``end`` - 1, which must have no other neighbours."""
        first, last = self.ptr[start], self.ptr[end]
        return Adjacency(self.ptr[start : end + 1] - first, self.other[first:last] - start)


def adjacency(edge_index: Tensor, num_nodes: int) -> Adjacency:
    """Of the edges ``(2, m)`` of a graph."""
    source, target = edge_index.cpu().numpy()
    return pair_up(source, target, num_nodes)


def pair_up(source: Ints, target: Ints, num_nodes: int) -> Adjacency:
    """Of edges in whatever directions, some of them twice."""
    apart = source != target
    source, target = source[apart], target[apart]
    n = max(num_nodes, 1)
    # torch.unique sorts whole numbers several times faster than NumPy does.
    keys = np.concatenate([source * n + target, target * n + source]).astype(np.int64)
    pairs = torch.unique(torch.from_numpy(keys)).numpy()
    row, other = np.divmod(pairs, n)
    ptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=num_nodes), out=ptr[1:])
    return Adjacency(ptr, other)


def distances(graph: Adjacency, starts: Ints, limit: int | None = None) -> Ints:
    """Steps from the nearest of some nodes, ``(n,)``; -1 where they do not lead, or too far."""
    distance = np.full(graph.num_nodes, -1)
    distance[starts] = 0
    frontier, step = np.unique(starts), 0
    while len(frontier) and (limit is None or step < limit):
        step += 1
        reached = graph.of(frontier)
        frontier = np.unique(reached[distance[reached] < 0])
        distance[frontier] = step
    return distance


def components(graph: Adjacency) -> Ints:
    """The component of each node, ``(n,)``, numbered by their lowest nodes."""
    label = np.arange(graph.num_nodes)
    row, column = graph.rows, graph.other
    while True:
        # The lowest label of the neighbours; then labels follow their own labels to the end.
        lower = label.copy()
        np.minimum.at(lower, row, label[column])
        np.minimum.at(lower, label, lower.copy())
        while not np.array_equal(lower, lower[lower]):
            lower = lower[lower]
        if np.array_equal(lower, label):
            break
        label = lower
    return np.unique(label, return_inverse=True)[1].reshape(-1)
