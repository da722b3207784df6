"""Graphs in memory: arrays, PyG data, networkx."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.data.convert import from_arrays, from_data, from_networkx
from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import load_tables

N = 12
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.arange(N) % 3
RING = np.roll(np.eye(N), 1, axis=1)  # i -> i + 1


# --- arrays ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [np.array, sp.csr_matrix, sp.coo_array, sp.csc_array, sp.lil_matrix]
)
def test_adjacency_in_every_form(kind: Any) -> None:
    data = from_arrays(X, kind(RING), Y)
    assert data.edge_index.tolist() == [list(range(N)), [*range(1, N), 0]]
    assert data.edge_weight is None
    assert data.reciprocated == 0
    assert data.x.dtype == torch.float32
    assert (data.task, data.metric, data.class_names) == ("multiclass", "accuracy", ("0", "1", "2"))
    assert torch.equal(
        data.train.long() + data.val.long() + data.test.long(), torch.ones(1, N).long()
    )


def test_weights_and_repeated_sparse_entries() -> None:
    matrix = sp.coo_array(([1.0, 2.0, 0.5, 0.0], ([0, 0, 3, 5], [1, 1, 2, 5])), shape=(N, N))
    before = matrix.copy()
    data = from_arrays(X, matrix, Y)
    assert data.edge_index.tolist() == [[0, 3], [1, 2]]
    assert data.edge_weight.tolist() == [3.0, 0.5]
    assert (matrix.data == before.data).all()
    assert matrix.nnz == before.nnz


@pytest.mark.parametrize(
    ("y", "task", "names", "expected"),
    [
        (np.array(["b", "a", "", "b"] * 3), "binary", ("a", "b"), [1, 0, -1, 1]),
        (["b", None, "c", "a"] * 3, "multiclass", ("a", "b", "c"), [1, -1, 2, 0]),
        ([7, -1, 3, 7] * 3, "binary", ("3", "7"), [1, -1, 0, 1]),
        ([True, False, True, False] * 3, "binary", ("0", "1"), [1, 0, 1, 0]),
        ([0.0, 1.0, np.nan, 1.0] * 3, "binary", ("0", "1"), [0, 1, -1, 1]),
    ],
)  # fmt: skip
def test_classes(y: Any, task: str, names: tuple[str, ...], expected: list[int]) -> None:
    data = from_arrays(X, RING, y)
    assert (data.task, data.class_names) == (task, names)
    assert data.y.tolist() == expected * 3
    assert data.y.dtype == torch.int64
    assert not (data.train | data.val | data.test)[0, data.y < 0].any()


def test_real_targets() -> None:
    y = np.linspace(0, 1, N)
    y[3] = np.nan
    data = from_arrays(X, RING, y)
    assert (data.task, data.metric, data.y.dtype) == ("regression", "mae", torch.float32)
    assert data.y[3].isnan()
    assert from_arrays(X, RING, Y, task="regression").y.tolist() == Y.tolist()
    labels = (np.arange(3 * N).reshape(N, 3) % 2).astype(float)
    data = from_arrays(X, RING, labels)
    assert (data.task, data.metric, data.out_channels) == ("multilabel", "ap", 3)


def test_given_masks() -> None:
    masks = {part: np.arange(N) % 3 == i for i, part in enumerate(("train", "val", "test"))}
    y = Y.copy()
    y[0] = -1
    data = from_arrays(X, RING, y, **masks)
    assert data.train[0].nonzero().flatten().tolist() == [3, 6, 9]  # node 0 has no label
    assert data.val[0].tolist() == masks["val"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": X[:, 0]}, r"`x` must have shape \(n, F\), not empty; got \(12,\)"),
        ({"x": np.where(X == 5, np.nan, X)}, "`x` must be finite; row 2, column 1 is nan"),
        ({"x": np.where(X == 5, 1e300, X)}, "`x` must be finite; row 2, column 1 is inf"),
        ({"x": [["a", "b"]] * N}, "`x` must be an array of numbers; got list"),
        ({"x": [[1], [1, 2]]}, "`x` must be an array of numbers; got list"),
        ({"x": X + 1j}, "`x` must be a dense array of real numbers"),
        ({"adjacency": RING[:5]}, r"`adjacency` must be an array or sparse matrix of shape \(12, 12\).*got \(5, 12\)"),
        ({"adjacency": [[0, 1]]}, "`adjacency` must be .* got list"),
        ({"adjacency": -RING}, "`adjacency` must be finite and not negative; edge 0 has -1"),
        ({"adjacency": np.where(RING > 0, np.inf, 0)}, "`adjacency` must be finite and not negative; edge 0 has inf"),
        ({"y": Y[:5]}, r"`y` must have shape \(12,\) or \(12, k\); got \(5,\)"),
        ({"y": [[1], [1, 2]]}, "`y` must be an array; got lists of different lengths"),
        ({"y": np.zeros(N, dtype=int)}, "`y` must have labels of two classes or more; got 1"),
        ({"y": -np.ones(N, dtype=int)}, "`y` must have labels of two classes or more; got 0"),
        ({"y": Y - 5}, "`y` must be class numbers from 0, or -1 for unknown; got -5"),
        ({"y": np.full(N, np.inf)}, "`y` must be finite, or NaN where unknown"),
        ({"y": np.full(N, 1e300)}, "`y` must be below 3e38"),
        ({"y": Y + 0.5, "task": "multiclass"}, "`y` must be one whole number per node"),
        ({"y": ["a", "b"] * 6, "task": "regression"}, "`y` must be numbers for a regression task"),
        ({"task": "binary"}, "`y` must have two classes for a binary task; got 3"),
        ({"task": "multilabel"}, "`y` must be .* for a multilabel task"),
        ({"y": X + 1j}, "`y` must be numbers or texts"),
        ({"train": np.ones(N, dtype=bool)}, "the masks of train, val and test must be given together"),
        ({p: np.zeros(N, dtype=bool) for p in ("train", "val", "test")}, "every split must have labelled nodes for training; split 0"),
        ({p: np.ones(N) for p in ("train", "val", "test")}, r"the train mask must be boolean of shape \(12,\)"),
        ({p: np.ones((N, k), dtype=bool) for p, k in (("train", 1), ("val", 2), ("test", 1))}, "the masks must have one number of splits; got 1, 2, 1"),
    ],
)  # fmt: skip
def test_bad_arrays(change: dict[str, Any], message: str) -> None:
    arguments = {"x": X, "adjacency": RING, "y": Y} | change
    with pytest.raises(DataError, match=message) as error:
        from_arrays(**arguments)
    assert len(str(error.value).splitlines()) == 1


# --- PyG -------------------------------------------------------------------------------------


def pyg(**change: Any) -> Data:
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 2]])
    return Data(
        **({"x": torch.from_numpy(X), "edge_index": edge_index, "y": torch.from_numpy(Y)} | change)
    )


def part(i: int, splits: int | None = None) -> Tensor:
    mask = torch.arange(N) % 3 == i
    return mask if splits is None else mask[:, None].repeat(1, splits)


def test_pyg_without_masks_is_split() -> None:
    data = pyg()
    before = data.clone()
    dataset = from_data(data, name="mine")
    assert dataset.name == "mine"
    assert torch.equal(dataset.edge_index, data.edge_index)
    assert dataset.train.shape == (1, N)
    assert dataset.train.any()
    assert data.keys() == before.keys()
    assert all(torch.equal(data[key], before[key]) for key in data.keys())  # noqa: SIM118
    assert data.x.dtype == torch.float64


@pytest.mark.parametrize("splits", [None, 1, 4])
def test_pyg_masks(splits: int | None) -> None:
    masks = {f"{name}_mask": part(i, splits) for i, name in enumerate(("train", "val", "test"))}
    dataset = from_data(pyg(**masks))
    assert dataset.num_splits == (splits or 1)
    assert torch.equal(dataset.val[-1], part(1))
    assert torch.equal(dataset.to_data(0).train_mask, part(0))


def test_pyg_weights_and_column_targets() -> None:
    dataset = from_data(
        pyg(edge_weight=torch.tensor([1.0, 2.0, 0.0]), y=torch.from_numpy(Y)[:, None])
    )
    assert dataset.edge_weight.tolist() == [1.0, 2.0, 0.0]
    assert dataset.y.shape == (N,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "`data` must have `x`"),
        ({"y": None}, "`data` must have `y`"),
        ({"edge_index": torch.tensor([[0], [12]])}, r"`data.edge_index` must join nodes 0 to 11; edge 0 is \(0, 12\)"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, r"`data.edge_index` must be an int64 tensor of shape \(2, m\)"),
        ({"edge_weight": torch.ones(2)}, r"`data.edge_weight` must have shape \(3,\); got \(2,\)"),
        ({"edge_weight": torch.tensor([1.0, torch.nan, 1.0])}, "`data.edge_weight` must be finite and not negative; edge 1 has nan"),
        ({"train_mask": part(0)}, "the masks of train, val and test must be given together"),
    ],
)  # fmt: skip
def test_bad_pyg(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_data(pyg(**change))


# --- networkx --------------------------------------------------------------------------------


def club(kind: Any = nx.DiGraph) -> Any:
    graph = kind()
    for i in range(20):
        graph.add_node(
            f"n{i}" if i else ("tuple", 0),
            age=i,
            town="ab"[i % 2],
            vec=np.ones(2) * i,
            role="xy"[i // 10],
        )
    nodes = list(graph)
    graph.add_edges_from(itertools.pairwise(nodes), trust=0.5)
    return graph


def test_networkx_directed_stays_directed() -> None:
    graph = club()
    data = from_networkx(graph, target="role")
    assert data.num_nodes == 20
    assert data.edge_index.tolist() == [list(range(19)), list(range(1, 20))]
    assert data.node_ids[:2] == ("('tuple', 0)", "n1")
    assert data.class_names == ("x", "y")
    assert data.num_features == 1 + 4 + 2  # age, town with unseen and missing, vec
    assert data.processing.direction == "stored"
    assert nx.utils.graphs_equal(nx.DiGraph(graph.edges), nx.DiGraph(club().edges))


def test_networkx_undirected_goes_both_ways() -> None:
    data = from_networkx(club(nx.Graph), target="role", features=["vec"], weight="trust")
    assert data.num_edges == 38
    assert data.reciprocated == 1
    assert data.edge_weight.tolist() == [0.5] * 38
    assert data.num_features == 2


def test_networkx_missing_attributes() -> None:
    graph = club()
    del graph.nodes["n5"]["role"]
    graph.nodes["n6"]["age"] = None
    graph.nodes["n7"]["vec"] = None
    data = load_tables(graph, target="role")
    assert data.dataset.y[5] == -1
    assert data.encoder.names == ("age", "town", "vec[0]", "vec[1]")
    assert data.dataset.x.isfinite().all()


def test_networkx_without_edges() -> None:
    graph = club()
    graph.clear_edges()
    assert from_networkx(graph, target="role").num_edges == 0


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda g: g.add_nodes_from([1, "1"]), {}, "`graph` must have nodes that differ as text"),
        (lambda g: g.clear(), {}, "`graph` must have nodes; it is empty"),
        (lambda g: None, {"target": "rank"}, "`graph` has no column 'rank'"),
        (lambda g: None, {"features": ["height"]}, "`graph` has no column 'height'"),
        (lambda g: g.nodes["n3"].update(vec=[1, 2, 3]), {}, "`graph`, node .*: attribute 'vec' must be a list of one length"),
        (lambda g: g.nodes["n3"].update({"vec[0]": 1}), {}, "`graph`: attribute 'vec.*' has the name of another"),
        (lambda g: g.edges["n3", "n4"].update(trust=-1), {"weight": "trust"}, "`graph`, edge number 3, column 'trust': a weight must be"),
    ],
)  # fmt: skip
def test_bad_networkx(change: Any, options: dict[str, Any], message: str) -> None:
    graph = club()
    change(graph)
    with pytest.raises(DataError, match=message):
        from_networkx(graph, **({"target": "role"} | options))


def test_not_networkx() -> None:
    with pytest.raises(DataError, match="`graph` must be a networkx graph; got dict"):
        from_networkx({}, target="role")
