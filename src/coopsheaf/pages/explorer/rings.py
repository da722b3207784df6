"""The surroundings of a node as rings around it: one band for each number of hops."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from coopsheaf.pages.explorer.adjacency import Adjacency, Ints, distances

Floats = NDArray[np.float64]

MOST = 2000  # more nodes than that say more when laid out by forces
_TURN = 2 * math.pi
_APART = 1.0  # between neighbours on a ring, and between the rings of one band
_BAND = 2.0  # from one band to the next


def ring_positions(graph: Adjacency, center: int) -> Floats:
    """Positions ``(n, 2)`` of a connected graph: hops are distances from the centre, at (0, 0).

    Every node is as near as there is room to the direction of its neighbours one hop further in,
    and the order around a ring is that of these directions. A band with more nodes than fit on one
    ring has several, each wide enough for its nodes to be :data:`_APART` from each other.
    """
    hop = distances(graph, np.array([center]))
    assert hop.min() >= 0, "rings are for nodes that are connected to the centre"
    angle = np.zeros(graph.num_nodes)
    positions = np.zeros((graph.num_nodes, 2))
    radius = 0.0
    for step in range(1, int(hop.max()) + 1):
        nodes = np.flatnonzero(hop == step)
        wanted = _directions(graph, nodes, hop, angle, step)
        order = np.lexsort((nodes, wanted))
        nodes, wanted = nodes[order], wanted[order]
        radius = max(radius + _BAND, _BAND)
        sizes = _capacities(len(nodes), radius)
        # Neighbours in the order go to different rings of the band, each ring by its room.
        share = np.array(sizes) / sum(sizes)
        turn = np.searchsorted(np.cumsum(share), np.arange(len(nodes)) * _golden() % 1.0)
        turn = np.minimum(turn, len(sizes) - 1)
        for k in range(len(sizes)):
            mine = turn == k
            here = radius + k * _APART
            angle[nodes[mine]] = _spread(wanted[mine], _APART / here)
            positions[nodes[mine]] = here * _unit(angle[nodes[mine]])
        radius += (len(sizes) - 1) * _APART
    return positions


def _golden() -> float:
    """Multiples of it, modulo 1, fill the unit interval evenly."""
    return (math.sqrt(5) - 1) / 2


def _unit(angle: Floats) -> Floats:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _directions(graph: Adjacency, nodes: Ints, hop: Ints, angle: Floats, step: int) -> Floats:
    """The mean direction of each node's neighbours one hop further in, in [0, 2π)."""
    if step == 1:
        return np.arange(len(nodes)) * _TURN / len(nodes)
    ends = np.repeat(np.arange(len(nodes)), graph.degree[nodes])
    others = graph.of(nodes)
    inner = hop[others] == step - 1
    total = np.zeros((len(nodes), 2))
    np.add.at(total, ends[inner], _unit(angle[others[inner]]))
    return np.arctan2(total[:, 1], total[:, 0]) % _TURN


def _capacities(count: int, radius: float) -> list[int]:
    """How many nodes each ring of a band takes, from the inner one on, to hold all of them."""
    sizes: list[int] = []
    while sum(sizes) < 1.15 * count or not sizes:  # some more, since shares are not exact
        room = int(_TURN * (radius + len(sizes) * _APART) / _APART)
        sizes.append(room)
        if sum(sizes) >= count and len(sizes) == 1:
            break
    return sizes


def _spread(wanted: Floats, gap: float) -> Floats:
    """Ascending angles, moved as little as possible until they are ``gap`` apart."""
    n = len(wanted)
    if n < 2:
        return wanted
    # Around a circle: cut it where there is most room.
    between = np.diff(wanted, append=wanted[0] + _TURN)
    first = (int(between.argmax()) + 1) % n
    line = np.concatenate([wanted[first:], wanted[:first] + _TURN])
    step = gap * np.arange(n)
    placed = _ascending(line - step) + step
    if placed[-1] - placed[0] > _TURN - gap:  # both ends met: there is just room for all of them
        even = np.arange(n) * _TURN / n
        placed = even + float(np.angle(np.exp(1j * (line - even)).mean()))
    return np.concatenate([placed[n - first :], placed[: n - first]]) if first else placed


def _ascending(values: Floats) -> Floats:
    """The nearest values, in squares, that never fall: means of neighbours that would."""
    blocks: list[list[float]] = []  # mean, count
    for value in values.tolist():
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            mean, count = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * count) / (last[1] + count)
            last[1] += count
    return np.concatenate([np.full(int(count), mean) for mean, count in blocks])
