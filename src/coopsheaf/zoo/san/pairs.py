"""All pairs of nodes of each graph that no edge joins, as small dense blocks."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph

# Pairs that graphs of about one size are put side by side for.
PAIRS = 1 << 20


class Block(NamedTuple):
    """Some graphs of a batch side by side, filled up to the size of the largest."""

    nodes: Tensor  # (g, s): which nodes of the batch; 0 where there is none
    real: Tensor  # (g, s): whether there is one
    apart: Tensor  # (g, s, s): row i, column j: both are there, and there is no edge j→i


def pair_blocks(
    graph: Graph, batch: Tensor | None = None, *, most_nodes: int = 5000
) -> list[Block]:
    """The pairs that no edge joins, the pairs (i, i) among them, graph by graph.

    Graphs of similar sizes share a block, so that little is filled up and no block has much more
    than a million pairs, unless a single graph has.

    Args:
        graph: the graph of n nodes, of one graph or of a whole batch.
        batch: ``(n,)``, the graph of each node; ``None`` for one graph.
        most_nodes: of a graph; larger ones are refused.
    """
    if batch is None:
        check_size(graph.num_nodes, most_nodes)
        nodes = torch.arange(graph.num_nodes, device=graph.device).unsqueeze(0)
        return [_make_block(graph, nodes, torch.ones_like(nodes).bool(), nodes[0] * 0, nodes[0])]
    sizes = torch.bincount(batch)
    check_size(int(sizes.max()) if sizes.numel() else 0, most_nodes)
    return [_group(graph, batch, sizes, members) for members in _groups(sizes)]


def check_size(size: int, most_nodes: int) -> None:
    """Refuse graphs whose pairs are too many."""
    if size > most_nodes:
        raise ValueError(
            f"`x` must have at most {most_nodes} nodes per graph (setting `most_nodes`), since all "
            f"pairs of them attend to each other; got {size}: raise it, or choose another model"
        )


def _groups(sizes: Tensor) -> list[Tensor]:
    """Which graphs share a block: in the order of their sizes, the largest last."""
    groups: list[list[int]] = []
    for number in sizes.argsort(stable=True).tolist():
        size = int(sizes[number])
        if size == 0:
            continue
        if groups and (len(groups[-1]) + 1) * size * size <= PAIRS:
            groups[-1].append(number)
        else:
            groups.append([number])
    return [torch.tensor(group, device=sizes.device) for group in groups]


def _group(graph: Graph, batch: Tensor, sizes: Tensor, members: Tensor) -> Block:
    place = batch.new_full((sizes.numel(),), -1)
    place[members] = torch.arange(members.numel(), device=batch.device)
    row = place[batch]  # of each node, -1 in other blocks
    inside = (row >= 0).nonzero().squeeze(1)
    ordered = inside[row[inside].argsort(stable=True)]
    count = sizes[members]
    first = count.cumsum(0) - count
    column = torch.arange(ordered.numel(), device=batch.device) - first[row[ordered]]
    shape = (members.numel(), int(count.max()))
    nodes = batch.new_zeros(shape)
    nodes[row[ordered], column] = ordered
    real = torch.zeros(shape, dtype=torch.bool, device=batch.device)
    real[row[ordered], column] = True
    columns = torch.zeros_like(batch)
    columns[ordered] = column
    return _make_block(graph, nodes, real, row, columns)


def _make_block(graph: Graph, nodes: Tensor, real: Tensor, row: Tensor, column: Tensor) -> Block:
    """``row`` and ``column`` say where each node of the graph is in the block, if it is there."""
    g, s = nodes.shape
    target, source = graph.target, graph.source
    code = (row[target] * s + column[target]) * s + column[source]
    # Edges of other blocks fall on one place more than there are.
    code = torch.where(row[target] >= 0, code, g * s * s)
    joined = torch.zeros(g * s * s + 1, dtype=torch.bool, device=nodes.device)
    joined = joined.index_fill(0, code, True)[:-1].view(g, s, s)
    return Block(nodes, real, ~joined & real.unsqueeze(1) & real.unsqueeze(2))
