"""The large generated graph, at a small size."""

from __future__ import annotations

import pytest
import torch

from coopsheaf.data.communities import heterophilic_communities
from coopsheaf.data.registry import statistics

SMALL = {"num_nodes": 2000, "num_pairs": 12_000, "community": 200}


def test_it_is_what_was_asked_for() -> None:
    dataset = heterophilic_communities(**SMALL)
    found = statistics(dataset)
    assert (found["nodes"], found["edges"], found["features"]) == (2000, 24_000, 32)
    assert (found["self_loops"], found["reciprocated"]) == (0, 1.0)
    assert found["class_counts"] == (400,) * 5
    assert 0.07 < found["edge_homophily"] < 0.13
    assert found["split_sizes"] == ((1200, 400, 400),)
    keys = dataset.edge_index[0] * 2000 + dataset.edge_index[1]
    assert keys.unique().numel() == 24_000


def test_neighbours_say_more_than_the_node_itself() -> None:
    dataset = heterophilic_communities(**SMALL)
    centres = torch.stack([dataset.x[dataset.y == c].mean(0) for c in range(5)])
    own = (dataset.x @ centres.T).argmax(1)
    source, target = dataset.edge_index
    heard = torch.zeros(2000, 32).index_add_(0, target, dataset.x[source])
    # Neighbours are of the classes before and after: their sum points to c - 1 and c + 1.
    scores = heard @ (centres.roll(1, 0) + centres.roll(-1, 0)).T
    accuracy = [(guess == dataset.y).double().mean() for guess in (own, scores.argmax(1))]
    assert accuracy[1] > accuracy[0] + 0.1


def test_communities_hold_most_edges() -> None:
    pytest.importorskip("pymetis")
    from coopsheaf import Graph
    from coopsheaf.scale.clusters import cluster_nodes

    dataset = heterophilic_communities(**SMALL)
    clusters = cluster_nodes(Graph(dataset.edge_index, 2000), 10)
    source, target = dataset.edge_index
    assert (clusters[source] == clusters[target]).double().mean() > 0.85


def test_unshuffled_neighbours_are_near() -> None:
    dataset = heterophilic_communities(**SMALL, shuffle=False)
    source, target = dataset.edge_index
    assert (source // 200 == target // 200).double().mean() > 0.85
    assert 0.07 < statistics(dataset)["edge_homophily"] < 0.13


def test_the_seed_decides() -> None:
    one, two, other = (heterophilic_communities(**SMALL, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.edge_index, two.edge_index)
    assert torch.equal(one.x, two.x)
    assert not torch.equal(one.edge_index, other.edge_index)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 100}, "`num_nodes` must be at least one community, 200; got 100"),
        ({"community": 10}, "`community` must be an integer of at least 15; got 10"),
        ({"num_pairs": 50_000}, "`num_pairs` must be at most 40000, .* got 50000"),
        ({"num_classes": 1}, "`num_classes` must be an integer of at least 2"),
        ({"homophily": 1.5}, r"`homophily` must be a number in \[0, 1\); got 1.5"),
        ({"signal": float("nan")}, "`signal` must be finite"),
    ],
    ids=str,
)
def test_bad_input(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        heterophilic_communities(**{**SMALL, **options})
