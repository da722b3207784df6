"""Files that were damaged where a library does not look by itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.load import load_tables

pa = pytest.importorskip("pyarrow")

PEOPLE = [f"person-{i}" for i in range(20)]
NODES = {"id": PEOPLE, "age": list(range(20)), "label": ["a", "b"] * 10}
EDGES = {"source": PEOPLE, "target": PEOPLE[1:] + PEOPLE[:1]}


def write(path: Path, columns: dict[str, object], old: bytes = b"", new: bytes = b"") -> Path:
    """An Arrow file, with some of its bytes replaced."""
    table = pa.table(columns)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))
    return path


def test_a_text_that_is_none(tmp_path: Path) -> None:
    nodes = write(tmp_path / "nodes.arrow", NODES, b"person-7", b"per\xff\xffn-7")
    edges = write(tmp_path / "edges.arrow", EDGES)
    with pytest.raises(DataError, match=r"nodes\.arrow must be an Arrow or Feather file.*UTF8"):
        load_tables(nodes, edges, target="label")


def test_texts_that_end_outside_of_the_file(tmp_path: Path) -> None:
    ends = np.cumsum([0, *map(len, EDGES["source"])], dtype=np.int32).tobytes()
    wrong = ends[:20] + np.int32(2**30).tobytes() + ends[24:]
    nodes = write(tmp_path / "nodes.arrow", NODES)
    edges = write(tmp_path / "edges.arrow", EDGES, ends, wrong)
    with pytest.raises(DataError, match=r"edges\.arrow must be an Arrow or Feather file"):
        load_tables(nodes, edges, target="label")


def test_lists_where_each_edge_needs_one_value(tmp_path: Path) -> None:
    lists = pa.array([[1.0, 2.0]] * 20)
    nodes = write(tmp_path / "nodes.arrow", NODES)
    edges = write(tmp_path / "edges.arrow", EDGES | {"w": lists})
    with pytest.raises(DataError, match=r"has no column 'w' .* 'w\[0\]'"):
        load_tables(nodes, edges, target="label", weight="w")
    features = load_tables(nodes, edges, target="label", edge_features=["w"]).dataset.edge_attr
    assert features.shape == (20, 2)
    edges = write(tmp_path / "edges.arrow", EDGES | {"target": lists})
    with pytest.raises(
        DataError, match=r"may be any of 'target\[0\]', 'target\[1\]': give --edge-"
    ):
        load_tables(nodes, edges, target="label")


def test_a_header_of_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes("id,age\na,1\n".encode("utf-16-le"))
    with pytest.raises(DataError, match=r"line 1: the text must have no NUL characters"):
        load_tables(tmp_path / "nodes.csv", {"source": ["a"], "target": ["a"]}, target="age")


def test_names_that_grow_as_they_are_escaped() -> None:
    assert show("a" * 40) == repr("a" * 40)
    assert show("\0" * 30) == repr("\0" * 15) + "... (30 characters)"
    assert len(show_list(["\U000e0001" * 40] * 30)) < 1100
