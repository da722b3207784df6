"""Rings: hops are distances from the centre, and nobody stands on anybody else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from analysis.networks import binary_tree, ring
from graphs import bidirected, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from coopsheaf import Graph
from coopsheaf.pages.explorer.adjacency import adjacency, distances
from coopsheaf.pages.explorer.layout import lay_out
from coopsheaf.pages.explorer.rings import MOST, ring_positions


def star(n: int) -> torch.Tensor:
    return bidirected(torch.stack([torch.zeros(n - 1, dtype=torch.int64), torch.arange(1, n)]))


def nearest(positions: np.ndarray) -> float:
    place = torch.from_numpy(positions)
    apart = torch.cdist(place, place)
    apart.fill_diagonal_(torch.inf)
    return float(apart.min())


@pytest.mark.parametrize(
    ("edges", "center"),
    [(ring(30), 4), (star(7), 0), (star(300), 0), (star(40), 3), (binary_tree(6), 0)],
    ids=["ring", "star", "large star", "from its edge", "tree"],
)
def test_hops_are_distances_and_nodes_are_apart(edges: torch.Tensor, center: int) -> None:
    n = int(edges.max()) + 1
    graph = adjacency(edges, n)
    positions = ring_positions(graph, center)
    hop = distances(graph, np.array([center]))
    far = np.hypot(*positions.T)
    assert far[center] == 0
    for step in range(int(hop.max())):
        assert far[hop == step].max() + 0.9 < far[hop == step + 1].min()
    assert nearest(positions) > 0.45


@settings(deadline=None, max_examples=40)
@given(graph=graphs(), seed=st.integers(0, 10**6))
def test_any_surroundings(graph: Graph, seed: int) -> None:
    whole = adjacency(graph.edge_index, graph.num_nodes)
    center = seed % graph.num_nodes
    nodes = np.flatnonzero(distances(whole, np.array([center])) >= 0)
    layout = lay_out(whole, nodes, center)
    assert layout.positions.shape == (len(nodes), 2)
    assert np.isfinite(layout.positions).all()
    if layout.kind == "rings":
        assert (layout.positions[np.searchsorted(nodes, center)] == 0).all()
        if len(nodes) > 1:
            assert nearest(layout.positions) > 0.45


def test_children_are_near_their_parents() -> None:
    """On a tree every node lies on the side of its parent, from the second ring on."""
    edges = binary_tree(4)
    graph = adjacency(edges, 31)
    positions = ring_positions(graph, 0)
    parents, children = edges[1].numpy(), edges[0].numpy()
    deep = parents > 0
    dot = (positions[parents[deep]] * positions[children[deep]]).sum(1)
    length = np.hypot(*positions[parents[deep]].T) * np.hypot(*positions[children[deep]].T)
    assert (dot / length > 0.5).all()


def test_a_board_stays_a_board_and_crowds_go_by_forces() -> None:
    cells = torch.arange(25).reshape(5, 5)
    sides = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    edges = torch.cat([torch.stack([a.flatten(), b.flatten()]) for a, b in sides], dim=1)
    board = adjacency(edges, 25)
    nodes = np.flatnonzero(distances(board, np.array([12]), 1) >= 0)
    assert lay_out(board, nodes, 12).kind == "grid"
    crowd = adjacency(star(MOST + 2), MOST + 2)
    assert lay_out(crowd, None, 0).kind == "forces"
    assert lay_out(adjacency(star(9), 9), None, 0).kind == "rings"
    assert lay_out(adjacency(star(9), 9)).kind == "forces"
