"""Where nodes are drawn: a grid as its grid, the surroundings of a node as rings, others by forces.

Components stand side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.pages.explorer.adjacency import Adjacency, Ints, components
from coopsheaf.pages.explorer.force import FEW, force_positions, small_positions
from coopsheaf.pages.explorer.grid import grid_positions
from coopsheaf.pages.explorer.rings import MOST, ring_positions

Positions = NDArray[np.float64]

# Free space around a component, in units of the distance between neighbours on the page.
_MARGIN = 1.5
# Distances to this many nodes at once.
_TOGETHER = 512


@dataclass(frozen=True)
class Layout:
    """Positions of nodes; the typical distance to the nearest other one is 1.

    Args:
        positions: ``(n, 2)``, x to the right and y down.
        kind: ``"grid"``, ``"rings"`` or ``"forces"``.
    """

    positions: Positions
    kind: str


def lay_out(graph: Adjacency, nodes: Ints | None = None, center: int | None = None) -> Layout:
    """Find positions for some nodes of a graph, or all of them; the same ones every time.

    A grid is recognised on the whole graph, so that a part of a board looks like a part of it.
    Around a centre to which all chosen nodes are connected, hops are rings, unless they are too
    many. Forces are those between the chosen nodes alone.
    """
    chosen = np.arange(graph.num_nodes) if nodes is None else nodes
    grid = grid_positions(graph)
    if grid is not None:
        return Layout(grid[chosen], "grid")
    part = graph if nodes is None else graph.within(nodes)
    if center is not None and len(chosen) <= MOST:
        return Layout(ring_positions(part, int(np.searchsorted(chosen, center))), "rings")
    return Layout(_by_forces(part), "forces")


def _by_forces(graph: Adjacency) -> Positions:
    if graph.num_nodes == 0:
        return np.zeros((0, 2))
    label = components(graph)
    order = np.argsort(label, kind="stable")
    ends = np.cumsum(np.bincount(label)).tolist()
    sorted_graph = graph.within(order)
    parts = [sorted_graph.between(a, b) for a, b in zip([0, *ends], ends, strict=False)]
    pieces = _place_each(parts)
    positions = np.zeros((graph.num_nodes, 2))
    positions[order] = np.concatenate(
        [piece + corner for piece, corner in zip(pieces, _pack(pieces), strict=True)]
    )
    return positions - (positions.max(0) + positions.min(0)) / 2


def _place_each(parts: list[Adjacency]) -> list[Positions]:
    """Positions of connected graphs; those that are alike are laid out once."""
    shapes = [(part.ptr.tobytes(), part.other.tobytes()) for part in parts]
    alike = dict(zip(shapes, parts, strict=True))
    by_size: dict[int, list[tuple[bytes, bytes]]] = {}
    for shape, part in alike.items():
        by_size.setdefault(part.num_nodes, []).append(shape)
    known: dict[tuple[bytes, bytes], Positions] = {}
    for size, some in by_size.items():
        graphs = [alike[shape] for shape in some]
        if size <= FEW:
            places = list(small_positions(graphs))
        else:
            places = [force_positions(graph) for graph in graphs]
        known |= {shape: _tidy(place) for shape, place in zip(some, places, strict=True)}
    return [known[shape] for shape in shapes]


def _tidy(place: Tensor) -> Positions:
    """The longer side across, the lowest corner at the origin, neighbours 1 apart."""
    if len(place) == 1:
        return np.zeros((1, 2))
    _, axes = torch.linalg.eigh(place.T @ place)
    axes = axes.flip(1)  # the direction of the largest spread first
    axes = axes * axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    turned = (place @ axes).numpy()
    turned = turned / _nearest(turned)
    return turned - turned.min(0)


def _nearest(positions: Positions) -> float:
    """The median distance to the nearest other node."""
    place = torch.from_numpy(positions)
    nearest = []
    for start in range(0, len(place), _TOGETHER):
        apart = torch.cdist(place[start : start + _TOGETHER], place)
        rows = torch.arange(len(apart))
        apart[rows, start + rows] = torch.inf
        nearest.append(apart.amin(1))
    return max(float(torch.cat(nearest).median()), 1e-9)


def _pack(pieces: list[Positions]) -> list[Positions]:
    """The corner of each piece: in rows, tall pieces first, about as wide as high."""
    sizes = np.array([piece.max(0) + _MARGIN for piece in pieces])
    width = max(sizes[:, 0].max(), 1.25 * np.sqrt(sizes.prod(1).sum()))
    corners = np.zeros_like(sizes)
    right = down = height = 0.0
    # Of equals, the one with the lowest node.
    for number in np.argsort(-sizes[:, 1], kind="stable"):
        if right and right + sizes[number, 0] > width:
            right, down, height = 0.0, down + height, 0.0
        corners[number] = right, down
        right, height = right + sizes[number, 0], max(height, sizes[number, 1])
    return list(corners)
