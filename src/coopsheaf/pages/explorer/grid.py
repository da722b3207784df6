"""Grids: graphs that are a rectangle of cells, found by their shape alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coopsheaf.pages.explorer.adjacency import Adjacency, Ints, distances, pair_up

# Degrees of a corner, of the rest of the border and of the inside: cells that touch along their
# sides, and cells that touch at their corners too, as on a chess board or in minesweeper.
_KINDS = {"sides": (2, 3, 4), "corners": (3, 5, 8)}


def grid_positions(graph: Adjacency) -> NDArray[np.float64] | None:
    """Column and row of every node, ``(n, 2)``, if the graph is a grid; else ``None``.

    The lowest corner is cell (0, 0), and the lower of its two neighbours along the border is cell
    (1, 0); so that boards that are numbered row by row look as they are numbered.

    Only a full rectangle of three cells by three or more counts. A position is a distance to a
    side of the border, and whatever comes out is compared with the grid it should be.
    """
    degree = graph.degree
    n = graph.num_nodes
    if n < 9:
        return None
    for kind, (corner, border, inside) in _KINDS.items():
        corners = np.flatnonzero(degree == corner)
        if len(corners) == 4 and np.isin(degree, (corner, border, inside)).all():
            return _measure(graph, corners, degree < inside, diagonal=kind == "corners")
    return None


def _measure(
    graph: Adjacency, corners: Ints, border: NDArray[np.bool_], *, diagonal: bool
) -> NDArray[np.float64] | None:
    start = int(corners[0])
    beside = graph.of(corners[:1])
    beside = beside[border[beside]]
    if len(beside) != 2:
        return None
    is_corner = np.zeros(graph.num_nodes, dtype=bool)
    is_corner[corners] = True
    top = _side(graph, start, int(beside[0]), border, is_corner)
    left = _side(graph, start, int(beside[1]), border, is_corner)
    if top is None or left is None:
        return None
    column, row = distances(graph, left), distances(graph, top)
    width, height = len(top), len(left)
    if width * height != graph.num_nodes or not _is_grid(
        graph, column, row, width, height, diagonal=diagonal
    ):
        return None
    return np.stack([column, row], axis=1).astype(np.float64)


def _side(
    graph: Adjacency, start: int, first: int, border: NDArray[np.bool_], corner: NDArray[np.bool_]
) -> Ints | None:
    """The nodes of one side, from a corner along its neighbour ``first`` to the next corner."""
    side = [start, first]
    while not corner[side[-1]]:
        if len(side) > graph.num_nodes:
            return None
        before = set(graph.of(np.array(side[-2:-1])).tolist()) | set(side[-2:])
        # Where sides meet, the border is a triangle: its corner comes first, then what is new.
        here = graph.of(np.array(side[-1:]))
        ahead = [node for node in here[border[here]].tolist() if node not in before]
        ahead = [node for node in ahead if corner[node]] or ahead
        if len(ahead) != 1:
            return None
        side.append(ahead[0])
    return np.array(side)


def _is_grid(
    graph: Adjacency, column: Ints, row: Ints, width: int, height: int, *, diagonal: bool
) -> bool:
    if column.min() < 0 or row.min() < 0 or column.max() >= width or row.max() >= height:
        return False
    cell = row * width + column
    node = np.full(width * height, -1)
    node[cell] = np.arange(graph.num_nodes)
    if (node < 0).any():
        return False
    board = node.reshape(height, width)
    pairs = [(board[:, :-1], board[:, 1:]), (board[:-1], board[1:])]
    if diagonal:
        pairs += [(board[:-1, :-1], board[1:, 1:]), (board[:-1, 1:], board[1:, :-1])]
    wanted = pair_up(
        np.concatenate([one.ravel() for one, _ in pairs]),
        np.concatenate([other.ravel() for _, other in pairs]),
        graph.num_nodes,
    )
    return np.array_equal(wanted.ptr, graph.ptr) and np.array_equal(wanted.other, graph.other)
