"""Communities whose arcs tell the class by their direction, by homophily, or by some of both."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.splits import stratified_split

NAME = "directed-communities"

# (side, class) of the four communities, in the order in which arcs go round.
ROUND = ((0, 0), (1, 0), (1, 1), (0, 1))


def directed_communities(
    num_nodes: int = 1000,
    num_arcs: int = 8000,
    *,
    direction: float = 1.0,
    side: float = 0.95,
    signal: float = 0.7,
    num_splits: int = 10,
    seed: int = 0,
) -> NodeDataset:
    r"""Two classes, and a knob for how much the direction of arcs tells of them.

    A node has a class and a side, 0 or 1 each, independent of each other: four communities of the
    same size. It has two features, each 1 or -1: its side, right with probability ``side``, and a
    hint of its class, right with a probability that falls from ``signal`` at ``direction=0`` to ½
    at ``direction=1``. An arc is one of two kinds:

    * with probability ``direction`` it goes one step round the circle of communities (side, class)
      = (0, 0) → (1, 0) → (1, 1) → (0, 1) → (0, 0). A node of class 0 is pointed to by side 0 and
      points to side 1, a node of class 1 is pointed to by side 1 and points to side 0. Exchanging
      the classes turns the circle round and changes nothing else: *only the direction tells the
      class.*
    * else it joins two random nodes of one class, whatever their sides, either way with the same
      probability. *Only homophily tells the class*, to whoever averages the hints.

    At ``direction=1`` features and pairs of neighbours have the same distribution for both classes:
    what a network that does not know directions learns of the test nodes, it has from training
    labels around them, of which it has to know the nodes apart. That features take four values is
    to make this hard; with features of many digits it is easy. One that knows directions has all it
    needs one hop away. At ``direction=0`` directions are noise. No loops, no arc twice.

    Args:
        num_nodes: n, a multiple of 4.
        num_arcs: arcs.
        direction: share of arcs that tell by their direction, about: between 0 and 1.
        side: how often the first feature is the side, from ½ to 1.
        signal: how often the second one is the class at ``direction=0``, from ½ to 1.
        num_splits: stratified 60/20/20 splits.
        seed: of everything; split k is that of seed + k.
    """
    n, m = check_int("num_nodes", num_nodes, minimum=12), check_int("num_arcs", num_arcs, minimum=0)
    check_int("num_splits", num_splits, minimum=1)
    for name, value, least in (
        ("direction", direction, 0),
        ("side", side, 0.5),
        ("signal", signal, 0.5),
    ):
        if not least <= value <= 1:
            raise ValueError(f"`{name}` must be a number in [{least}, 1]; got {value!r}")
    if n % 4:
        raise ValueError(f"`num_nodes` must be a multiple of 4, the communities; got {n}")
    if m > n * n // 16:
        raise ValueError(
            f"`num_arcs` must be at most {n * n // 16}, or communities fill up; got {m}"
        )
    rng = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    keys = torch.empty(0, dtype=torch.int64)
    while keys.numel() < m:
        drawn = _draw(m - keys.numel() + 16, n, direction, rng)
        keys = torch.cat([keys, drawn]).unique()
    keys = keys[torch.randperm(keys.numel(), generator=rng)[:m]]
    # Node i stands in community i // (n / 4) until a random order hides it.
    rename = torch.randperm(n, generator=rng)
    known = torch.empty(n, 2, dtype=torch.int64)
    known[rename] = torch.tensor(ROUND).repeat_interleave(n // 4, dim=0)
    right = torch.tensor([side, 0.5 + (signal - 0.5) * (1 - direction)])
    shown = torch.where(torch.rand(n, 2, generator=rng) < right, known, 1 - known)
    y, everybody = known[:, 1].clone(), torch.ones(n, dtype=torch.bool)
    parts = [stratified_split(y, everybody, seed=seed + k) for k in range(num_splits)]
    train, val, test = (torch.stack(masks) for masks in zip(*parts, strict=True))
    return NodeDataset(
        name=NAME,
        x=(2 * shown - 1).float(),
        edge_index=rename[torch.stack([keys // n, keys % n])],
        y=y,
        train=train,
        val=val,
        test=test,
        task="binary",
        metric="accuracy",
        class_names=("0", "1"),
        processing=Processing(direction="stored"),
    )


def told_by_direction(percent: int) -> NodeDataset:
    """The graph of this name in the catalogue: so many per cent of the arcs tell by direction."""
    return replace(directed_communities(direction=percent / 100), name=f"{NAME}-{percent}")


def _draw(size: int, n: int, direction: float, rng: torch.Generator) -> Tensor:
    """At most ``size`` arcs as keys u · n + v; some may be there twice."""
    quarter = n // 4
    source = torch.randint(n, (size,), generator=rng)
    place = source // quarter
    turns = torch.rand(size, generator=rng) < direction
    # Those of one class are beside each other on the circle: 0 and 1, 2 and 3.
    same = place - place % 2 + torch.randint(2, (size,), generator=rng)
    community = torch.where(turns, (place + 1) % 4, same)
    target = community * quarter + torch.randint(quarter, (size,), generator=rng)
    return (source * n + target)[source != target]
