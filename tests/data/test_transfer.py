"""Labels that travel: source and target are as far apart as the name says."""

from __future__ import annotations

import re

import networkx as nx
import pytest
import torch

from coopsheaf.data.transfer import SHAPES, transfer


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("distance", [2, 3, 6])
def test_source_and_target_are_so_far_apart(shape: str, distance: int) -> None:
    edges, n, source, target = SHAPES[shape](distance)
    graph = nx.DiGraph(edges.T.tolist())
    assert sorted(graph) == list(range(n))
    assert nx.shortest_path_length(graph, source, target) == distance
    assert nx.is_strongly_connected(graph)
    assert all(graph.has_edge(v, u) and u != v for u, v in graph.edges)
    assert graph.number_of_edges() == edges.shape[1]  # none twice


def test_the_shapes_are_what_they_are_called() -> None:
    def undirected(shape: str) -> nx.Graph:
        return nx.Graph(SHAPES[shape](5)[0].T.tolist())

    assert nx.is_isomorphic(undirected("ring"), nx.cycle_graph(10))
    assert nx.is_isomorphic(undirected("tree"), nx.balanced_tree(2, 5))
    assert nx.is_isomorphic(undirected("clique-path"), nx.lollipop_graph(5, 4))
    crossed = undirected("crossed-ring")
    assert crossed.number_of_edges() == 10 + 2 * 3
    assert nx.cycle_graph(10).edges - crossed.edges == set()


def test_one_graph_for_each_label_in_every_part() -> None:
    data = transfer("ring", 4, num_classes=3)
    x, y = data.x.view(9, 8, 3), data.y.view(9, 8)
    for k in range(9):
        assert x[k, 4].tolist() == torch.eye(3)[k % 3].tolist()  # the source
        assert x[k, 0].tolist() == [0, 0, 0]
        assert bool((x[k, [1, 2, 3, 5, 6, 7]] == 1).all())
        assert y[k].tolist() == [k % 3, *[-1] * 7]
    for part, first in ((data.train, 0), (data.val, 3), (data.test, 6)):
        assert part[0].nonzero().squeeze(1).tolist() == [8 * (first + k) for k in range(3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ring", 1), "`distance` must be an integer of at least 2; got 1"),
        (
            ("tree", 20),
            "`distance` in a tree must be at most 12, as nodes double with every step; got 20: "
            "take a ring",
        ),
        (
            ("star", 3),
            "`shape` must be one of 'ring', 'crossed-ring', 'clique-path', 'tree'; got 'star'",
        ),
    ],
)
def test_bad_arguments(arguments: tuple[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        transfer(*arguments)
