"""From the stored graph to the one a model sees."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

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


def test_rows_hear_columns_of_the_matrix_of_the_list() -> None:
    """Row i of the 0/1 matrix, A[i, j] = 1 for a line (i, j), sums over what node i hears."""
    stored = dataset([[0, 0, 0, 2, 3], [1, 1, 2, 1, 3]], x=randn(4, 3))
    got = stored.process(Processing("rows"))
    matrix = torch.zeros(4, 4).double()
    matrix[stored.edge_index[0], stored.edge_index[1]] = 1
    heard = torch.zeros(4, 3).double().index_add(0, got.edge_index[1], stored.x[got.edge_index[0]])
    assert_close(heard, matrix @ stored.x)
    assert got.num_edges == 4
    weighted = dataset([[0, 0], [1, 1]], [0.5, 2.0]).process(Processing("rows"))
    assert weighted_edges(weighted) == {(1, 0): 2.0}


def test_doubled_loops_are_those_of_a_matrix_plus_the_identity() -> None:
    stored = dataset([[0, 1, 2], [1, 1, 0]])
    got = stored.process(Processing(self_loops="double"))
    assert weighted_edges(got) == {(0, 1): 1, (1, 1): 2, (2, 0): 1}
    weighted = dataset([[0, 1], [1, 1]], [0.5, 3.0]).process(Processing(self_loops="double"))
    assert weighted_edges(weighted) == {(0, 1): 0.5, (1, 1): 6}


def test_relations_are_read_and_not_made() -> None:
    with pytest.raises(ValueError, match="`direction` must be 'stored', 'reversed' or 'rows'"):
        Processing("undirected", relations="mds")
    with pytest.raises(ValueError, match="`relations` must be one of"):
        Processing(relations="isomap")
    with pytest.raises(ValueError, match="`relations` are read together with a dataset"):
        dataset([[0], [1]]).process(Processing(relations="mds"))
    assert Processing().to_json() == {"direction": "stored", "self_loops": "keep", "features": "raw"}  # fmt: skip
    assert Processing(relations="mds").to_json()["relations"] == "mds"


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


def featured(edge_index: list[list[int]], attr: list[list[float]]) -> NodeDataset:
    return replace(dataset(edge_index), edge_attr=torch.tensor(attr).float(), edge_names=("a", "b"))


def edge_features(data: NodeDataset) -> list[tuple[int, int, float, float]]:
    assert data.edge_attr is not None
    rows = zip(data.edge_index.T.tolist(), data.edge_attr.tolist(), strict=True)
    return [(*ends, *values) for ends, values in rows]


def test_features_of_edges_go_with_their_edges() -> None:
    stored = featured([[0, 1, 0, 3], [1, 0, 2, 3]], [[1, 2], [3, 6], [5, 0], [7, 1]])
    assert stored.edge_channels == 2
    turned = edge_features(stored.process(Processing("reversed")))
    assert turned == [(1, 0, 1, 2), (0, 1, 3, 6), (2, 0, 5, 0), (3, 3, 7, 1)]
    both = edge_features(stored.process(Processing("undirected")))
    assert both == [(0, 1, 2, 4), (0, 2, 5, 0), (1, 0, 2, 4), (2, 0, 5, 0), (3, 3, 7, 1)]
    none = edge_features(stored.process(Processing(self_loops="remove")))
    assert none == [(0, 1, 1, 2), (1, 0, 3, 6), (0, 2, 5, 0)]
    loops = edge_features(stored.process(Processing(self_loops="add")))
    assert loops[:3] == none
    assert loops[3:] == [(0, 0, 0, 0), (1, 1, 0, 0), (2, 2, 0, 0), (3, 3, 7, 1)]


def test_parallel_edges_have_the_mean_of_their_features_and_weights_stay_the_largest() -> None:
    stored = featured([[0, 0, 1], [1, 1, 0]], [[0, 1], [3, 1], [6, 4]])
    stored = replace(stored, edge_weight=torch.tensor([1.0, 2.0, 3.0]))
    seen = stored.process(Processing("undirected", "add"))
    assert edge_features(seen)[:2] == [(0, 1, 3, 2), (1, 0, 3, 2)]
    assert seen.edge_weight is not None
    assert seen.edge_weight.tolist() == [3, 3, 1, 1, 1, 1]
    assert edge_features(seen)[2:] == [(i, i, 0, 0) for i in range(4)]


def test_features_of_edges_are_handed_on() -> None:
    stored = featured([[0], [1]], [[1, 2]])
    assert torch.equal(stored.to_data().edge_attr, torch.tensor([[1.0, 2.0]]))
    inputs = stored.edge_inputs(torch.float64)
    assert inputs["edge_weight"] is None
    assert_close(inputs["edge_attr"], torch.tensor([[1.0, 2.0]], dtype=torch.float64))
    assert list(dataset([[0], [1]]).edge_inputs(torch.float64)) == ["edge_weight"]


def test_features_of_edges_must_fit() -> None:
    plain = dataset([[0, 1], [1, 2]])
    wrong = [
        (torch.ones(3, 1), r"`edge_attr` must have shape \(m, k\) with m = 2; got \(3, 1\)"),
        (torch.ones(2), r"`edge_attr` must have shape \(m, k\) with m = 2; got \(2,\)"),
        (torch.ones(2, 0), "`edge_attr` must have a column or more"),
        (torch.ones(2, 1).long(), "`edge_attr` must have a floating point dtype"),
        (torch.tensor([[1.0], [float("nan")]]), "`edge_attr` must be finite"),
    ]
    for attr, message in wrong:
        with pytest.raises(ValueError, match=message):
            replace(plain, edge_attr=attr)
    with pytest.raises(ValueError, match="`edge_names` must name the 1 columns"):
        replace(plain, edge_attr=torch.ones(2, 1), edge_names=("a", "b"))


def test_all_graphs_have_features_of_edges_or_none() -> None:
    def graph(attr: Tensor | None) -> Data:
        edges = torch.tensor([[0, 1], [1, 0]])
        return Data(x=randn(2, 3), edge_index=edges, edge_attr=attr, y=torch.ones(1, 1))

    def many(*attrs: Tensor | None) -> GraphDataset:
        part = torch.arange(1)
        graphs = [graph(attr) for attr in attrs]
        return GraphDataset("own", graphs, part, part, part, "regression", "mae")

    assert many(torch.ones(2, 4), torch.ones(2, 4)).edge_channels == 4
    assert many(None, None).edge_channels == 0
    assert many(torch.ones(2, 4).long()).edge_channels == 0, "codes are no features"
    for second in (None, torch.ones(2, 3)):
        with pytest.raises(ValueError, match=r"must all have 4 features of edges.*graph 1 has"):
            many(torch.ones(2, 4), second)
    with pytest.raises(ValueError, match=r"`graphs\[0\].edge_attr` must have shape \(m, k\)"):
        many(torch.ones(3, 4))
