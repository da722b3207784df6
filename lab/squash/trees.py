"""Many copies of one complete binary tree, laid out so that the tree costs nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph

EDGES = {
    "to-root": "each child to its parent, and a loop at each node",
    "to-leaves": "each parent to its children, and a loop at each node",
    "both-ways": "children to parents and parents to children, no loops",
}


class Forest:
    r"""``copies`` complete binary trees of one depth, node by node and edge by edge.

    Nodes are numbered level by level: first all roots, then all their children, tree after tree
    and left to right within each, and so on. With B trees the children of node p are nodes
    :math:`2p + B` and :math:`2p + B + 1`. So the nodes of the first k levels are a prefix, the two
    children of all nodes of a prefix are one contiguous slice, and a graph of each kind of edges
    is built once and kept.

    Args:
        depth: of each tree; it has :math:`2^{\text{depth} + 1} - 1` nodes.
        copies: number B of trees.
    """

    def __init__(self, depth: int, copies: int) -> None:
        self.depth = check_int("depth", depth, minimum=1)
        self.copies = check_int("copies", copies, minimum=1)
        self.tree_size = 2 ** (depth + 1) - 1
        self._graphs: dict[str, Graph] = {}
        start = torch.arange(copies).unsqueeze(1) * self.tree_size
        self.place = torch.cat([(start + level).flatten() for level in _levels(depth)])
        """Where each node is among trees in pre-order, one after the other: ``(B·N,)``."""

    @property
    def num_nodes(self) -> int:
        return self.copies * self.tree_size

    def up_to(self, level: int) -> int:
        """Number of nodes of the levels 0 to ``level``, which come first."""
        return self.copies * (2 ** (level + 1) - 1)

    def flatten(self, trees: Tensor) -> Tensor:
        """From trees in pre-order, ``(B, N, …)``, to nodes in the order of the forest."""
        expected = (self.copies, self.tree_size)
        if trees.shape[:2] != expected:
            raise ValueError(
                f"`trees` must have shape ({expected[0]}, {expected[1]}, ...); "
                f"got {tuple(trees.shape)}"
            )
        return trees.flatten(0, 1)[self.place]

    def graph(self, edges: str) -> Graph:
        """The graph of a kind of edges (``EDGES``); information flows along them."""
        check_choice("edges", edges, EDGES)
        if edges not in self._graphs:
            self._graphs[edges] = self._build(edges)
        return self._graphs[edges]

    def _build(self, edges: str) -> Graph:
        nodes = torch.arange(self.num_nodes)
        child = nodes[self.copies :]
        up = torch.stack([child, (child - self.copies) // 2])
        if edges == "both-ways":
            return Graph(torch.cat([up, up.flip(0)], dim=1), self.num_nodes)
        if edges == "to-leaves":
            return self.graph("to-root").reverse()
        return Graph(torch.cat([up, nodes.expand(2, -1)], dim=1), self.num_nodes)

    def __repr__(self) -> str:
        return f"Forest(depth={self.depth}, copies={self.copies})"


class Forests:
    """The forests of one depth, each number of copies built when it is first asked for."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._known: dict[int, Forest] = {}

    def __call__(self, copies: int) -> Forest:
        if copies not in self._known:
            self._known[copies] = Forest(self.depth, copies)
        return self._known[copies]


def _levels(depth: int) -> list[Tensor]:
    """The nodes of each level from left to right, as numbered in pre-order."""
    levels = [torch.zeros(1, dtype=torch.int64)]
    for level in range(depth):
        parent, left_size = levels[-1], 2 ** (depth - level) - 1
        levels.append(torch.stack([parent + 1, parent + 1 + left_size], dim=1).flatten())
    return levels
