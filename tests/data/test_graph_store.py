"""Converted graphs are kept whole, and given back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from coopsheaf.data import graph_store
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import cache_dir
from coopsheaf.data.graph_store import read_graphs, remember_graphs, write_graphs
from coopsheaf.data.tensors import GraphTensors


def graph(nodes: int, edges: int, seed: int) -> Data:
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randint(-2, 300, (nodes, 9), generator=generator),
        edge_index=torch.randint(nodes, (2, edges), generator=generator),
        edge_attr=torch.randint(5, (edges, 3), generator=generator),
        y=torch.randn(1, 10, generator=generator),
    )


def some() -> GraphTensors:
    graphs = [graph(4, 6, 0), graph(1, 0, 1), graph(7, 12, 2)]  # one without edges
    return GraphTensors(graphs, torch.tensor([2, 0]), torch.tensor([1]), torch.tensor([], dtype=torch.int64))  # fmt: skip


def same(first: GraphTensors, second: GraphTensors) -> bool:
    parts = zip(first[1:], second[1:], strict=True)
    pairs = [
        (one.to_dict(), two.to_dict()) for one, two in zip(first.graphs, second.graphs, strict=True)
    ]
    return all(torch.equal(a, b) for a, b in parts) and all(
        one.keys() == two.keys()
        and all(one[key].dtype == two[key].dtype and torch.equal(one[key], two[key]) for key in one)
        for one, two in pairs
    )


def refuse() -> GraphTensors:
    raise AssertionError("what is kept is not converted again")


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    write_graphs(tmp_path / "store", "key", some())
    assert same(read_graphs(tmp_path / "store", "key"), some())
    entry = json.loads((tmp_path / "store" / "meta.json").read_text())["files"]
    assert (entry["x.npy"]["dtype"], entry["edge_index.npy"]["dtype"]) == ("int16", "uint8")


def test_graphs_are_made_once() -> None:
    made = remember_graphs("key", some)
    assert same(remember_graphs("key", refuse), made)
    assert (cache_dir() / "converted" / "key" / "meta.json").is_file()
    with pytest.raises(AssertionError):
        remember_graphs("another", refuse)


def test_a_damaged_store_is_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    remember_graphs("key", some)
    path = cache_dir() / "converted" / "key" / "x.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert same(remember_graphs("key", some), some())
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "x.npy: damaged" in said
    assert "made again" in said
    assert same(remember_graphs("key", refuse), some())


def test_what_cannot_be_kept_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(graph_store, "write_tensor", full)
    assert same(remember_graphs("key", some), some())
    assert "cannot be kept (No space left on device)" in capsys.readouterr().err
    assert not list((cache_dir() / "converted").glob("*"))


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise DataError("the home folder must be known")

    monkeypatch.setattr(graph_store, "cache_dir", homeless)
    assert same(remember_graphs("key", some), some())


@pytest.mark.parametrize(
    ("array", "value", "reason"),
    [
        ("nodes", [4, 1], "not converted graphs"),
        ("nodes", [5, 1, 7], "not converted graphs"),
        ("nodes", [1, 4, 7], "nodes or graphs that are not there"),
        ("edges", [6, -1, 13], "not converted graphs"),
        ("train", [3], "nodes or graphs that are not there"),
        ("train", [-1], "nodes or graphs that are not there"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, array: str, value: list[int], reason: str) -> None:
    """Checksums are right, and what is written is not."""
    folder = tmp_path / "store"
    write_graphs(folder, "key", some())
    meta = json.loads((folder / "meta.json").read_text())
    path = folder / f"{array}.npy"
    meta["files"][path.name] = graph_store.write_tensor(path, torch.from_numpy(np.array(value)))
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match=reason):
        read_graphs(folder, "key")


@pytest.mark.parametrize(
    "change",
    [
        {"format": "another"},
        {"version": 0},
        {"key": "of others"},
        {"files": {}},
        {"files": {"../x.npy": {"sha256": "", "bytes": 0, "shape": [], "dtype": ""}}},
        {"files": None},
    ],
)
def test_descriptions_of_something_else(tmp_path: Path, change: dict[str, object]) -> None:
    write_graphs(tmp_path, "key", some())
    path = tmp_path / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match="not converted graphs") as caught:
        read_graphs(tmp_path, "key")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[]", "{", "null"])
def test_no_description_at_all(tmp_path: Path, content: str) -> None:
    write_graphs(tmp_path, "key", some())
    (tmp_path / "meta.json").write_text(content)
    with pytest.raises(DataError, match=r"meta\.json: not"):
        read_graphs(tmp_path, "key")
