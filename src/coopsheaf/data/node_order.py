"""An order of the nodes in which neighbours lie near each other.

Sums over neighbours are as fast as memory is near. The order is found by label propagation: every
node starts in a group of its own and joins, round by round, the group in which most of its
neighbours are, as long as there is room in it. The groups are then taken for nodes and grouped in
turn, until there are few; nodes are listed by their groups of all levels, the coarsest first.
Directions and loops do not count. A round costs O(n + m); memory holds arrays of n, the edges
between groups, and a piece of all edges at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import torch
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.sheaves.graph import Graph

ROUNDS = 10
ROOM, GROWTH = 1024, 8  # nodes of a group at most, and how much larger those of the next level are
FEW = 16  # groups that need no order any more
# Entries looked at at once: nodes of a piece do not see each other move, and if all of a graph did
# so, two neighbours would change places for ever.
PIECES, SMALLEST, LARGEST = 32, 1 << 10, 1 << 17
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # times a number: looks random in its upper bits


class _Lists(NamedTuple):
    """Neighbours of every node, and how many edges lead to each."""

    ptr: Tensor  # (n + 1,)
    other: Tensor  # (m,)
    weight: Tensor | None  # (m,)


def community_order(graph: Graph) -> Tensor:
    """The nodes in an order of communities, ``(n,)``: a permutation; nothing in it is random.

    Args:
        graph: any graph, on the CPU.
    """
    sides = _neighbours(graph)
    sizes, room = torch.ones(graph.num_nodes, dtype=torch.int64), ROOM
    group = torch.arange(graph.num_nodes)  # of every node, at the level reached
    order = group
    levels = []
    while sizes.numel() > FEW:
        label = _propagate(sides, sizes, room)
        label = label.unique(return_inverse=True)[1]
        count = int(label.max()) + 1
        if count == sizes.numel():
            break
        group = label[group]
        levels.append(group)
        sizes = torch.zeros(count, dtype=torch.int64).index_add_(0, label, sizes)
        sides, room = [_contract(sides, label, count)], room * GROWTH
    for group in levels:  # stable, the coarsest at last
        order = order[torch.argsort(group[order], stable=True)]
    return order


def _neighbours(graph: Graph) -> list[_Lists]:
    into, out = (_Lists(side.ptr, side.other, None) for side in (graph.by_target, graph.by_source))
    same = torch.equal(into.ptr, out.ptr) and torch.equal(into.other, out.other)
    return [into] if same else [into, out]


def _propagate(sides: list[_Lists], sizes: Tensor, room: int) -> Tensor:
    """A group for every node, ``(n,)``, of at most ``room`` in all, about."""
    n = sizes.numel()
    label, filled = torch.arange(n), sizes.clone()
    for _ in range(ROUNDS):
        moved = 0
        for rows, row, other, weight in _pieces(sides):
            here, own = label[rows], sizes[rows]
            place, group, votes = _count(row, label[other], weight, n)
            stays = group == here[place]
            fits = stays | (filled[group] + own[place] <= room)
            # Most votes; of as many the group one is in; else what looks random.
            chance = (group * _MIX >> 44) & 0xFFFFF
            score = torch.where(fits, (2 * votes + stays.long() << 20) + chance, -1)
            best = torch.full_like(own, -1).scatter_reduce(0, place, score, "amax")
            chosen = ((score == best[place]) & fits).nonzero().squeeze(1)
            new = here.scatter(0, place[chosen], group[chosen])
            filled.index_add_(0, here, -own)
            filled.index_add_(0, new, own)
            moved += int((new != here).sum())
            label[rows] = new
        if moved <= n // 100:
            break
    return label


def _count(row: Tensor, group: Tensor, weight: Tensor | None, n: int) -> tuple[Tensor, ...]:
    """How many edges lead from each row into each group: rows, groups, numbers."""
    keys, order = (row * n + group).sort()
    if weight is None:
        keys, votes = keys.unique_consecutive(return_counts=True)
    else:
        keys, entry = keys.unique_consecutive(return_inverse=True)
        votes = torch.zeros_like(keys).index_add_(0, entry, weight[order])
    return keys // n, keys % n, votes


def _contract(sides: list[_Lists], label: Tensor, count: int) -> _Lists:
    """The edges between groups, each once with how many there are."""
    keys = torch.empty(0, dtype=torch.int64)
    votes = torch.empty(0, dtype=torch.int64)
    waiting: list[tuple[Tensor, Tensor]] = []

    def merge() -> tuple[Tensor, Tensor]:
        every = torch.cat([keys, *(part for part, _ in waiting)])
        numbers = torch.cat([votes, *(part for _, part in waiting)])
        found, entry = every.unique(return_inverse=True)
        waiting.clear()
        return found, torch.zeros_like(found).index_add_(0, entry, numbers)

    for rows, row, other, weight in _pieces(sides):
        here, there = label[rows][row], label[other]
        between = here != there
        part = None if weight is None else weight[between]
        row, group, number = _count(here[between], there[between], part, count)
        waiting.append((row * count + group, number))
        if sum(len(part) for part, _ in waiting) > max(keys.numel(), 1 << 22):
            keys, votes = merge()
    keys, votes = merge()
    ptr = torch.searchsorted(keys, torch.arange(count + 1) * count)
    return _Lists(ptr, keys % count, votes)


def _pieces(sides: list[_Lists]) -> Iterator[tuple[slice, Tensor, Tensor, Tensor | None]]:
    """Some rows at a time: which, and for their entries the place of the row, the other end and
    the weight."""
    ptr = sides[0].ptr if len(sides) == 1 else sides[0].ptr + sides[1].ptr
    n, m = ptr.numel() - 1, int(ptr[-1])
    size = max(SMALLEST, min(LARGEST, m // PIECES))
    start = 0
    while start < n:
        end = int(torch.searchsorted(ptr, ptr[start] + size, right=True)) - 1
        rows = slice(start, min(n, max(end, start + 1)))
        places = torch.arange(rows.stop - rows.start)
        parts = [side.ptr[rows.start : rows.stop + 1] for side in sides]
        row = torch.cat([places.repeat_interleave(part.diff()) for part in parts])
        cuts = [slice(int(part[0]), int(part[-1])) for part in parts]
        other = torch.cat([side.other[cut] for side, cut in zip(sides, cuts, strict=True)])
        weight = None if sides[0].weight is None else sides[0].weight[cuts[0]]
        yield rows, row, other.long(), weight
        start = rows.stop


class NodeNumbers(Sequence[str]):
    """The names of nodes that have been renumbered and had none: their old numbers.

    Args:
        order: ``(n,)`` old numbers.
    """

    def __init__(self, order: Tensor) -> None:
        self.order = order

    def __len__(self) -> int:
        return self.order.numel()

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return NodeNumbers(self.order[place])
        return str(int(self.order[place]))

    def __iter__(self) -> Iterator[str]:
        for part in self.order.split(LARGEST):
            yield from map(str, part.tolist())

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        text = str(value)
        if text.isascii() and text.isdigit() and str(int(text)) == text:
            found = (self.order[start:stop] == int(text)).nonzero()
            if len(found):
                return start + int(found[0])
        raise ValueError(f"{value!r} is not a number of a node")

    def __contains__(self, value: object) -> bool:
        try:
            self.index(value)
        except ValueError:
            return False
        return True


def reorder(dataset: NodeDataset, order: Tensor) -> NodeDataset:
    """A dataset with its nodes in another order, and its edges by their targets.

    Args:
        dataset: any.
        order: ``(n,)``, the nodes in their new order.
    """
    n = dataset.num_nodes
    rank = torch.empty(n, dtype=torch.int64).scatter_(0, order, torch.arange(n))
    edge_index = rank[dataset.edge_index]
    edges = torch.argsort(edge_index[1], stable=True)
    weight, attr, names = dataset.edge_weight, dataset.edge_attr, dataset.node_ids
    ids: Sequence[str] = NodeNumbers(order)
    if isinstance(names, NodeNumbers):
        ids = NodeNumbers(names.order[order])
    elif names:
        ids = tuple(names[i] for i in order.tolist())
    text = f"{dataset.checksum}, community order"
    return NodeDataset(
        name=dataset.name,
        x=dataset.x[order],
        edge_index=edge_index[:, edges],
        y=dataset.y[order],
        train=dataset.train[:, order],
        val=dataset.val[:, order],
        test=dataset.test[:, order],
        task=dataset.task,
        metric=dataset.metric,
        class_names=dataset.class_names,
        node_ids=ids,
        edge_weight=None if weight is None else weight[edges],
        # Other batches come from other numbers: it is not the same data to a run.
        checksum=hashlib.sha256(text.encode()).hexdigest() if dataset.checksum else "",
        processing=dataset.processing,
        remark=dataset.remark,
        edge_attr=None if attr is None else attr[edges],
        edge_names=dataset.edge_names,
    )
