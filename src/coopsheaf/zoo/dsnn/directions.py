"""Arcs as neighbours with charges: what a sheaf of phases needs to know of a directed graph."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.edge_list import EdgeList
from coopsheaf.sheaves.graph import Graph
from coopsheaf.zoo.nsd.edge_maps import refuse_self_loops


class Directions(NamedTuple):
    """A directed graph, read in both directions."""

    graph: Graph  # 2m edges: every arc, then every arc turned round
    charges: Tensor  # (2m,): of j→i 1 if only i points to j, -1 if only j points to i, else 0
    counts: Tensor  # (2m,): how many arcs join the two ends, either way


def directions(graph: Graph) -> Directions:
    """The arcs of a graph, both ways.

    A pair of neighbours is joined by as many edges each way as there are arcs between them; with
    1/counts as weights it counts once. Self-loops are refused. Unlike
    :func:`~coopsheaf.sheaves.fold_directions` nothing has a size that depends on who points back,
    so that compilers can follow.
    """
    return Directions(
        both_ways(graph),
        graph.remember("charges", _charges),
        graph.remember("arcs of a pair", _counts),
    )


def both_ways(graph: Graph) -> Graph:
    """2m edges: every arc, then every arc turned round."""
    return graph.remember("both ways", _both_ways)


def _both_ways(graph: Graph) -> Graph:
    ends = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
    kind = EdgeList if isinstance(graph, EdgeList) else Graph
    return kind(ends, graph.num_nodes)


def _charges(graph: Graph) -> Tensor:
    refuse_self_loops(graph)  # they have no phase
    n = graph.num_nodes
    there, back = graph.source * n + graph.target, graph.target * n + graph.source
    alone = (_occurrences(there, back) == 0).long()
    return torch.cat([-alone, alone])


def _counts(graph: Graph) -> Tensor:
    low = torch.minimum(graph.source, graph.target)
    high = torch.maximum(graph.source, graph.target)
    pairs = low * graph.num_nodes + high
    return _occurrences(pairs, pairs).repeat(2)


def _occurrences(values: Tensor, wanted: Tensor) -> Tensor:
    """How often each of ``wanted`` is among ``values``."""
    ordered = torch.sort(values).values
    return torch.searchsorted(ordered, wanted, right=True) - torch.searchsorted(ordered, wanted)
