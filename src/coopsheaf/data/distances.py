"""Distances in long graphs: from a source, to the furthest node, and across."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.checks import check_choice, check_int
from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.unions import STORED, Piece, both_ways, check_counts, join, part_of_graphs

NAME = "echo-like"
BLOCKS = (20, 5, 5)  # of six graphs, for training, validation and test
MOST_HOPS = 40
FEWEST_HOPS = 8
ROWS = 3  # of a grid

Pairs = list[tuple[int, int]]


class Shape(NamedTuple):
    """A graph: its edges, each once, and its number of nodes."""

    pairs: Pairs
    num_nodes: int


# --- shapes whose size follows from how many hops they are across ---------------------------------


def line(hops: int) -> Shape:
    """A path of so many edges."""
    return Shape([(i, i + 1) for i in range(hops)], hops + 1)


def grid(hops: int, rows: int = ROWS) -> Shape:
    """So many rows; from corner to corner it is so many hops."""
    columns = hops - rows + 2
    across = [
        (r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)
    ]
    down = [
        (r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)
    ]
    return Shape(across + down, rows * columns)


def ladder(hops: int) -> Shape:
    """A grid of two rows."""
    return grid(hops, 2)


# --- shapes that grow to any number of nodes ------------------------------------------------------


def tree(hops: int, size: int, rng: torch.Generator) -> Shape:
    """A spine, and nodes that are hung on any node before them if that makes nothing longer."""
    return _grow(hops, size, rng, deepest=hops)


def caterpillar(hops: int, size: int, rng: torch.Generator) -> Shape:
    """A spine, and nodes that are hung on inner nodes of it."""
    return _grow(hops, size, rng, deepest=1)


def lobster(hops: int, size: int, rng: torch.Generator) -> Shape:
    """A spine, and nodes that are hung on it or on those that hang there."""
    return _grow(hops, size, rng, deepest=2)


def _grow(hops: int, size: int, rng: torch.Generator, deepest: int) -> Shape:
    """Nodes hung on a path of ``hops`` edges, at most so deep and never further out than its ends.

    A node that hangs k deep at place p of the spine is p + k and hops - p + k from the ends, so
    that k ≤ min(p, hops - p) keeps every distance at most ``hops``: two branches at p < q are
    k + (q - p) + l ≤ p + (q - p) + hops - q apart.
    """
    pairs = line(hops).pairs
    room = [min(place, hops - place, deepest) for place in range(hops + 1)]
    for node in range(hops + 1, size):
        open_ = [other for other, left in enumerate(room) if left > 0]
        parent = open_[int(torch.randint(len(open_), (1,), generator=rng))]
        pairs.append((parent, node))
        room.append(room[parent] - 1)
    return Shape(pairs, size)


FIXED: dict[str, Callable[[int], Shape]] = {"line": line, "ladder": ladder, "grid": grid}
GROWN: dict[str, Callable[[int, int, torch.Generator], Shape]] = {
    "tree": tree,
    "caterpillar": caterpillar,
    "lobster": lobster,
}
KINDS = (*FIXED, *GROWN)


def block_size(most_hops: int) -> int:
    """Nodes of six graphs, one of each kind: what the longest ones need, about a third more."""
    longest = sum(make(most_hops).num_nodes for make in FIXED.values())
    return longest + 3 * (most_hops + 1) + 2 * most_hops


def draw_block(fewest: int, most: int, rng: torch.Generator) -> list[Shape]:
    """Six graphs of one kind each, which together have :func:`block_size` nodes."""
    hops = torch.randint(fewest, most + 1, (len(KINDS),), generator=rng).tolist()
    shapes = [make(h) for make, h in zip(FIXED.values(), hops, strict=False)]
    left = block_size(most) - sum(shape.num_nodes for shape in shapes)
    spines = [h + 1 for h in hops[len(FIXED) :]]
    spare = left - sum(spines)
    for k, make in enumerate(GROWN.values()):
        more = spare * (k + 1) // 3 - spare * k // 3
        shapes.append(make(spines[k] - 1, spines[k] + more, rng))
    return shapes


# --- distances ------------------------------------------------------------------------------------


def all_distances(shape: Shape) -> Tensor:
    """Hops between all pairs of nodes of a connected graph, ``(n, n)``."""
    n = shape.num_nodes
    near = torch.eye(n)
    source, target = both_ways(shape.pairs)
    near[source, target] = 1
    found = torch.full((n, n), -1)
    reached, hop = torch.eye(n), 0
    while bool((found < 0).any()):
        found[(reached > 0) & (found < 0)] = hop
        reached, hop = ((reached @ near) > 0).float(), hop + 1
    return found


def echo_like(
    target: str = "sssp",
    *,
    blocks: tuple[int, int, int] = BLOCKS,
    fewest_hops: int = FEWEST_HOPS,
    most_hops: int = MOST_HOPS,
    seed: int = 0,
) -> NodeDataset | GraphDataset:
    """Three tasks in the manner of ECHO-Synth (Miglior et al., ICLR 2026), generated here.

    Graphs of six kinds, lines, ladders, grids of three rows, trees, caterpillars and lobsters, each
    from ``fewest_hops`` to ``most_hops`` across. Targets are hops:

    * ``"sssp"``: of every node from the source, a node that is drawn;
    * ``"ecc"``: of every node to the one that is furthest from it;
    * ``"diameter"``: the largest of these, one number for a graph.

    A node has two features: 1 at the source and 0 elsewhere (0 everywhere where there is no
    source), and a number drawn evenly from [0, 1). ECHO has 10,080 graphs of the same six kinds,
    with distances up to 40; its features, sizes and parts are not known to us, and the graphs are
    not the same: **numbers are not to be set beside ECHO's**. Six graphs at a time, one of each
    kind, have together exactly :func:`block_size` nodes, so that ``batch.kind="ranges"`` with
    ``batch.parts`` the number of blocks makes batches of whole graphs.

    Args:
        target: ``"sssp"``, ``"ecc"`` or ``"diameter"``.
        blocks: numbers of blocks of six graphs for training, validation and test.
        fewest_hops: at least 3.
        most_hops: at least ``fewest_hops``.
        seed: of everything.
    """
    check_choice("target", target, dict.fromkeys(("sssp", "ecc", "diameter")))
    fewest = check_int("fewest_hops", fewest_hops, minimum=ROWS)
    most = check_int("most_hops", most_hops, minimum=ROWS)
    if most < fewest:
        raise ValueError(f"`most_hops` must be at least `fewest_hops`, {fewest}; got {most}")
    rng = torch.Generator().manual_seed(check_int("seed", seed, minimum=0))
    count = sum(check_counts(blocks, "blocks"))
    shapes = [shape for _ in range(count) for shape in draw_block(fewest, most, rng)]
    graphs = (6 * blocks[0], 6 * blocks[1], 6 * blocks[2])
    name, pieces = f"{NAME}-{target}", [_piece(shape, target, rng) for shape in shapes]
    if target != "diameter":
        return join(name, pieces, graphs, task="regression", metric="mae")
    part = part_of_graphs(graphs)
    train, val, test = ((part == k).nonzero().squeeze(1) for k in range(3))
    return GraphDataset(
        name=name,
        graphs=[Data(x=p.x, edge_index=p.edge_index, y=p.y[:1, None]) for p in pieces],
        train=train,
        val=val,
        test=test,
        task="regression",
        metric="mae",
        processing=STORED,
    )


def _piece(shape: Shape, target: str, rng: torch.Generator) -> Piece:
    n, hops = shape.num_nodes, all_distances(shape)
    x = torch.stack([torch.zeros(n), torch.rand(n, generator=rng)], dim=1)
    source = int(torch.randint(n, (1,), generator=rng))  # in every task, so that graphs are alike
    if target == "sssp":
        x[source, 0], y = 1.0, hops[source]
    else:
        furthest = hops.amax(1)
        y = furthest if target == "ecc" else furthest.amax().expand(n)
    return Piece(x, both_ways(shape.pairs), y.float(), torch.ones(n, dtype=torch.bool))
