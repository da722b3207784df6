"""A large heterophilic graph with communities, generated: for measuring, at any size."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from coopsheaf.checks import check_int, check_probability
from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.splits import stratified_split


def heterophilic_communities(
    num_nodes: int = 1_000_000,
    num_pairs: int = 10_000_000,
    *,
    num_classes: int = 5,
    num_features: int = 32,
    community: int = 1000,
    outside: float = 0.1,
    homophily: float = 0.1,
    signal: float = 0.5,
    shuffle: bool = True,
    seed: int = 0,
) -> NodeDataset:
    """Nodes of several classes in communities, most of whose edges join different classes.

    An edge starts at a random node of class c and ends at a random node of class c with probability
    ``homophily``, else of class c + 1 (modulo the number of classes): whom a node is joined to says
    which class it is, and says it differently for different classes. It ends outside the community
    with probability ``outside``, so that there are clusters to be found. Features are
    ``signal`` times a random unit vector per class, plus standard normal noise: a node's own say
    little, those of its neighbours together more. No loops, no edge twice, each in both
    directions; a random order of the nodes hides the communities, unless it is not wanted. One
    stratified 60/20/20 split.

    Args:
        num_nodes: n; every community of about ``community`` nodes has all classes.
        num_pairs: edges, counted once.
        num_classes: C, at least 2.
        num_features: F.
        community: nodes of a community.
        outside: share of edges that leave the community.
        homophily: share of edges within a class, about.
        signal: length of the class vectors.
        shuffle: whether to hide the communities; without, neighbours are near each other in memory,
            and sums over them several times as fast on large graphs.
        seed: of everything.
    """
    n = check_int("num_nodes", num_nodes, minimum=2)
    check_int("num_pairs", num_pairs, minimum=0)
    check_int("num_classes", num_classes, minimum=2)
    check_int("num_features", num_features, minimum=1)
    check_int("community", community, minimum=3 * num_classes)
    check_probability("outside", outside)
    check_probability("homophily", homophily)
    if n < community:
        raise ValueError(f"`num_nodes` must be at least one community, {community}; got {n}")
    if num_pairs > n * community // (2 * num_classes):
        raise ValueError(
            f"`num_pairs` must be at most {n * community // (2 * num_classes)}, or communities of "
            f"{community} nodes fill up; got {num_pairs}"
        )
    if not math.isfinite(signal):
        raise ValueError(f"`signal` must be finite; got {signal!r}")
    rng = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    # Nodes are laid out community by community, and class by class within one.
    count = n // community
    bounds = torch.arange(count * num_classes + 1) * n // (count * num_classes)

    def draw(size: int) -> Tensor:
        source = torch.randint(n, (size,), generator=rng)
        block = torch.searchsorted(bounds, source, right=True) - 1
        home, label = block // num_classes, block % num_classes
        away = torch.rand(size, generator=rng) < outside
        home = torch.where(away, torch.randint(count, (size,), generator=rng), home)
        step = (torch.rand(size, generator=rng) >= homophily).long()
        block = home * num_classes + (label + step) % num_classes
        start, width = bounds[block], bounds[block + 1] - bounds[block]
        offset = (torch.rand(size, generator=rng, dtype=torch.float64) * width).long()
        target = start + torch.minimum(offset, width - 1)
        keys = torch.minimum(source, target) * n + torch.maximum(source, target)
        return keys[source != target]

    keys = torch.empty(0, dtype=torch.int64)
    while keys.numel() < num_pairs:
        missing = num_pairs - keys.numel()
        keys = torch.cat([keys, draw(missing + missing // 8 + 16)]).unique()
    if keys.numel() > num_pairs:  # they are sorted: any cut would favour some nodes
        keys = keys[torch.randperm(keys.numel(), generator=rng)[:num_pairs]]
    rename = torch.randperm(n, generator=rng) if shuffle else torch.arange(n)
    pairs = rename[torch.stack([keys // n, keys % n])]
    y = torch.empty(n, dtype=torch.int64)
    blocks = torch.arange(count * num_classes) % num_classes
    y[rename] = torch.repeat_interleave(blocks, bounds.diff())
    centres = torch.randn(num_classes, num_features, generator=rng)
    centres = signal * torch.nn.functional.normalize(centres, dim=-1)
    x = torch.randn(n, num_features, generator=rng).add_(centres[y])
    masks = stratified_split(y, torch.ones(n, dtype=torch.bool), seed=seed)
    train, val, test = (mask[None] for mask in masks)
    return NodeDataset(
        name="heterophilic-communities",
        x=x,
        edge_index=torch.cat([pairs, pairs.flip(0)], dim=1),
        y=y,
        train=train,
        val=val,
        test=test,
        task="multiclass" if num_classes > 2 else "binary",
        metric="accuracy",
        class_names=tuple(str(c) for c in range(num_classes)),
        processing=Processing(direction="undirected", self_loops="remove"),
    )
