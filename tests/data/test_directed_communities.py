"""Communities whose arcs tell by their direction: what tells, and what does not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.directed_communities import directed_communities
from coopsheaf.data.registry import load_dataset, statistics, verify


def sides(data: NodeDataset) -> Tensor:
    """The side of every node as it shows it, ±1."""
    return data.x[:, 0]


def accuracy(guess: Tensor, y: Tensor) -> float:
    right = float((guess == y).double().mean())
    return max(right, 1 - right)  # which sign is which class is not told


def difference(data: NodeDataset, shown: Tensor) -> tuple[Tensor, Tensor]:
    """What nodes that point to a node show, minus and plus what those show that it points to."""
    source, target = data.edge_index
    zero = torch.zeros(data.num_nodes)
    into = zero.index_add(0, target, shown[source])
    out = zero.index_add(0, source, shown[target])
    return into - out, into + out


def test_it_is_what_was_asked_for() -> None:
    data = directed_communities(400, 3000, direction=0.5, num_splits=3)
    found = statistics(data)
    assert (found["nodes"], found["edges"], found["features"]) == (400, 3000, 2)
    assert (found["self_loops"], found["class_counts"]) == (0, (200, 200))
    assert found["split_sizes"] == ((240, 80, 80),) * 3
    assert (data.edge_index[0] * 400 + data.edge_index[1]).unique().numel() == 3000
    assert data.processing.direction == "stored"
    again = directed_communities(400, 3000, direction=0.5, num_splits=3)
    assert torch.equal(again.x, data.x)
    assert torch.equal(again.edge_index, data.edge_index)
    other = directed_communities(400, 3000, direction=0.5, seed=1)
    assert not torch.equal(other.edge_index, data.edge_index)


@pytest.mark.parametrize("percent", [0, 50, 100])
def test_some_have_names(percent: int) -> None:
    data = load_dataset(f"directed-communities-{percent}")
    assert data.name == f"directed-communities-{percent}"
    assert verify(data.name).differences == ()
    source, target = data.edge_index
    same = float((data.y[source] == data.y[target]).double().mean())
    assert same == pytest.approx(1 - percent / 200, abs=0.02)
    undirected = load_dataset(data.name, direction="undirected")
    assert statistics(undirected)["reciprocated"] == 1.0


def test_at_one_end_only_the_direction_tells() -> None:
    data = directed_communities(1000, 10_000, direction=1.0, signal=1.0, side=0.9)
    turned, summed = difference(data, sides(data))
    assert accuracy((turned > 0).long(), data.y) > 0.98
    assert accuracy((summed > 0).long(), data.y) < 0.56
    # Neighbours are of both classes, and nobody points back.
    source, target = data.edge_index
    assert 0.47 < float((data.y[source] == data.y[target]).double().mean()) < 0.53
    assert statistics(data)["reciprocated"] == 0.0
    # Features alone say nothing of the class, and those of neighbours together neither.
    hint = (data.x[:, 1] > 0).long()
    assert accuracy(hint, data.y) < 0.56
    assert accuracy((difference(data, data.x[:, 1])[1] > 0).long(), data.y) < 0.56


def test_exchanging_the_classes_turns_every_arc_round() -> None:
    """By communities: arcs of each kind, counted, are those of the other class turned round."""
    data = directed_communities(1000, 20_000, direction=1.0, side=1.0)
    kind = 2 * data.y + (sides(data) > 0).long()
    source, target = data.edge_index
    counts = torch.bincount(kind[source] * 4 + kind[target], minlength=16).view(4, 4)
    exchanged = torch.tensor([2, 3, 0, 1])
    assert (counts > 0).sum() == 4
    assert torch.equal(counts > 0, counts[exchanged][:, exchanged].T > 0)
    assert not torch.equal(counts > 0, counts.T > 0)


def test_at_the_other_end_only_homophily_tells() -> None:
    data = directed_communities(1000, 10_000, direction=0.0, signal=0.7, side=0.9)
    source, target = data.edge_index
    assert (data.y[source] == data.y[target]).all()
    turned, summed = difference(data, sides(data))
    assert accuracy((turned > 0).long(), data.y) < 0.56
    assert accuracy((summed > 0).long(), data.y) < 0.56
    hint, (_, heard) = data.x[:, 1], difference(data, data.x[:, 1])
    assert 0.66 < accuracy((hint > 0).long(), data.y) < 0.74
    assert accuracy((heard > 0).long(), data.y) > 0.9


def test_the_knob_is_a_share() -> None:
    same = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        data = directed_communities(2000, 20_000, direction=share)
        source, target = data.edge_index
        same.append(float((data.y[source] == data.y[target]).double().mean()))
    # Round the circle half of all steps stay in a class, otherwise all do.
    for share, found in zip((0.0, 0.25, 0.5, 0.75, 1.0), same, strict=True):
        assert found == pytest.approx(1 - share / 2, abs=0.015)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_nodes": 10}, "`num_nodes` must be"),
        ({"num_nodes": 1001}, "`num_nodes` must be a multiple of 4"),
        ({"direction": 1.5}, "`direction` must be"),
        ({"num_arcs": 100_000}, "`num_arcs` must be at most 62500"),
        ({"signal": float("nan")}, "`signal` must be a number in"),
        ({"side": 0.2}, "`side` must be a number in"),
        ({"num_splits": 0}, "`num_splits` must be"),
    ],
)
def test_bad_arguments_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        directed_communities(**options)
