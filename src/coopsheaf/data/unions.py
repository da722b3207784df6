"""Many graphs with targets at their nodes, as one graph that is not connected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.data.dataset import NodeDataset, Processing

STORED = Processing("stored", "keep", "raw")


class Piece(NamedTuple):
    """One of the graphs.

    Args:
        x: ``(n, F)`` features.
        edge_index: ``(2, m)``, both directions of every edge.
        y: ``(n,)`` targets.
        asked: ``(n,)`` boolean, the nodes whose target counts.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    asked: Tensor


def both_ways(pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Edges, each given once, in both directions: ``(2, 2m)``."""
    once = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    return torch.cat([once, once.flip(0)], dim=1)


def check_counts(counts: tuple[int, int, int], argument: str = "graphs") -> tuple[int, int, int]:
    """Numbers of graphs for training, validation and test, each at least one."""
    if len(counts) != 3:
        raise ValueError(f"`{argument}` must be three numbers: train, val, test; got {counts!r}")
    for count in counts:
        check_int(argument, count, minimum=1)
    return counts


def part_of_graphs(graphs: tuple[int, int, int]) -> Tensor:
    """0 for each graph of training, then 1 of validation, then 2 of test, ``(G,)``."""
    return torch.repeat_interleave(torch.arange(3), torch.tensor(graphs))


def join(
    name: str,
    pieces: Sequence[Piece],
    graphs: tuple[int, int, int],
    *,
    task: str,
    metric: str,
    class_names: tuple[str, ...] = (),
    remark: str = "",
) -> NodeDataset:
    """The graphs one after the other; a graph is in one part with all of its nodes.

    No edge joins two of them, so that nothing of one is seen in another, whatever is in a step.
    Where all have the same number of nodes, ``batch.kind="ranges"`` with ``batch.parts`` the number
    of graphs makes batches of whole graphs.
    """
    sizes = torch.tensor([len(piece.x) for piece in pieces])
    starts = (sizes.cumsum(0) - sizes).tolist()
    part = torch.repeat_interleave(part_of_graphs(graphs), sizes)
    asked = torch.cat([piece.asked for piece in pieces])
    train, val, test = ((asked & (part == k))[None] for k in range(3))
    edges = [piece.edge_index + start for piece, start in zip(pieces, starts, strict=True)]
    return NodeDataset(
        name=name,
        x=torch.cat([piece.x for piece in pieces]),
        edge_index=torch.cat(edges, dim=1),
        y=torch.cat([piece.y for piece in pieces]),
        train=train,
        val=val,
        test=test,
        task=task,
        metric=metric,
        class_names=class_names,
        processing=STORED,
        remark=remark,
    )
