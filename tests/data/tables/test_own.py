"""Tables of a run, read again: also those of runs that kept only what had been asked for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import load_tables, read_tables_like
from coopsheaf.data.tables.own import read_own_again, read_own_pairs, stored_schema

PARTS = ["train", "val", "train", "test"]
NODES = "id,age,fold,split,label\n" + "".join(
    f"p{i},{i},{i % 3},{PARTS[i % 4]},{'xy'[i % 3 == 0]}\n" for i in range(16)
)
EDGES = "target,source\n" + "".join(f"p{i},p{i + 1}\n" for i in range(15))
# As version 0.1 stored an encoder and options.
ENCODER = {
    "columns": [
        {"kind": "numeric", "name": "age", "mean": 4.0, "std": 2.0, "indicator": False},
        {"kind": "numeric", "name": "fold", "mean": 0.0, "std": 1.0, "indicator": False},
    ]
}
OPTIONS: dict[str, Any] = {
    "target": "label", "id": "id", "features": None, "categorical": [], "split": None,
    "source": None, "edge_target": None, "weight": None, "task": None, "undirected": False,
    "seed": 0,
}  # fmt: skip


def stored(folder: Path, nodes: str = NODES, edges: str = EDGES, **changed: Any) -> dict[str, Any]:
    paths = {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv"}
    for role, content in (("nodes", nodes), ("edges", edges)):
        paths[role].write_text(content)
    return OPTIONS | changed | {role: str(path) for role, path in paths.items()}


def test_an_old_run_reads_its_tables_as_then(tmp_path: Path) -> None:
    dataset = read_own_again(stored(tmp_path), ENCODER)
    # Places of ends, whatever their names; numbers of folds were a feature.
    assert dataset.edge_index.tolist() == [list(range(15)), list(range(1, 16))]
    assert torch.allclose(dataset.x[:, 0], (torch.arange(16.0) - 4) / 2)
    assert dataset.x[:, 1].tolist() == [i % 3 for i in range(16)]
    assert dataset.train.shape == (1, 16)
    assert dataset.test[0].nonzero().flatten().tolist() == [3, 7, 11, 15]
    files = [hashlib.sha256(text.encode()).hexdigest() for text in (NODES, EDGES)]
    both = hashlib.sha256("".join(files).encode()).hexdigest()
    text = json.dumps([both, OPTIONS], sort_keys=True)
    assert dataset.checksum == hashlib.sha256(text.encode()).hexdigest()


def test_an_old_run_whose_split_was_not_understood(tmp_path: Path) -> None:
    """It was a feature then, and the split was drawn."""
    nodes = NODES.replace("p3,3,0,test", "p3,3,0,other")
    encoder = {"columns": [*ENCODER["columns"], {"kind": "categorical", "name": "split", "categories": ["test", "train", "val"]}]}  # fmt: skip
    dataset = read_own_again(stored(tmp_path, nodes), encoder)
    assert dataset.num_features == 2 + 5
    assert [int(mask.sum()) for mask in (dataset.train, dataset.val, dataset.test)] == [10, 3, 3]
    # With features named, such a column was nothing at all.
    dataset = read_own_again(stored(tmp_path, nodes, features=["age", "fold"]), ENCODER)
    assert dataset.num_features == 2
    assert int(dataset.train.sum()) == 10


def test_new_tables_for_an_old_run(tmp_path: Path) -> None:
    tables = stored(tmp_path)
    schema = stored_schema(tables, ENCODER, "binary", ("x", "y"))
    nodes = {"fold": [0, 1], "age": [4, 6], "id": ["a", "b"]}
    edges = {"source": ["b"], "target": ["a"]}
    data = read_tables_like(nodes, edges, None, schema)
    assert data.dataset.x.tolist() == [[0, 0], [1, 1]]
    assert data.dataset.edge_index.tolist() == [[0], [1]]  # 'target' came first, and was the source
    assert data.class_names == ("x", "y")
    usual = stored(tmp_path, edges=EDGES.replace("target,source", "source,target"))
    schema = stored_schema(usual, ENCODER, "binary", ("x", "y"))
    for ends in (("source", "target"), ("a", "b"), ("src", "dst")):
        edges = dict(zip(ends, (["b"], ["a"]), strict=True))
        data = read_tables_like(nodes, edges, None, schema)
        assert data.dataset.edge_index.tolist() == [[1], [0]]
    schema = stored_schema(usual | {"edges": "/gone.csv"}, ENCODER, "binary", ("x", "y"))
    assert read_tables_like(nodes, edges, None, schema).dataset.num_edges == 1


@pytest.mark.parametrize("options", [{}, {"split": "split"}, {"undirected": True, "self_loops": "add"}, {"features": ["age"], "isolated": "exclude"}, {"duplicates": "merge", "drop": ["fold"]}])  # fmt: skip
def test_a_run_reads_its_tables_again(tmp_path: Path, options: dict[str, Any]) -> None:
    tables = stored(tmp_path)
    first = load_tables(tables["nodes"], tables["edges"], target="label", **options)
    kept = json.loads(json.dumps(first.kept))
    again = read_own_again(kept["tables"], kept["encoder"])
    for name in ("x", "edge_index", "y", "train", "val", "test"):
        assert torch.equal(getattr(again, name), getattr(first.dataset, name))
    assert again.checksum == first.dataset.checksum
    schema = stored_schema(kept["tables"], kept["encoder"], "binary", ("x", "y"))
    assert schema == first.schema


def test_changed_tables_have_another_checksum(tmp_path: Path) -> None:
    tables = stored(tmp_path)
    first = load_tables(tables["nodes"], tables["edges"], target="label")
    stored(tmp_path, NODES.replace("p3,3", "p3,4"))
    kept = first.kept
    assert read_own_again(kept["tables"], kept["encoder"]).checksum != first.dataset.checksum


def test_pairs(tmp_path: Path) -> None:
    tables = stored(tmp_path)
    data = load_tables(tables["nodes"], tables["edges"], task="link", drop=["label"])
    named = {"x": [0], "target": ["p1"], "source": ["p7"]}
    assert read_own_pairs(named, data.schema, data.ids).tolist() == [[7], [1]]
    assert read_own_pairs({"u": ["p2"], "v": ["p3"]}, data.schema, data.ids).tolist() == [[2], [3]]
    with pytest.raises(
        DataError, match="`pairs`, row 0, column 'v': an edge must join nodes of the nodes"
    ):
        read_own_pairs({"u": ["p2"], "v": ["zz"]}, data.schema, data.ids)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": None}, "the nodes of this run came from a pipe or from memory"),
        ({"edges": 7}, "the edges of this run came from a pipe or from memory"),
        ({"seed": "1"}, "stored tables: the option seed cannot be '1'"),
        ({"target": 5}, "the option target cannot be '5'"),
        ({"undirected": 1}, "the option undirected cannot be '1'"),
        ({"weight": 2.0}, "the option weight cannot be '2.0'"),
        ({"colour": "red"}, "stored tables have an unknown option 'colour'"),
        ({"options": []}, r"stored tables must hold options; got '\[\]'"),
        ({"options": {"seed": -1}}, "seed"),
        ({"options": {"task": "x"}}, "task"),
        ({"options": {"self_loops": None}}, "self_loops"),
        ({"nodes": "/gone.csv"}, "/gone.csv does not exist"),
    ],
)  # fmt: skip
def test_mangled_options(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_own_again(stored(tmp_path) | change, ENCODER)


def test_lacking_options(tmp_path: Path) -> None:
    tables = stored(tmp_path)
    del tables["seed"]
    with pytest.raises(
        DataError, match="stored tables must say how they were read; they lack seed"
    ):
        read_own_again(tables, ENCODER)
    with pytest.raises(DataError, match="must name the column of ids"):
        stored_schema(stored(tmp_path, id=None), ENCODER, "binary", ("x", "y"))
