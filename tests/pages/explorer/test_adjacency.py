"""Who is next to whom, how far away, and in which component."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from coopsheaf.pages.explorer.adjacency import adjacency, components, distances


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, torch.Tensor, nx.Graph]:
    """Any list of edges: loops, repetitions and isolated nodes included."""
    n = draw(st.integers(1, 14))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    pairs = draw(st.lists(ends, max_size=30))
    simple = nx.Graph()
    simple.add_nodes_from(range(n))
    simple.add_edges_from((a, b) for a, b in pairs if a != b)
    return n, torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, simple


@given(graphs())
def test_neighbours_once_and_in_order(case: tuple[int, torch.Tensor, nx.Graph]) -> None:
    n, edge_index, simple = case
    found = adjacency(edge_index, n)
    for node in range(n):
        assert found.of(np.array([node])).tolist() == sorted(simple[node])
    assert found.degree.tolist() == [simple.degree[node] for node in range(n)]
    every = np.arange(n)[::-1]
    assert found.of(every).tolist() == [k for node in every for k in sorted(simple[node])]


@given(graphs(), st.data())
def test_parts_are_numbered_as_given(case: tuple[int, torch.Tensor, nx.Graph], data: st.DataObject) -> None:  # fmt: skip
    n, edge_index, simple = case
    nodes = data.draw(st.lists(st.integers(0, n - 1), unique=True))
    part = adjacency(edge_index, n).within(np.array(nodes, dtype=np.int64))
    assert part.num_nodes == len(nodes)
    for number, node in enumerate(nodes):
        wanted = sorted(nodes.index(k) for k in simple[node] if k in nodes)
        assert part.of(np.array([number])).tolist() == wanted


@given(graphs(), st.data())
def test_distances_are_those_of_a_search(case: tuple[int, torch.Tensor, nx.Graph], data: st.DataObject) -> None:  # fmt: skip
    n, edge_index, simple = case
    starts = data.draw(st.lists(st.integers(0, n - 1), min_size=1))
    limit = data.draw(st.none() | st.integers(0, 4))
    lengths = nx.multi_source_dijkstra_path_length(simple, set(starts))
    wanted = [lengths.get(node, -1) for node in range(n)]
    if limit is not None:
        wanted = [far if far <= limit else -1 for far in wanted]
    found = distances(adjacency(edge_index, n), np.array(starts), limit)
    assert found.tolist() == wanted


@given(graphs())
def test_components_in_the_order_of_their_lowest_nodes(case: tuple[int, torch.Tensor, nx.Graph]) -> None:  # fmt: skip
    n, edge_index, simple = case
    label = components(adjacency(edge_index, n))
    for number, nodes in enumerate(sorted(nx.connected_components(simple), key=min)):
        assert set(label[list(nodes)].tolist()) == {number}


def test_an_empty_graph() -> None:
    none = adjacency(torch.empty(2, 0, dtype=torch.int64), 0)
    assert none.num_nodes == 0
    assert components(none).tolist() == []
