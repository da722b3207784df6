"""What is shown of a graph that is too large, and what is said about the rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages.explorer.pages import board, shape

from coopsheaf.pages.explorer.neighbourhood import choose_edges, choose_nodes

BOARD = shape(board(9, 9), 81)


def test_a_small_graph_is_shown_whole() -> None:
    nodes, notes = choose_nodes(BOARD, center=None, hops=None, max_nodes=81)
    assert nodes.tolist() == list(range(81))
    assert notes == ()


def test_the_surroundings_of_a_node() -> None:
    nodes, notes = choose_nodes(BOARD, center=40, hops=1, max_nodes=81)
    assert nodes.tolist() == [30, 31, 32, 39, 40, 41, 48, 49, 50]
    assert notes == ("Shown are the 9 of 81 nodes within 1 hops of node 40.",)
    nodes, notes = choose_nodes(BOARD, center=40, hops=0, max_nodes=81, name=lambda i: f"cell {i}")
    assert nodes.tolist() == [40]
    assert notes[0].endswith("of node cell 40.")
    nodes, notes = choose_nodes(BOARD, center=40, hops=None, max_nodes=81)
    assert len(nodes) == 81
    assert notes == ()


def test_too_many_are_cut_by_distance() -> None:
    nodes, notes = choose_nodes(BOARD, center=0, hops=5, max_nodes=5)
    assert nodes.tolist() == [0, 1, 2, 9, 10]  # the corner, its three neighbours, and the next
    assert notes == ("Shown are 5 of 81 nodes: those nearest to node 0.",)


def test_without_a_centre_the_best_connected_node_is_one() -> None:
    star = shape(np.array([[5, 5, 5, 0], [1, 2, 3, 1]]), 7)
    nodes, notes = choose_nodes(star, center=None, hops=None, max_nodes=4)
    assert nodes.tolist() == [1, 2, 3, 5]
    assert notes == ("Shown are 4 of 7 nodes: those nearest to node 5, which has the most neighbours.",)  # fmt: skip
    nodes, notes = choose_nodes(star, center=4, hops=None, max_nodes=4)
    assert nodes.tolist() == [4]  # nobody is connected to it
    assert notes == ("Shown are the 1 of 7 nodes connected to node 4.",)


def test_all_edges_if_they_are_few() -> None:
    source, target = np.array([0, 1]), np.array([1, 0])
    chosen, notes = choose_edges(source, target, np.array([1.0, 0.0]), max_edges=2)
    assert chosen.tolist() == [0, 1]
    assert notes == ()
    chosen, notes = choose_edges(source, target, None, max_edges=0)
    assert chosen.tolist() == []
    assert notes == ("Drawn are 0 of 2 edges, evenly picked from the list.",)


@given(st.integers(2, 8), st.integers(1, 60), st.integers(0, 50), st.integers(0, 2**31))
def test_the_strongest_edges_of_every_node_come_first(n: int, m: int, most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, n, (2, m))
    strength = rng.permutation(m).astype(float)
    chosen, notes = choose_edges(source, target, strength, max_edges=most)
    assert len(chosen) == min(m, most)
    assert (np.diff(chosen) > 0).all()
    assert bool(notes) == (m > most)
    own = set()
    for ends in (source, target):
        for node in range(n):
            mine = np.flatnonzero(ends == node)
            own |= set(mine[np.argsort(-strength[mine])[:3]].tolist())
    if len(own) <= most:
        assert own <= set(chosen.tolist())
    else:
        assert set(chosen.tolist()) <= own


@pytest.mark.parametrize("most", [1, 7, 10])
def test_without_strengths_edges_are_picked_evenly(most: int) -> None:
    ends = np.arange(10)
    chosen, _ = choose_edges(ends, ends, None, max_edges=most)
    assert len(chosen) == most
    assert len(set(chosen.tolist())) == most
    assert np.diff(chosen, append=10).max() <= -(-10 // most) + 1
