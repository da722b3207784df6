"""Synthetic tasks: minesweeper, NeighborsMatch trees and contextual stochastic block models."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data

from coopsheaf.checks import check_int, check_probability
from coopsheaf.data.dataset import GraphDataset, NodeDataset, Processing
from coopsheaf.data.splits import stratified_split

MINE_COUNTS = 6  # 0, 1, 2, 3, 4 and "5 or more" mines around a node
MAX_PERMUTATIONS = 1000
MAX_EXAMPLES = 32_000


# --- minesweeper -----------------------------------------------------------------------------


def grid_edges(height: int, width: int) -> Tensor:
    """The grid in which each node has its eight neighbours: ``(2, m)``, each edge once.

    Node ``row * width + column``; the smaller end is first and the edges are in ascending order.
    """
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    pairs = []
    for down, right in ((0, 1), (1, -1), (1, 0), (1, 1)):
        row, column = rows + down, columns + right
        inside = (row < height) & (column >= 0) & (column < width)
        source, target = rows * width + columns, row * width + column
        pairs.append(torch.stack([source[inside], target[inside]]))
    edges = torch.cat(pairs, dim=1)
    return edges[:, torch.argsort(edges[0] * (height * width) + edges[1])]


def minesweeper_features(mines: Tensor, hidden: Tensor, edge_index: Tensor) -> Tensor:
    """What a player sees at each node: ``(n, 7)``, one-hot.

    Column 0: unknown. Column ``1 + c``: ``c`` of the neighbours are mines, for ``c`` from 0 to 4;
    column 6: five or more. Whether the node itself is a mine is not among the features.

    Args:
        mines: ``(n,)`` boolean.
        hidden: ``(n,)`` boolean, the nodes whose count is not shown.
        edge_index: ``(2, m)``, each edge once.
    """
    ones, (left, right) = mines.long(), edge_index
    count = torch.zeros_like(ones).index_add_(0, left, ones[right])
    count = count.index_add_(0, right, ones[left]).clamp(max=MINE_COUNTS - 1)
    column = torch.where(hidden, torch.zeros_like(count), count + 1)
    return one_hot(column, MINE_COUNTS + 1).float()


def minesweeper(
    *,
    height: int = 100,
    width: int = 100,
    mine_density: float = 0.2,
    hidden: float = 0.5,
    seed: int = 0,
    num_splits: int = 10,
) -> NodeDataset:
    """The minesweeper task of the heterophilous graph benchmark, generated.

    A grid with eight neighbours; a share ``mine_density`` of the nodes are mines (label 1); the
    features are the number of mines around a node, hidden at a share ``hidden`` of the nodes.
    Splits are random, 50/25/25, stratified. As in the published file each edge is stored once, so
    train on ``dataset.process(Processing(direction="undirected"))``.
    """
    n = check_int("height", height, minimum=2) * check_int("width", width, minimum=2)
    check_int("num_splits", num_splits, minimum=1)
    mine_count = round(n * check_probability("mine_density", mine_density))
    hidden_count = round(n * check_probability("hidden", hidden))
    if not 3 <= mine_count <= n - 3:
        raise ValueError(
            "`mine_density` must leave at least three mines and three safe nodes, so that each "
            f"part of a split has both; got {mine_density!r} on {n} nodes"
        )
    generator = _generator(seed)
    edge_index = grid_edges(height, width)
    mines = _choose(n, mine_count, generator)
    x = minesweeper_features(mines, _choose(n, hidden_count, generator), edge_index)
    seeds = torch.randint(2**31, (num_splits,), generator=generator).tolist()
    y, known = mines.long(), torch.ones(n, dtype=torch.bool)
    splits = [stratified_split(y, known, seed=s, ratios=(0.5, 0.25, 0.25)) for s in seeds]
    train, val, test = (torch.stack(masks) for masks in zip(*splits, strict=True))
    return NodeDataset(
        name="minesweeper-generated",
        x=x,
        edge_index=edge_index,
        y=y,
        train=train,
        val=val,
        test=test,
        task="binary",
        metric="auroc",
        class_names=("safe", "mine"),
    )


# --- NeighborsMatch --------------------------------------------------------------------------


@dataclass(frozen=True)
class NeighborsMatch:
    """Trees that all have one shape and differ in their features.

    Args:
        depth: of the complete binary tree with ``N = 2 ** (depth + 1) - 1`` nodes, numbered in
            pre-order; the root is node 0.
        edge_index: ``(2, 2N - 1)``: each child to its parent, then a self-loop at each node.
        leaves: ``(2 ** depth,)`` the leaves from left to right.
        features: ``(examples, N, 2)`` int16 pairs of key and value. Root: ``(k, 0)``; leaf
            number ``q``, counted from 1: ``(q, v_q)``; between them ``(0, 0)``.
        labels: ``(examples,)`` ``v_k``, from 1 to ``2 ** depth``.
        train, test: positions of the examples of each part, shuffled.
    """

    depth: int
    edge_index: Tensor
    leaves: Tensor
    features: Tensor
    labels: Tensor
    train: Tensor
    test: Tensor

    @property
    def num_examples(self) -> int:
        return self.features.shape[0]

    @property
    def num_nodes(self) -> int:
        """Nodes of one tree."""
        return self.features.shape[1]

    @property
    def num_classes(self) -> int:
        """Labels start at 1, so class 0 exists and is never used."""
        return 2**self.depth + 1

    def to_dataset(self) -> GraphDataset:
        """One ``Data`` per example, for small depths.

        Each has ``x`` ``(N, 2)`` int64 and ``y`` ``(1,)``. The task asks whether a model can fit
        its training examples, so validation is the training part.
        """
        graphs = [
            Data(x=x.long(), edge_index=self.edge_index, y=label)
            for x, label in zip(self.features, self.labels.split(1), strict=True)
        ]
        return GraphDataset(
            name=f"neighbors-match-{self.depth}",
            graphs=graphs,
            train=self.train,
            val=self.train,
            test=self.test,
            task="multiclass",
            metric="accuracy",
            class_names=("unused", *(str(k) for k in range(1, self.num_classes))),
            remark="validation is the training part",
        )


def neighbors_match(depth: int, *, seed: int = 11) -> NeighborsMatch:
    """The Tree-NeighborsMatch problem of "On the Bottleneck of Graph Neural Networks".

    The root holds a key, each leaf a key and a value; the label is the value of the leaf whose key
    is the root's. Values are a permutation of 1 to ``2 ** depth``: all 24 at depth 2, 1000 drawn
    without replacement at depth 3, ``min(1000, 32000 // 2 ** depth)`` independent ones below;
    each comes with every key. So every label is equally frequent. Four fifths of the examples
    of each label are for training.
    """
    check_int("depth", depth, minimum=2)
    if depth > 12:
        raise ValueError(f"`depth` must be at most 12 (memory doubles per level); got {depth}")
    check_int("seed", seed, minimum=0)
    parent, leaves = _binary_tree(depth)
    n, num_leaves = len(parent), len(leaves)
    keys = torch.arange(1, num_leaves + 1, dtype=torch.int16)
    values = _permutations(depth, seed)  # (P, leaves)
    count = len(values)
    features = torch.zeros(count, num_leaves, n, 2, dtype=torch.int16)  # (P, keys, N, 2)
    features[:, :, 0, 0] = keys
    features[:, :, leaves, 0] = keys
    features[:, :, leaves, 1] = values[:, None, :]
    labels = values.long().flatten()  # the value of key k is the k-th of its permutation
    train, test = _train_test(labels, _generator(seed))
    nodes = torch.arange(n)
    child_to_parent = torch.stack([nodes[1:], parent[1:]])
    return NeighborsMatch(
        depth=depth,
        edge_index=torch.cat([child_to_parent, nodes.expand(2, n)], dim=1),
        leaves=leaves,
        features=features.view(count * num_leaves, n, 2),
        labels=labels,
        train=train,
        test=test,
    )


def _binary_tree(depth: int) -> tuple[Tensor, Tensor]:
    """``(N,)`` parents (the root's is itself) and ``(2 ** depth,)`` leaves, in pre-order."""
    n = 2 ** (depth + 1) - 1
    parent = torch.zeros(n, dtype=torch.int64)
    leaves = []
    stack = [(0, n - 1)]  # a node and the last node of its subtree
    while stack:
        node, last = stack.pop()
        if node == last:
            leaves.append(node)
            continue
        left, right = node + 1, node + 1 + (last - node) // 2
        parent[left] = parent[right] = node
        stack += [(right, last), (left, right - 1)]
    return parent, torch.tensor(leaves)


def _permutations(depth: int, seed: int) -> Tensor:
    """``(P, 2 ** depth)`` int16 permutations of 1 to ``2 ** depth``."""
    num_leaves = 2**depth
    if depth <= 3:
        every = list(itertools.permutations(range(1, num_leaves + 1)))
        chosen = random.Random(seed).sample(every, min(MAX_PERMUTATIONS, len(every)))
        return torch.tensor(chosen, dtype=torch.int16)
    count = min(MAX_PERMUTATIONS, MAX_EXAMPLES // num_leaves)
    # RandomState, unlike numpy's newer generators, promises the same stream in every version.
    state = np.random.RandomState(seed)
    drawn = [state.permutation(np.arange(1, num_leaves + 1)) for _ in range(count)]
    return torch.from_numpy(np.stack(drawn).astype(np.int16))


def _train_test(labels: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Positions of 80 % and 20 % of each (equally frequent) label, each part shuffled."""
    m = len(labels)
    shuffle = torch.randperm(m, generator=generator)
    order = shuffle[torch.argsort(labels[shuffle], stable=True)]
    per_label = order.view(-1, int((labels == labels[0]).sum()))  # (labels, examples of each)
    cut = per_label.shape[1] * 4 // 5
    train, test = per_label[:, :cut].flatten(), per_label[:, cut:].flatten()
    return (
        train[torch.randperm(len(train), generator=generator)],
        test[torch.randperm(len(test), generator=generator)],
    )


# --- contextual stochastic block model -------------------------------------------------------


def contextual_sbm(
    num_nodes: int,
    average_degree: float,
    *,
    num_classes: int = 2,
    homophily: float,
    num_features: int,
    signal: float,
    directed: bool = False,
    seed: int = 0,
) -> NodeDataset:
    """A random graph with classes of equal size and a chosen homophily, of any size.

    A share ``homophily`` of the edges, exact up to rounding, joins nodes of one class. There are
    ``num_nodes * average_degree`` edges (undirected: half as many pairs, each stored both ways),
    no loops and no edge twice. The features of a node of class ``c`` are
    ``signal * direction_c + noise`` with a random unit vector per class and standard normal noise.
    One stratified 60/20/20 split.
    """
    n = check_int("num_nodes", num_nodes, minimum=2)
    check_int("num_classes", num_classes, minimum=2)
    check_int("num_features", num_features, minimum=1)
    if num_classes * 3 > n:
        raise ValueError(f"`num_nodes` must be at least 3 per class; got {n} for {num_classes}")
    if not 0 <= homophily <= 1:
        raise ValueError(f"`homophily` must be a number in [0, 1]; got {homophily!r}")
    if not (0 <= average_degree < math.inf and math.isfinite(signal)):
        raise ValueError(
            "`average_degree` and `signal` must be finite and the degree not negative; "
            f"got {average_degree!r} and {signal!r}"
        )
    generator = _generator(seed)
    # Nodes are first laid out class by class; a random order then hides that.
    bounds = torch.arange(num_classes + 1) * n // num_classes  # class c is bounds[c]..bounds[c+1]
    total = round(n * average_degree / (1 if directed else 2))
    within = round(total * homophily)
    parts = [
        _draw_edges(count, bounds, generator, within=kind, directed=directed)
        for count, kind in ((within, True), (total - within, False))
    ]
    rename = torch.randperm(n, generator=generator)
    edge_index = rename[torch.cat(parts, dim=1)]
    if not directed:
        edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    edge_index = edge_index[:, torch.argsort(edge_index[0] * n + edge_index[1])]
    y = torch.empty(n, dtype=torch.int64)
    y[rename] = torch.repeat_interleave(torch.arange(num_classes), bounds.diff())
    centres = torch.randn(num_classes, num_features, generator=generator)
    centres = signal * torch.nn.functional.normalize(centres, dim=-1)
    x = torch.randn(n, num_features, generator=generator).add_(centres[y])
    masks = stratified_split(y, torch.ones(n, dtype=torch.bool), seed=seed)
    train, val, test = (mask[None] for mask in masks)
    return NodeDataset(
        name="contextual-sbm",
        x=x,
        edge_index=edge_index,
        y=y,
        train=train,
        val=val,
        test=test,
        task="binary" if num_classes == 2 else "multiclass",
        metric="accuracy",
        class_names=tuple(str(c) for c in range(num_classes)),
        processing=Processing(direction="stored" if directed else "undirected"),
    )


def _draw_edges(
    count: int, bounds: Tensor, generator: torch.Generator, *, within: bool, directed: bool
) -> Tensor:
    """``(2, count)`` different edges within the classes or between them."""
    n, sizes = int(bounds[-1]), bounds.diff()
    same = int((sizes * (sizes - 1)).sum())
    room = (same if within else n * (n - 1) - same) // (1 if directed else 2)
    if count > room:
        place = "within" if within else "between"
        raise ValueError(
            f"`average_degree` and `homophily` ask for {count} edges {place} the classes, where "
            f"there is room for {room}: lower the degree or change the homophily"
        )
    keys = torch.empty(0, dtype=torch.int64)
    while len(keys) < count:
        # The fuller the room, the more draws are repetitions; the cap bounds the memory.
        missing = count - len(keys)
        draws = min(missing * room // (room - len(keys)) + 16, 4 * count + 16)
        new = _draw_keys(draws, bounds, generator, within=within, directed=directed)
        keys = torch.unique(torch.cat([keys, new]))
    if len(keys) > count:
        keys = keys[torch.randperm(len(keys), generator=generator)[:count]]
    return torch.stack([keys // n, keys % n])


def _draw_keys(
    draws: int, bounds: Tensor, generator: torch.Generator, *, within: bool, directed: bool
) -> Tensor:
    """``(draws,)`` random edges as ``source * n + target``, repetitions possible."""
    n = int(bounds[-1])
    source = torch.randint(n, (draws,), generator=generator)
    block = torch.searchsorted(bounds, source, right=True) - 1
    start, size = bounds[block], bounds[block + 1] - bounds[block]
    # 62 random bits modulo a size below 2**31: the bias is below one in a thousand million.
    bits = torch.randint(2**62, (draws,), generator=generator)
    if within:
        offset = bits % (size - 1)
        target = start + offset + (offset >= source - start)
    else:
        offset = bits % (n - size)
        target = offset + torch.where(offset >= start, size, 0)
    if directed:
        return source * n + target
    return torch.minimum(source, target) * n + torch.maximum(source, target)


def _choose(n: int, count: int, generator: torch.Generator) -> Tensor:
    """``(n,)`` mask of ``count`` random nodes."""
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.randperm(n, generator=generator)[:count]] = True
    return mask


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
