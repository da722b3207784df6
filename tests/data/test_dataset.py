"""From the stored graph to the one a model sees."""

from __future__ import annotations

import pytest
import torch
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf.data.dataset import GraphDataset, NodeDataset, Processing, default_metric


def dataset(
    edge_index: list[list[int]], weight: list[float] | None = None, x: Tensor | None = None
) -> NodeDataset:
    x = randn(4, 3) if x is None else x
    n = x.shape[0]
    mask = torch.ones(1, n, dtype=torch.bool)
    edges = torch.tensor(edge_index, dtype=torch.int64).reshape(2, -1)
    weights = None if weight is None else torch.tensor(weight)
    y = torch.arange(n) % 2
    return NodeDataset("own", x, edges, y, mask, ~mask, ~mask, "binary", "accuracy", edge_weight=weights)  # fmt: skip


def weighted_edges(data: NodeDataset) -> dict[tuple[int, int], float]:
    assert data.edge_weight is not None
    edges = [(int(j), int(i)) for j, i in data.edge_index.T]
    assert len(set(edges)) == len(edges), "each edge once"
    return dict(zip(edges, data.edge_weight.tolist(), strict=True))


def test_rows_are_divided_by_their_sums_and_empty_rows_stay_zero() -> None:
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0], [1.0, -1.0]])
    got = dataset([[0], [1]], x=x).process(Processing(features="row-normalized")).x
    assert torch.isfinite(got).all()
    assert_close(got, torch.tensor([[0.25, 0.75], [0.0, 0.0], [1.0, 0.0], [1.0, -1.0]]))


def test_columns_have_mean_zero_and_variance_one_and_constant_ones_stay_finite() -> None:
    x = torch.cat([3 + 5 * randn(50, 2), torch.full((50, 1), 7.0).double()], dim=1)
    got = dataset([[0], [1]], x=x).process(Processing(features="standardized")).x
    assert_close(got.mean(0), torch.zeros(3).double(), rtol=0, atol=1e-12)
    assert_close(got[:, :2].square().mean(0), torch.ones(2).double())
    assert torch.equal(got[:, 2], torch.zeros(50).double())


def test_two_directions_of_a_pair_keep_the_larger_weight() -> None:
    """Not the sum: a friendship that both sides list is not twice as strong."""
    stored = dataset([[0, 1, 1, 2], [1, 0, 2, 3]], [0.5, 2.0, 3.0, 4.0])
    got = stored.process(Processing("undirected"))
    assert weighted_edges(got) == {(0, 1): 2, (1, 0): 2, (1, 2): 3, (2, 1): 3, (2, 3): 4, (3, 2): 4}


def test_a_pair_with_equal_weights_both_ways_keeps_its_weight() -> None:
    stored = dataset([[0, 1], [1, 0]], [0.25, 0.25])
    assert weighted_edges(stored.process(Processing("undirected"))) == {(0, 1): 0.25, (1, 0): 0.25}


def test_parallel_edges_and_loops_are_there_once() -> None:
    stored = dataset([[0, 0, 2, 2], [1, 1, 2, 2]], [1.0, 3.0, 5.0, 2.0])
    got = weighted_edges(stored.process(Processing("undirected")))
    assert got == {(0, 1): 3, (1, 0): 3, (2, 2): 5}


def test_weights_go_with_their_edges() -> None:
    """Whatever the order of the edges: every weight names its own pair."""
    edges = torch.randint(0, 6, (2, 12), generator=generator(1))
    low, high = edges.amin(0), edges.amax(0)
    names = (10 * low + high).float()
    stored = dataset(edges.tolist(), names.tolist(), randn(6, 2))
    for direction in ("stored", "reversed", "undirected"):
        got = stored.process(Processing(direction))
        assert got.edge_weight is not None
        assert torch.equal(got.edge_weight, (10 * got.edge_index.amin(0) + got.edge_index.amax(0)).float())  # fmt: skip


def test_without_weights_each_edge_is_there_both_ways_once() -> None:
    got = dataset([[0, 1, 0, 3], [1, 0, 1, 3]]).process(Processing("undirected"))
    assert got.edge_weight is None
    assert sorted(map(tuple, got.edge_index.T.tolist())) == [(0, 1), (1, 0), (3, 3)]
    assert got.reciprocated == 1


def test_reversed_edges_are_turned_round_with_their_weights() -> None:
    got = dataset([[0, 1], [1, 2]], [0.5, 2.0]).process(Processing("reversed"))
    assert weighted_edges(got) == {(1, 0): 0.5, (2, 1): 2.0}


def test_self_loops_are_kept_removed_or_added() -> None:
    stored = dataset([[0, 1], [1, 1]], [0.5, 2.0])
    assert weighted_edges(stored.process(Processing())) == {(0, 1): 0.5, (1, 1): 2}
    assert weighted_edges(stored.process(Processing(self_loops="remove"))) == {(0, 1): 0.5}
    added = weighted_edges(stored.process(Processing(self_loops="add")))
    assert added == {(0, 1): 0.5, (0, 0): 1, (1, 1): 2, (2, 2): 1, (3, 3): 1}


def test_the_stored_graph_stays_as_it_is() -> None:
    stored = dataset([[0, 1], [1, 1]], [0.5, 2.0])
    before = stored.x.clone(), stored.edge_index.clone()
    seen = stored.process(Processing("undirected", "remove", "row-normalized"))
    assert torch.equal(stored.x, before[0])
    assert torch.equal(stored.edge_index, before[1])
    assert stored.processing == Processing()
    assert seen.processing == Processing("undirected", "remove", "row-normalized")


def test_the_share_of_edges_that_go_both_ways() -> None:
    assert dataset([[0, 1, 1, 2], [1, 0, 2, 2]]).reciprocated == pytest.approx(2 / 3)
    assert dataset([[2], [2]]).reciprocated == 1
    assert dataset([[2], [2]]).has_self_loops
    assert not dataset([[2], [1]]).has_self_loops


def test_auroc_needs_both_classes_in_every_part() -> None:
    y = torch.tensor([0, 1, 0, 1])
    some, others = torch.tensor([[True, True, False, False]]), torch.tensor([[True, False, True, False]])  # fmt: skip
    assert default_metric("binary", y, some, ~some) == "auroc"
    assert default_metric("binary", y, some, others) == "accuracy"
    assert default_metric("regression", y.double(), others) == "mae"


def test_wrong_masks_splits_and_words_are_named() -> None:
    data = dataset([[0], [1]])
    with pytest.raises(ValueError, match="`split` must be between 0 and 0 for own; got 1"):
        data.positions(1)
    with pytest.raises(ValueError, match="split 0 of own has no training nodes"):
        NodeDataset("own", data.x, data.edge_index, data.y, data.val, data.val, data.val, "binary", "ap").positions(0)  # fmt: skip
    with pytest.raises(ValueError, match=r"`val` must be a boolean tensor of shape \(splits, 4\)"):
        NodeDataset("own", data.x, data.edge_index, data.y, data.train, data.val[0], data.val, "binary", "ap")  # fmt: skip
    with pytest.raises(ValueError, match="`task` must be one of"):
        GraphDataset("own", [], data.y, data.y, data.y, "guess", "ap")
    with pytest.raises(ValueError, match="`direction` must be one of"):
        Processing("sideways")
