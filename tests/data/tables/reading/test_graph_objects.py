"""networkx graphs and arrays as tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import load_tables

N = 20


def club(kind: Any = nx.DiGraph, towns: str = "ab") -> Any:
    graph = kind()
    for i in range(N):
        graph.add_node(i, age=i, town=towns[i % 2], vec=[i, 2.0], role="xy"[i // 10], fold=i % 5)
    for i in range(N - 1):
        graph.add_edge(i, i + 1, trust=0.5, flow=[1.0, i], at=datetime(2020, 1, 1 + i))
    return graph


def test_attributes_are_columns() -> None:
    data = load_tables(club(), target="role", weight="trust", edge_features=["flow"])
    assert data.encoder.names == ("age", "town", "vec[0]", "vec[1]")  # the folds are the split
    assert data.dataset.num_splits == 5
    assert data.schema.edge_features == ("flow[0]", "flow[1]")
    assert data.dataset.edge_weight.tolist() == [0.5] * (N - 1)
    notes = "\n".join(data.notes)
    assert "nodes: as the graph has them" in notes
    assert "edges: as the graph has them; not used: 'at'" in notes
    assert "kept directed" in notes


def test_names_of_lists_stand_for_all_of_them() -> None:
    data = load_tables(club(), target="role", drop=["vec", "fold"], categorical=["age"])
    assert data.encoder.names == ("age", "town")
    data = load_tables(club(), target="role", features=["vec"])
    assert data.encoder.names == ("vec[0]", "vec[1]")


def test_another_graph_with_other_categories() -> None:
    """The first graph's encoder: what is new is counted, and nothing is fitted again."""
    data = load_tables(club(), target="role", drop=["fold"])
    later = load_tables(club(towns="bc"), like=data.schema)
    assert torch.equal(later.dataset.x[:, 0], data.dataset.x[:, 0])
    assert any("column 'town': 10 cells have a category not seen" in note for note in later.notes)
    same = load_tables(club(), like=data.schema)
    assert torch.equal(same.dataset.x, data.dataset.x)
    table = {"node": list(range(N)), "age": list(range(N)), "town": ["a", "b"] * 10, "vec[0]": list(range(N)), "vec[1]": [2.0] * N}  # fmt: skip
    other = load_tables(table, {"dst": [1], "src": [0]}, like=data.schema)
    assert torch.allclose(other.dataset.x, data.dataset.x)
    assert other.dataset.edge_index.tolist() == [[0], [1]]


def test_undirected_and_parallel_edges() -> None:
    data = load_tables(club(nx.Graph), target="role")
    assert data.dataset.num_edges == 2 * (N - 1)
    assert data.notes[-1].endswith("all are used both ways")
    graph = club(nx.MultiDiGraph)
    graph.add_edge(0, 1, trust=2.0)
    graph = nx.compose(graph, graph)
    data = load_tables(graph, target="role", weight="trust", duplicates="merge")
    assert "1 edges repeat earlier ones: merged" in data.notes
    assert data.dataset.edge_weight.max() == 2.5


def test_no_edges_are_no_mistake_in_a_graph() -> None:
    graph = club()
    graph.clear_edges()
    data = load_tables(graph, target="role")
    assert data.dataset.num_edges == 0
    assert (
        f"{N} nodes have no edge: kept; --isolated exclude leaves them out of the split"
        in data.notes
    )


def test_a_graph_has_its_own_edges() -> None:
    with pytest.raises(DataError, match="`edges` must be left out: a networkx graph has its own"):
        load_tables(club(), {"u": [0], "v": [1]}, target="role")
    with pytest.raises(DataError, match="`edges` must be given beside `nodes`"):
        load_tables({"id": [0]}, target="role")
    graph = club()
    graph.nodes[3]["vec"] = 7
    with pytest.raises(DataError, match="attribute 'vec' must be a list of one length at every"):
        load_tables(graph, target="role")


# --- arrays ----------------------------------------------------------------------------------

X = np.stack([np.arange(12.0), np.arange(12) % 3], axis=1)
RING = np.roll(np.eye(12), 1, axis=1)
INDEX = np.stack([np.arange(12), (np.arange(12) + 1) % 12])


@pytest.mark.parametrize("edges", [INDEX, torch.from_numpy(INDEX), RING, sp.csr_array(RING), {"src": INDEX[0], "dst": INDEX[1]}])  # fmt: skip
@pytest.mark.parametrize("x", [X, torch.from_numpy(X).requires_grad_(), sp.csr_array(X)])
def test_arrays(x: Any, edges: Any) -> None:
    data = load_tables(x, edges, target="x[1]")
    assert data.ids == tuple(map(str, range(12)))
    assert data.dataset.edge_index.tolist() == INDEX.tolist()
    assert data.encoder.names == ("x[0]",)
    assert data.dataset.y.tolist() == [0, 1, 2] * 4
    assert data.dataset.edge_weight is None


def test_entries_of_an_adjacency_are_weights() -> None:
    data = load_tables(X, RING * 3, target="x[1]")
    assert data.dataset.edge_weight.tolist() == [3] * 12
    plain = load_tables(X, RING, target="x[1]")
    with pytest.raises(DataError, match="the model was trained without weights of edges"):
        load_tables(X, RING * 3, like=plain.schema)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (INDEX + 0.5, r"`edge_index` must be whole numbers of shape \(2, m\); got float64"),
        (INDEX.T, "`edges` must be a path, a DataFrame"),
        (INDEX + 1, "`edges`, edge number 11, column '<source>': .* no node '12'"),
        (INDEX - 1, "no node '-1'"),
    ],
)  # fmt: skip
def test_bad_arrays_of_edges(edges: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_tables(X, edges, target="x[1]")


def test_an_array_of_edges_beside_a_table_has_ids() -> None:
    nodes = {"id": list(range(12))[::-1], "label": ["a", "b"] * 6}
    data = load_tables(nodes, np.array([[0, 1], [1, 2]]), target="label")
    assert data.dataset.edge_index.tolist() == [[11, 10], [10, 9]]
    assert "edges: the numbers of the array are ids of column 'id', not places" in data.notes
