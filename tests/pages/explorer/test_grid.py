"""Grids are found by their shape, whatever their nodes are called, and nothing else is one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages.explorer.pages import board, shape

from coopsheaf.pages.explorer.grid import grid_positions


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize(("width", "height"), [(3, 3), (4, 3), (3, 7), (10, 10), (100, 100)])
def test_a_board_numbered_by_rows_looks_so(width: int, height: int, corners: bool) -> None:
    found = grid_positions(shape(board(width, height, corners=corners), width * height))
    assert found is not None
    cells = np.arange(width * height)
    assert found.tolist() == np.stack([cells % width, cells // width], axis=1).tolist()


@given(st.integers(3, 9), st.integers(3, 9), st.booleans(), st.randoms(use_true_random=False))
def test_any_numbering_gives_a_board(width: int, height: int, corners: bool, random: object) -> None:  # fmt: skip
    n = width * height
    order = np.random.default_rng(random.getrandbits(32)).permutation(n)  # type: ignore[attr-defined]
    graph = shape(order[board(width, height, corners=corners)], n)
    found = grid_positions(graph)
    assert found is not None
    cells = {tuple(cell) for cell in found.astype(int).tolist()}
    assert cells in (
        {(x, y) for x in range(width) for y in range(height)},
        {(x, y) for x in range(height) for y in range(width)},
    )
    reach = 1.5 if corners else 1.1
    apart = np.linalg.norm(found[:, None] - found[None], axis=-1)
    near = {(i, j) for i, j in zip(*np.nonzero((apart > 0) & (apart < reach)), strict=True)}
    assert near == set(zip(graph.rows.tolist(), graph.other.tolist(), strict=True))
    lowest = min(np.flatnonzero(graph.degree == graph.degree.min()))
    assert found[lowest].tolist() == [0, 0]


def test_what_is_almost_a_grid_is_none() -> None:
    pairs, n = board(8, 6), 48
    assert grid_positions(shape(pairs, n)) is not None
    assert grid_positions(shape(pairs[:, 1:], n)) is None  # an edge less
    more = np.concatenate([pairs, [[0], [47]]], axis=1)  # an edge more
    assert grid_positions(shape(more, n)) is None
    swapped = pairs.copy()
    swapped[1, [3, 30]] = swapped[1, [30, 3]]  # the same number of edges
    assert grid_positions(shape(swapped, n)) is None
    torus = np.concatenate([pairs, [[0, 8, 16, 24, 32, 40], [7, 15, 23, 31, 39, 47]]], axis=1)
    assert grid_positions(shape(torus, n)) is None
    two = np.concatenate([board(4, 4), board(4, 4) + 16], axis=1)
    assert grid_positions(shape(two, 32)) is None


@pytest.mark.parametrize(
    "graph",
    [nx.path_graph(12), nx.cycle_graph(12), nx.complete_graph(9), nx.star_graph(9), nx.grid_2d_graph(2, 6)],
    ids=["path", "ring", "clique", "star", "ladder"],
)  # fmt: skip
def test_other_graphs_are_none(graph: nx.Graph) -> None:
    number = {node: i for i, node in enumerate(graph)}
    pairs = np.array([[number[a], number[b]] for a, b in graph.edges]).T
    assert grid_positions(shape(pairs, len(graph))) is None
    assert grid_positions(shape(np.empty((2, 0), dtype=np.int64), 4)) is None


def test_degrees_alone_do_not_make_a_grid() -> None:
    """Four corners, a border and an inside, but the border is cut and glued elsewhere."""
    pairs = board(6, 6, corners=False)
    side = {(1, 2), (31, 32)}
    kept = [pair for pair in pairs.T.tolist() if tuple(pair) not in side]
    other = np.array([*kept, [1, 32], [31, 2]]).T
    graph = shape(other, 36)
    assert np.array_equal(graph.degree, shape(pairs, 36).degree)
    assert grid_positions(graph) is None


def test_distances_alone_do_not_make_a_grid() -> None:
    """Two edges of the inside are crossed: all degrees and all distances to the sides stay."""
    pairs, n = board(8, 8, corners=False), 64
    crossed = [pair for pair in pairs.T.tolist() if pair not in ([26, 27], [34, 35])]
    graph = shape(np.array([*crossed, [26, 35], [34, 27]]).T, n)
    assert np.array_equal(graph.degree, shape(pairs, n).degree)
    assert grid_positions(graph) is None
