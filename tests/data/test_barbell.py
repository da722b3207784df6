"""The Barbell task: cliques, a bridge, and what the other side is worth."""

from __future__ import annotations

import re

import networkx as nx
import pytest
import torch

from coopsheaf.data.barbell import HOPS, barbell, barbell_edges
from coopsheaf.data.dataset import NodeDataset


@pytest.fixture(scope="module")
def data() -> NodeDataset:
    return barbell(6, graphs=(5, 2, 3), seed=4)


def nodes(data: NodeDataset, graph: int) -> slice:
    return slice(12 * graph, 12 * (graph + 1))


def test_the_graph_is_two_cliques_and_a_bridge() -> None:
    graph = nx.Graph(barbell_edges(6).T.tolist())
    assert nx.is_isomorphic(graph, nx.barbell_graph(6, 0))
    assert nx.diameter(graph) == HOPS
    assert barbell_edges(6).shape == (2, 2 * (15 + 15 + 1))


def test_targets_are_means_of_the_other_clique(data: NodeDataset) -> None:
    for graph in range(10):
        x, y = data.x[nodes(data, graph), 0].tolist(), data.y[nodes(data, graph)].tolist()
        assert y[:6] == pytest.approx([sum(x[6:]) / 6] * 6, rel=1e-5)
        assert y[6:] == pytest.approx([sum(x[:6]) / 6] * 6, rel=1e-5)


def test_no_edge_joins_two_graphs_and_parts_are_whole_graphs(data: NodeDataset) -> None:
    of = torch.arange(data.num_nodes) // 12
    assert torch.equal(of[data.edge_index[0]], of[data.edge_index[1]])
    parts = torch.cat([data.train, data.val, data.test]).long().argmax(0).view(10, 12)
    assert parts.tolist() == [[k] * 12 for k in [0] * 5 + [1] * 2 + [2] * 3]


def test_numbers_are_drawn_as_said() -> None:
    n = 50
    x = barbell(n, graphs=(200, 1, 1)).x.view(-1, 2, n).double()
    assert x.mean((0, 2)).tolist() == pytest.approx([-((3 * n) ** 0.5), (3 * n) ** 0.5], rel=0.02)
    assert x.std((0, 2)).tolist() == pytest.approx([n**0.5] * 2, rel=0.02)
    assert float(x.mean(2).std(0).mean()) == pytest.approx(1, rel=0.1)  # what is to be learned
    assert bool((x[:, 0] <= 0).all())
    assert bool((x[:, 1] >= 0).all())


def test_a_seed_gives_one_dataset() -> None:
    first, again, other = (barbell(3, graphs=(1, 1, 1), seed=s) for s in (1, 1, 2))
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1}, "`size` must be an integer of at least 2; got 1"),
        ({"graphs": (1, 0, 1)}, "`graphs` must be an integer of at least 1; got 0"),
        ({"graphs": (1, 1)}, "`graphs` must be three numbers: train, val, test; got (1, 1)"),
        ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
    ],
)
def test_bad_arguments(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        barbell(**arguments)
