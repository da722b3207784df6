"""Which part of a graph is shown when all of it is too much, and what is left out then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopsheaf.pages.explorer.adjacency import Adjacency, Ints, distances

# So many of the strongest edges into and out of each node are kept, whatever else is.
_OWN = 3


@dataclass(frozen=True)
class Selection:
    """Nodes and edges of a graph to show.

    Args:
        nodes: in ascending order.
        edges: positions in the list of edges, in ascending order.
        notes: what was left out and why, one sentence each; empty if nothing was.
    """

    nodes: Ints
    edges: Ints
    notes: tuple[str, ...]


def choose_nodes(
    graph: Adjacency,
    *,
    center: int | None,
    hops: int | None,
    max_nodes: int,
    name: Callable[[int], str] = str,
) -> tuple[Ints, tuple[str, ...]]:
    """The nodes to show, and what to say about the others.

    Without a centre, all nodes if they are few enough, else those nearest to the node with the
    most neighbours. With a centre, those within ``hops`` steps of it, or as many as are allowed.
    The direction of edges does not count; of nodes at the same distance, the lowest come first.
    ``name`` is what a node is called.
    """
    n = graph.num_nodes
    if center is None:
        if n <= max_nodes:
            return np.arange(n), ()
        center = int(graph.degree.argmax())
        who = f"{name(center)}, which has the most neighbours"
    else:
        who = name(center)
    distance = distances(graph, np.array([center]), hops)
    near = np.flatnonzero(distance >= 0)
    nodes = near[np.argsort(distance[near], kind="stable")]
    if len(nodes) <= max_nodes:
        reach = "connected to" if hops is None else f"within {hops} hops of"
        note = f"Shown are the {len(nodes):,} of {n:,} nodes {reach} node {who}."
    else:
        nodes = nodes[:max_nodes]
        note = f"Shown are {max_nodes:,} of {n:,} nodes: those nearest to node {who}."
    return np.sort(nodes), (note,) if len(nodes) < n else ()


def choose_edges(
    source: Ints, target: Ints, strength: NDArray[np.float64] | None, *, max_edges: int
) -> tuple[Ints, tuple[str, ...]]:
    """The positions of the edges to show among those between the chosen nodes.

    If there are too many, the strongest ones, but first the strongest few into and out of each
    node. Without strengths, every k-th edge.

    Args:
        source, target: ``(m,)``.
        strength: ``(m,)``.
        max_edges: how many are allowed.
    """
    m = len(source)
    if m <= max_edges:
        return np.arange(m), ()
    if strength is None:
        chosen = np.arange(max_edges) * m // max_edges
        return chosen, (f"Drawn are {max_edges:,} of {m:,} edges, evenly picked from the list.",)
    weakness = -strength
    own = np.minimum(_rank_within(source, weakness), _rank_within(target, weakness)) < _OWN
    order = np.lexsort((weakness, ~own))
    return np.sort(order[:max_edges]), (
        f"Drawn are {max_edges:,} of {m:,} edges: the strongest of each node, then of all.",
    )


def _rank_within(group: Ints, key: NDArray[np.float64]) -> Ints:
    """The place of each entry in the order of its group, from 0."""
    order = np.lexsort((key, group))
    ordered = group[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    size = np.diff(first, append=len(group))
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(first, size)
    return rank
