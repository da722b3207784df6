"""Distances in long graphs, against networkx."""

from __future__ import annotations

import re

import networkx as nx
import pytest
import torch

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.distances import (
    FIXED,
    GROWN,
    KINDS,
    Shape,
    all_distances,
    block_size,
    draw_block,
    echo_like,
)

SMALL = {"blocks": (2, 1, 1), "fewest_hops": 3, "most_hops": 9, "seed": 5}


def made(kind: str, hops: int) -> Shape:
    if kind in FIXED:
        return FIXED[kind](hops)
    return GROWN[kind](hops, 3 * hops, torch.Generator().manual_seed(hops))


def as_networkx(shape: Shape) -> nx.Graph:
    graph = nx.Graph(shape.pairs)
    assert sorted(graph) == list(range(shape.num_nodes))
    assert graph.number_of_edges() == len(shape.pairs)
    return graph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hops", [3, 4, 11, 40])
def test_every_shape_is_so_many_hops_across(kind: str, hops: int) -> None:
    assert nx.diameter(as_networkx(made(kind, hops))) == hops


def test_shapes_are_what_they_are_called() -> None:
    assert nx.is_isomorphic(as_networkx(made("line", 7)), nx.path_graph(8))
    assert nx.is_isomorphic(as_networkx(made("ladder", 7)), nx.ladder_graph(7))
    assert nx.is_isomorphic(as_networkx(made("grid", 7)), nx.grid_2d_graph(3, 6))
    for kind, peeled in (("caterpillar", 1), ("lobster", 2)):
        graph = as_networkx(made(kind, 9))
        assert nx.is_tree(graph)
        for _ in range(peeled):  # without leaves, so many times, a path is left
            graph = graph.subgraph([v for v in graph if graph.degree(v) > 1])
        assert max(dict(graph.degree).values()) <= 2
    assert nx.is_tree(as_networkx(made("tree", 9)))


@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_of_networkx(kind: str) -> None:
    shape = made(kind, 6)
    found, graph = all_distances(shape), as_networkx(shape)
    for source, hops in nx.all_pairs_shortest_path_length(graph):
        assert found[source].tolist() == [hops[v] for v in range(shape.num_nodes)]


def test_six_graphs_fill_a_block_whatever_is_drawn() -> None:
    for seed in range(20):
        shapes = draw_block(3, 20, torch.Generator().manual_seed(seed))
        assert len(shapes) == 6
        assert sum(shape.num_nodes for shape in shapes) == block_size(20)


def graphs(data: NodeDataset) -> list[nx.Graph]:
    whole = nx.Graph(data.edge_index.T.tolist())
    return [whole.subgraph(part) for part in nx.connected_components(whole)]


def test_targets_of_nodes_are_brute_force() -> None:
    near, far = echo_like("sssp", **SMALL), echo_like("ecc", **SMALL)  # type: ignore[arg-type]
    assert isinstance(near, NodeDataset)
    assert isinstance(far, NodeDataset)
    assert torch.equal(near.edge_index, far.edge_index)
    for graph in graphs(near):
        (source,) = [v for v in graph if near.x[v, 0] == 1]
        hops = nx.single_source_shortest_path_length(graph, source)
        assert all(near.y[v] == hops[v] for v in graph)
        furthest = nx.eccentricity(graph)
        assert all(far.y[v] == furthest[v] for v in graph)
        assert all(far.x[v, 0] == 0 for v in graph)
    of = torch.arange(near.num_nodes) // block_size(9)
    assert torch.equal(of[near.edge_index[0]], of[near.edge_index[1]])
    assert near.test[0].nonzero().squeeze(1).tolist() == (of == 3).nonzero().squeeze(1).tolist()


def test_diameters_are_brute_force() -> None:
    data = echo_like("diameter", **SMALL)  # type: ignore[arg-type]
    assert isinstance(data, GraphDataset)
    assert (len(data.train), len(data.val), len(data.test)) == (12, 6, 6)
    for graph in data.graphs:
        assert graph.y.shape == (1, 1)
        assert float(graph.y) == nx.diameter(nx.Graph(graph.edge_index.T.tolist()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "far"}, "`target` must be one of 'sssp', 'ecc', 'diameter'; got 'far'"),
        ({"fewest_hops": 2}, "`fewest_hops` must be an integer of at least 3; got 2"),
        ({"most_hops": 5}, "`most_hops` must be at least `fewest_hops`, 8; got 5"),
        ({"blocks": (0, 1, 1)}, "`blocks` must be an integer of at least 1; got 0"),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        echo_like(**arguments)
