"""Many graphs in three tables."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import TableData, load_tables

G = 10
GRAPHS: dict[str, Any] = {"graph": [f"g{i}" for i in range(G)], "toxic": ["yes", "no"] * 5}
# Every graph has nodes 0, 1, 2; the tables are in another order than the graphs.
NODES: dict[str, Any] = {
    "node": [k for k in range(3) for _ in range(G)],
    "graph": [f"g{i}" for _ in range(3) for i in range(G)],
    "charge": [float(10 * i + k) for k in range(3) for i in range(G)],
    "split": ["x"] * 3 * G,
}
EDGES: dict[str, Any] = {
    "graph": [f"g{i}" for i in range(G)] * 2,
    "u": [0] * G + [1] * G,
    "v": [1] * G + [2] * G,
    "order": [1.0] * G + [2.0] * G,
}


def load(nodes: Any = NODES, edges: Any = EDGES, graphs: Any = GRAPHS, **more: Any) -> TableData:
    return load_tables(nodes, edges, graphs=graphs, **{"target": "toxic", **more})


def test_graphs_are_cut_out() -> None:
    data = load(edge_features=["order"])
    dataset = data.dataset
    assert data.ids == tuple(GRAPHS["graph"])
    assert (dataset.task, data.class_names, len(dataset.graphs)) == ("binary", ("no", "yes"), G)
    for number, graph in enumerate(dataset.graphs):
        charge = graph.x[:, 0]
        assert torch.allclose(charge.diff(), charge.diff()[0].expand(2))
        assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
        assert graph.edge_attr.shape == (2, 1)
        assert graph.y.tolist() == [(number + 1) % 2]
    assert data.encoder.names == ("charge",)
    assert any("'split' look like a split of nodes" in note for note in data.notes)
    sizes = [len(part) for part in (dataset.train, dataset.val, dataset.test)]
    assert sizes == [6, 2, 2]


def test_later_graphs() -> None:
    data = load()
    fewer = {n: [v[i] for i in range(3 * G) if i % G < 2] for n, v in NODES.items()}
    edges = {n: [v[i] for i in range(2 * G) if i % G < 2] for n, v in EDGES.items()}
    later = load_tables(fewer, edges, graphs={"graph": ["g1", "g0"]}, like=data.schema)
    assert later.ids == ("g1", "g0")
    assert torch.equal(later.dataset.graphs[1].x, data.dataset.graphs[0].x)
    assert torch.equal(later.dataset.graphs[1].edge_index, data.dataset.graphs[0].edge_index)
    with pytest.raises(DataError, match="the model predicts whole graphs; give --graphs, too"):
        load_tables(fewer, edges, like=data.schema)


def test_split_of_graphs() -> None:
    parts = ["train"] * 6 + ["val", "val", "test", "test"]
    data = load(graphs=GRAPHS | {"split": parts, "size": [3] * G})
    assert data.dataset.train.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.dataset.test.tolist() == [8, 9]
    assert any("`graphs`: not used: 'size'" in note for note in data.notes)
    with pytest.raises(DataError, match="`graphs`: whole graphs must have one split; 5 folds"):
        load(graphs=GRAPHS | {"fold": [0, 1, 2, 3, 4] * 2})


def test_other_names_of_the_graph_column() -> None:
    def called(table: Any, name: str) -> Any:
        return {name if key == "graph" else key: values for key, values in table.items()}

    wanted = load()
    for names in (
        ("Graph_ID", "graph", "id"),
        ("graph", "graph_id", "graph"),
        ("mol", "mol", "mol"),
    ):
        given = [called(t, n) for t, n in zip((NODES, EDGES, GRAPHS), names, strict=True)]
        data = load(*given, graph="mol" if "mol" in names else None)
        for one, two in zip(data.dataset.graphs, wanted.dataset.graphs, strict=True):
            assert torch.equal(one.x, two.x)
            assert torch.equal(one.edge_index, two.edge_index)
        assert not any("not used: 'id'" in note for note in data.notes)


def test_edges_without_a_graph() -> None:
    names = [f"{g}-{k}" for g, k in zip(NODES["graph"], NODES["node"], strict=True)]
    nodes = NODES | {"node": names}
    edges = {
        end: [f"{g}-{k}" for g, k in zip(EDGES["graph"], EDGES[end], strict=True)] for end in "uv"
    }
    data = load(nodes, edges)
    assert data.dataset.graphs[4].edge_index.tolist() == [[0, 1], [1, 2]]
    crossing = {"u": ["g0-0", "g1-0"], "v": ["g0-1", "g2-1"]}
    with pytest.raises(
        DataError,
        match="`edges`, row 1: an edge must join nodes of one graph; these are of 'g1' and 'g2'",
    ):
        load(nodes, crossing)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"graphs": {"graph": ["g0"], "toxic": ["yes"]}}, "`nodes`, row 1, column 'graph': a node must be of a graph of `graphs`; it has no graph 'g1'"),
        ({"graphs": {"graph": [*GRAPHS["graph"], "z"], "toxic": ["yes", "no"] * 5 + ["no"]}}, "`graphs`, row 10, column 'graph': every graph must have nodes; 'z' has none"),
        ({"graphs": {"graph": ["g0"] * G, "toxic": ["yes", "no"] * 5}}, "`graphs`, row 1, column 'graph': ids must differ"),
        ({"nodes": {n: v for n, v in NODES.items() if n != "graph"}}, "`nodes`: a column must say of which graph a row is"),
        ({"nodes": NODES | {"node": [0] * 3 * G}}, "`nodes`, row 10, column 'node': ids must differ; '0' is also on row 0"),
        ({"nodes": NODES | {"node": ["", *NODES["node"][1:]]}}, "`nodes`, row 0, column 'node': every node must have an id"),
        ({"edges": EDGES | {"v": [7] * 2 * G}}, "`edges`, row 0, column 'v': an edge must join nodes .* no node '7'"),
        ({"target": None}, "`graphs`: name the target, the column to predict"),
        ({"target": "x"}, "`graphs` has no column 'x'"),
        ({"weight": "order"}, "--weight must be left out where whole graphs are predicted"),
        ({"isolated": "exclude"}, "--isolated must be left out where whole graphs"),
        ({"task": "link", "target": None}, "`graphs`: a table of graphs goes with targets"),
        ({"graphs": None, "target": "charge", "graph": "graph", "id": "charge"}, "--graph must be left out where there is no table of graphs"),
    ],
)  # fmt: skip
def test_bad_graphs(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        load(**change)
    assert len(str(error.value).splitlines()) == 1
