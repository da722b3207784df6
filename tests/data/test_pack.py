"""Packs: what is written comes back, and what is damaged does not."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from coopsheaf import Graph
from coopsheaf.data import pack
from coopsheaf.data.dataset import NodeDataset, Processing
from coopsheaf.data.errors import DataError
from coopsheaf.data.pack import (
    PackedDataset,
    own_order,
    prepared_graph,
    read_pack,
    write_pack,
)
from coopsheaf.data.registry import load_dataset
from coopsheaf.data.synthetic import contextual_sbm, minesweeper

DATASETS = {
    "minesweeper": minesweeper(height=6, width=7).process(Processing("undirected")),
    "directed": contextual_sbm(30, 3, homophily=0.5, num_features=4, signal=1.0, directed=True),
    "everything": NodeDataset(
        "mine", torch.randn(4, 2), torch.tensor([[0, 1, 1], [1, 1, 0]]), torch.randn(4, 3),
        *torch.eye(3, 4).bool()[:, None], "multilabel", "ap", ("a", "b", "c"), ("w", "x", "y", "z"),
        torch.rand(3), "abc", Processing("reversed", "keep", "raw"), "a remark",
        torch.randn(3, 2), ("amount", "hour"),
    ),
    "no-edges": NodeDataset(
        "empty", torch.randn(3, 2), torch.empty(2, 0, dtype=torch.int64), torch.tensor([0, 1, 0]),
        *torch.eye(3).bool()[:, None], "binary", "accuracy",
    ),
}  # fmt: skip
TENSORS = ("x", "edge_index", "y", "train", "val", "test", "edge_weight", "edge_attr")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_pack(DATASETS["minesweeper"], tmp_path / "pack")


@pytest.mark.parametrize("name", DATASETS)
def test_what_is_written_comes_back(name: str, tmp_path: Path) -> None:
    dataset = DATASETS[name]
    packed = read_pack(write_pack(dataset, tmp_path / "new" / "pack"))
    for field in TENSORS:
        want, got = getattr(dataset, field), getattr(packed, field)
        assert (want is None) == (got is None)
        if want is not None:
            assert want.dtype == got.dtype
            assert torch.equal(want, got)
    words = (
        "name",
        "task",
        "metric",
        "class_names",
        "node_ids",
        "edge_names",
        "processing",
        "remark",
    )
    for field in words:
        assert getattr(packed, field) == getattr(dataset, field)
    assert packed.checksum == dataset.checksum or (
        not dataset.checksum and len(packed.checksum) == 64
    )
    graph, want = prepared_graph(packed), Graph(dataset.edge_index, dataset.num_nodes)
    assert graph is packed.graph
    for got, wanted in zip((*graph.by_target, *graph.by_source), (*want.by_target, *want.by_source), strict=True):  # fmt: skip
        assert torch.equal(got.long(), wanted)
    assert prepared_graph(dataset).num_edges == dataset.num_edges
    assert [path.name for path in tmp_path.joinpath("new").iterdir()] == ["pack"]


def test_arrays_are_mapped_and_files_are_safe(folder: Path) -> None:
    packed = read_pack(folder)
    before = (folder / "x.npy").read_bytes()
    packed.x.add_(1)
    assert (folder / "x.npy").read_bytes() == before
    assert torch.equal(read_pack(folder).x + 1, packed.x)


def test_a_pack_has_a_name_like_other_datasets(folder: Path) -> None:
    packed = load_dataset(f"pack:{folder}")
    assert isinstance(packed, PackedDataset)
    assert load_dataset(f"pack:{folder}", direction="undirected").name == packed.name
    with pytest.raises(ValueError, match=r"`processing` of a pack must be what it was packed with"):
        load_dataset(f"pack:{folder}", direction="stored")
    with pytest.raises(DataError, match=r"nowhere: not a pack \(there is no meta.json in it\)"):
        load_dataset("pack:nowhere")


def test_a_pack_is_not_changed_behind_its_graph(folder: Path) -> None:
    packed = read_pack(folder)
    assert packed.process(packed.processing) is packed
    with pytest.raises(ValueError, match="`graph` must be that of `edge_index`"):
        replace(packed, edge_index=packed.edge_index.flip(0).contiguous())


def test_nothing_is_overwritten(folder: Path) -> None:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(DataError, match="exists already; use --force to replace it"):
        write_pack(DATASETS["directed"], folder)
    assert sorted(folder.parent.rglob("*")) == before
    write_pack(DATASETS["directed"], folder, force=True)
    assert read_pack(folder).name == "contextual-sbm"
    assert [path.name for path in folder.parent.iterdir()] == ["pack"]
    other = folder.parent / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="exists already; choose another"):
        write_pack(DATASETS["directed"], other, force=True)
    assert (other / "thesis.txt").exists()


def test_a_pack_that_is_replaced_while_it_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The description is that of the old one, the files are the new ones: it is read again."""
    new = replace(DATASETS["minesweeper"], name="new", x=DATASETS["minesweeper"].x + 1)
    read, times = pack.read_meta, []

    def read_and_replace(path: Path) -> dict:
        meta = read(path)
        if not times:
            write_pack(new, folder, force=True)
        times.append(path)
        return meta

    monkeypatch.setattr(pack, "read_meta", read_and_replace)
    packed = read_pack(folder)
    assert packed.name == "new"
    assert torch.equal(packed.x, new.x)


def test_a_pack_that_cannot_be_finished_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coopsheaf.data.pack.write_json", fail)
    with pytest.raises(OSError, match="No space"):
        write_pack(DATASETS["directed"], tmp_path / "pack")
    assert not list(tmp_path.iterdir())


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, (1, 1))  # a change that is not to be seen from outside


@pytest.mark.parametrize("name", ["x.npy", "edge_index.npy", "by_source_edge.npy", "train.npy"])
def test_damage_is_found(name: str, folder: Path) -> None:
    flip_a_bit(folder / name)
    with pytest.raises(DataError, match=rf"{name}: damaged, or of another pack") as error:
        read_pack(folder)
    assert "\n" not in str(error.value)


def test_cut_and_missing_files_are_found(folder: Path) -> None:
    path = folder / "y.npy"
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with pytest.raises(DataError, match=r"y.npy: damaged \(must have \d+ bytes; found \d+\)"):
        read_pack(folder)
    path.unlink()
    with pytest.raises(DataError, match=r"y.npy: cannot be read \(No such file or directory\)"):
        read_pack(folder)


def test_files_of_another_pack_are_found(folder: Path, tmp_path: Path) -> None:
    other = minesweeper(height=6, width=7, seed=1).process(Processing("undirected"))
    write_pack(other, tmp_path / "other")
    (tmp_path / "other" / "x.npy").replace(folder / "x.npy")
    with pytest.raises(DataError, match=r"x\.npy: damaged, or of another pack"):
        read_pack(folder)


def forge(folder: Path, **changes: object) -> None:
    path = folder / "meta.json"
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, **changes}))


ENTRY = {"sha256": "", "bytes": 0, "shape": [1], "dtype": "float32"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "meta.json: not a pack of coopsheaf"),
        ({"version": 3}, "meta.json: must be of version 1 or 2; got 3"),
        ({"version": "x" * 5000}, r"meta.json: must be of version 1 or 2; got 'x{56}\.\.\.$"),
        ({"name": "/" * 5000}, r"a name must not hold a path; got '/{56}\.\.\.\)?$"),
        (
            {"files": []},
            "meta.json: not a pack of coopsheaf .files must be an object; got a list of 0",
        ),
        ({"files": {}}, r"not a pack of coopsheaf \(it lacks 'by_target_ptr'\)"),
        ({"files": {"../x.npy": ENTRY}}, "a name must not hold a path; got '../x.npy'"),
        ({"files": {"x.npy": {}}}, "it lacks 'sha256'"),
        ({"files": {"x.npy": {**ENTRY, "shape": [-1]}}}, r"files.x.npy.shape\[0\] must be a whole"),
        ({"files": {"x.npy": {**ENTRY, "bytes": "1"}}}, "files.x.npy.bytes must be a whole number"),
        ({"name": 5}, "name must be text"),
        ({"node_ids": [1, 2]}, r"node_ids\[0\] must be text"),
        ({"node_ids": ["only one"]}, "node_ids must be 42 names or none"),
        ({"class_names": ["only one"], "task": "multiclass"}, "y must be from -1 to 0"),
        ({"task": "regression"}, "y must be real numbers"),
        ({"name": "../../x"}, "a name must not hold a path"),
        ({"task": "guessing"}, "`task` must be one of"),
        ({"processing": {"direction": "up"}}, "`direction` must be one of"),
        ({"processing": None}, "not a pack of coopsheaf"),
        ({"class_names": 3}, "not a pack of coopsheaf"),
    ],
    ids=str,
)
def test_forged_descriptions_are_one_line(changes, message: str, folder: Path) -> None:
    forge(folder, **changes)
    with pytest.raises(DataError, match=message) as error:
        read_pack(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "\xff\xfe"])
def test_unreadable_descriptions_are_one_line(text: str, folder: Path) -> None:
    (folder / "meta.json").write_text(text, encoding="latin1")
    with pytest.raises(DataError, match=r"meta.json: not"):
        read_pack(folder)


def rewrite(folder: Path, name: str, array: np.ndarray, *, pickled: bool = False) -> None:
    """Put another array in place, with a description that fits it."""
    from coopsheaf.data.files import checksum

    path = folder / f"{name}.npy"
    np.save(path, array, allow_pickle=pickled)
    meta = json.loads((folder / "meta.json").read_text())
    meta["files"][path.name] = {
        "sha256": checksum(path),
        "bytes": path.stat().st_size,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
    }
    (folder / "meta.json").write_text(json.dumps(meta))


def test_pickled_arrays_are_refused(folder: Path) -> None:
    rewrite(folder, "y", np.array([{"a": 1}] * 42, dtype=object), pickled=True)
    with pytest.raises(DataError, match=r"y\.npy: must be a readable array"):
        read_pack(folder)


@pytest.mark.parametrize(
    "name", ["edge_index", "by_target_ptr", "by_target_other", "by_source_edge"]
)
def test_edges_that_point_outside_are_refused(name: str, folder: Path) -> None:
    array = np.load(folder / f"{name}.npy")
    array.flat[3] = 10**9
    rewrite(folder, name, array)
    with pytest.raises(DataError, match="its lists of edges do not fit 42 nodes and each other"):
        read_pack(folder)


@pytest.mark.parametrize("name", ["by_target_other", "x", "edge_index"])
def test_bytes_behind_an_array_are_refused(name: str, folder: Path) -> None:
    """NumPy maps the first numbers of a file, others would look at the last ones."""
    array = np.load(folder / f"{name}.npy")
    rewrite(folder, name, array)
    path = folder / f"{name}.npy"
    path.write_bytes(path.read_bytes() + b"\0" * 16)
    meta = json.loads((folder / "meta.json").read_text())
    from coopsheaf.data.files import checksum

    meta["files"][path.name] |= {"sha256": checksum(path), "bytes": path.stat().st_size}
    (folder / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match=r"damaged \(there is something behind its numbers\)"):
        read_pack(folder)


def test_packs_that_do_not_know_of_features_of_edges_are_read(folder: Path) -> None:
    meta = json.loads((folder / "meta.json").read_text("utf-8"))
    assert meta.pop("edge_names") == []
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")
    assert read_pack(folder).edge_attr is None
    assert read_pack(folder).edge_names == ()


def test_lists_are_narrow_where_they_fit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dtypes(packed: PackedDataset) -> set[torch.dtype]:
        assert packed.graph is not None
        sides = (packed.graph.by_target, packed.graph.by_source)
        assert {side.ptr.dtype for side in sides} == {torch.int64}
        return {part.dtype for side in sides for part in (side.other, side.edge)}

    assert dtypes(read_pack(folder)) == {torch.int32}
    monkeypatch.setattr("coopsheaf.data.pack_files.LARGEST_NARROW", 41)  # of 42 nodes
    write_pack(DATASETS["minesweeper"], folder, force=True)
    assert dtypes(read_pack(folder)) == {torch.int64}


def test_packs_of_version_1_are_read(folder: Path) -> None:
    """Their lists are int64, and nobody has renumbered their nodes."""
    graph = Graph(DATASETS["minesweeper"].edge_index, 42)
    for side in ("by_target", "by_source"):
        for part in ("other", "edge"):
            array = np.load(folder / f"{side}_{part}.npy")
            rewrite(folder, f"{side}_{part}", array.astype(np.int64))
    forge(folder, version=1)
    packed = read_pack(folder)
    assert packed.order is None
    assert packed.node_ids == ()
    assert packed.graph is not None
    for side in ("by_target", "by_source"):
        for found, want in zip(getattr(packed.graph, side), getattr(graph, side), strict=True):
            assert found.dtype == torch.int64
            assert torch.equal(found, want)


def test_lists_of_other_kinds_are_refused(folder: Path) -> None:
    rewrite(folder, "by_target_other", np.load(folder / "by_target_other.npy").astype(np.int64))
    with pytest.raises(DataError, match="its lists of edges do not fit 42 nodes and each other"):
        read_pack(folder)  # the numbers of the edges are int32


def by_name(packed: NodeDataset) -> dict[str, tuple]:
    """What belongs to each node, whatever its number."""
    names = packed.node_ids or [str(i) for i in range(packed.num_nodes)]
    masks = torch.cat([packed.train, packed.val, packed.test]).T.tolist()
    return {
        name: (x, y, mask)
        for name, x, y, mask in zip(names, packed.x.tolist(), packed.y.tolist(), masks, strict=True)
    }


def edges_by_name(packed: NodeDataset) -> list[tuple]:
    names = packed.node_ids or [str(i) for i in range(packed.num_nodes)]
    weight, attr = packed.edge_weight, packed.edge_attr
    weights = [None] * packed.num_edges if weight is None else weight.tolist()
    features = [None] * packed.num_edges if attr is None else attr.tolist()
    ends = packed.edge_index.T.tolist()
    return sorted(
        (names[u], names[v], str(w), str(a))
        for (u, v), w, a in zip(ends, weights, features, strict=True)
    )


@pytest.mark.parametrize("name", DATASETS)
def test_another_order_changes_nothing_but_numbers(name: str, tmp_path: Path) -> None:
    dataset = DATASETS[name]
    packed = read_pack(write_pack(dataset, tmp_path / "one", order="community"))
    assert packed.order is not None
    again = read_pack(write_pack(packed, tmp_path / "two", order="community"))
    copy = read_pack(write_pack(packed, tmp_path / "three"))
    for other in (packed, again, copy):
        assert by_name(other) == by_name(dataset)
        assert edges_by_name(other) == edges_by_name(dataset)
        places = own_order(other)
        assert places is not None
        assert torch.equal(other.x[places], dataset.x)
        graph = Graph(other.edge_index, other.num_nodes)
        found = prepared_graph(other)
        for side in ("by_target", "by_source"):
            for a, b in zip(getattr(graph, side), getattr(found, side), strict=True):
                assert torch.equal(a, b.long())
    assert own_order(dataset) is None
    assert packed.checksum != read_pack(write_pack(dataset, tmp_path / "four")).checksum
    if dataset.num_edges > 10:
        assert not torch.equal(packed.x, dataset.x)


@pytest.mark.parametrize("spoil", ["twice", "outside", "short"])
def test_an_order_that_is_none_is_refused(spoil: str, tmp_path: Path) -> None:
    folder = write_pack(DATASETS["minesweeper"], tmp_path / "pack", order="community")
    order = np.load(folder / "order.npy")
    if spoil == "short":
        order = order[:-1]
    else:
        order[0] = order[1] if spoil == "twice" else 42
    rewrite(folder, "order", order)
    with pytest.raises(DataError, match="its order must hold each of 42 nodes once"):
        read_pack(folder)


def test_orders_have_names(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`order` must be one of 'stored', 'community'"):
        write_pack(DATASETS["directed"], tmp_path / "pack", order="alphabetical")
    assert not list(tmp_path.iterdir())
