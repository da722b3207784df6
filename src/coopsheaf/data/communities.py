"""A large heterophilic graph with communities, generated: for measuring, at any size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from coopsheaf.checks import check_int, check_probability
from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.pack_stream import stream_pack
from coopsheaf.data.splits import stratified_split

NAME = "heterophilic-communities"
PIECE = 1 << 21  # edges drawn at once, and nodes whose features are


@dataclass(frozen=True)
class Communities:
    """Nodes laid out community by community, and class by class within one; see below."""

    num_nodes: int
    num_classes: int
    num_features: int
    community: int
    outside: float
    homophily: float
    signal: float

    def __post_init__(self) -> None:
        check_int("num_nodes", self.num_nodes, minimum=2)
        check_int("num_classes", self.num_classes, minimum=2)
        check_int("num_features", self.num_features, minimum=1)
        check_int("community", self.community, minimum=3 * self.num_classes)
        check_probability("outside", self.outside)
        check_probability("homophily", self.homophily)
        if self.num_nodes < self.community:
            raise ValueError(
                f"`num_nodes` must be at least one community, {self.community}; "
                f"got {self.num_nodes}"
            )
        if not math.isfinite(self.signal):
            raise ValueError(f"`signal` must be finite; got {self.signal!r}")

    def check_pairs(self, num_pairs: int) -> None:
        check_int("num_pairs", num_pairs, minimum=0)
        most = self.num_nodes * self.community // (2 * self.num_classes)
        if num_pairs > most:
            raise ValueError(
                f"`num_pairs` must be at most {most}, or communities of {self.community} nodes "
                f"fill up; got {num_pairs}"
            )

    @property
    def count(self) -> int:
        """Number of communities."""
        return self.num_nodes // self.community

    def bounds(self) -> Tensor:
        """Where the nodes of each class of each community begin, and the number of nodes."""
        blocks = self.count * self.num_classes
        return torch.arange(blocks + 1) * self.num_nodes // blocks

    def classes(self) -> Tensor:
        """The class of every node, ``(n,)``."""
        blocks = torch.arange(self.count * self.num_classes) % self.num_classes
        return torch.repeat_interleave(blocks, self.bounds().diff())

    def centres(self, rng: torch.Generator) -> Tensor:
        """What the features of each class lie around, ``(C, F)``."""
        centres = torch.randn(self.num_classes, self.num_features, generator=rng)
        return self.signal * torch.nn.functional.normalize(centres, dim=-1)

    def draw(self, size: int, rng: torch.Generator) -> Tensor:
        """At most ``size`` edges as keys u · n + v with u < v; some may be there twice."""
        n, classes, bounds = self.num_nodes, self.num_classes, self.bounds()
        source = torch.randint(n, (size,), generator=rng)
        block = torch.searchsorted(bounds, source, right=True) - 1
        home, label = block // classes, block % classes
        away = torch.rand(size, generator=rng) < self.outside
        home = torch.where(away, torch.randint(self.count, (size,), generator=rng), home)
        step = (torch.rand(size, generator=rng) >= self.homophily).long()
        block = home * classes + (label + step) % classes
        start, width = bounds[block], bounds[block + 1] - bounds[block]
        offset = (torch.rand(size, generator=rng, dtype=torch.float64) * width).long()
        target = start + torch.minimum(offset, width - 1)
        keys = torch.minimum(source, target) * n + torch.maximum(source, target)
        return keys[source != target]


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
    plan = Communities(num_nodes, num_classes, num_features, community, outside, homophily, signal)
    n = num_nodes
    plan.check_pairs(num_pairs)
    rng = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    keys = torch.empty(0, dtype=torch.int64)
    while keys.numel() < num_pairs:
        missing = num_pairs - keys.numel()
        keys = torch.cat([keys, plan.draw(missing + missing // 8 + 16, rng)]).unique()
    if keys.numel() > num_pairs:  # they are sorted: any cut would favour some nodes
        keys = keys[torch.randperm(keys.numel(), generator=rng)[:num_pairs]]
    rename = torch.randperm(n, generator=rng) if shuffle else torch.arange(n)
    pairs = rename[torch.stack([keys // n, keys % n])]
    y = torch.empty(n, dtype=torch.int64)
    y[rename] = plan.classes()
    centres = plan.centres(rng)
    x = torch.randn(n, num_features, generator=rng).add_(centres[y])
    masks = stratified_split(y, torch.ones(n, dtype=torch.bool), seed=seed)
    train, val, test = (mask[None] for mask in masks)
    return NodeDataset(
        name=NAME,
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


def pack_communities(
    folder: str | Path,
    num_nodes: int = 10_000_000,
    num_pairs: int = 100_000_000,
    *,
    num_classes: int = 5,
    num_features: int = 32,
    community: int = 1000,
    outside: float = 0.1,
    homophily: float = 0.1,
    signal: float = 0.5,
    shuffle: bool = True,
    seed: int = 0,
) -> Path:
    """A graph like that of :func:`heterophilic_communities`, written straight into a pack.

    Memory holds what has the size of nodes, but never all edges. Edges that are drawn twice are
    there once: they are a few per cent fewer than asked for.

    Args:
        folder: of the new pack.
        num_nodes: n.
        num_pairs: edges that are drawn, counted once.
        num_classes, num_features, community, outside, homophily, signal, shuffle, seed: see
            :func:`heterophilic_communities`.
    """
    plan = Communities(num_nodes, num_classes, num_features, community, outside, homophily, signal)
    plan.check_pairs(num_pairs)
    rng = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    rename = torch.randperm(num_nodes, generator=rng) if shuffle else torch.arange(num_nodes)
    y = torch.empty(num_nodes, dtype=torch.int64)
    y[rename] = plan.classes()
    centres = plan.centres(rng)

    def edges() -> Iterator[Tensor]:
        for first in range(0, num_pairs, PIECE):
            keys = plan.draw(min(PIECE, num_pairs - first), rng)
            pairs = rename[torch.stack([keys // num_nodes, keys % num_nodes])]
            yield torch.cat([pairs, pairs.flip(0)], dim=1)

    def features() -> Iterator[Tensor]:
        for part in y.split(PIECE):
            yield torch.randn(len(part), num_features, generator=rng).add_(centres[part])

    masks = stratified_split(y, torch.ones(num_nodes, dtype=torch.bool), seed=seed)
    train, val, test = (mask[None] for mask in masks)
    return stream_pack(
        folder,
        edges(),
        num_nodes=num_nodes,
        num_edges=2 * num_pairs,
        x=features(),
        num_features=num_features,
        y=y,
        masks=(train, val, test),
        task="multiclass" if num_classes > 2 else "binary",
        metric="accuracy",
        name=NAME,
        class_names=tuple(str(c) for c in range(num_classes)),
        processing=Processing(direction="undirected", self_loops="remove"),
    )
