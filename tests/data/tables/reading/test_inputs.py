"""Every form in which people have tables gives the same dataset and the same predictions."""

from __future__ import annotations

import gzip
import io
import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coopsheaf.data import compressed
from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import TableData, load_tables
from coopsheaf.data.tables.reading import inputs
from coopsheaf.data.tables.reading.inputs import open_table
from coopsheaf.models import CSNN

Columns = dict[str, list[Any]]
N = 20


def nodes_of(n: int = N) -> Columns:
    """Every kind of column, with gaps."""
    return {
        "id": [f"p{i}" for i in range(n)],
        "age": [20 + i for i in range(n)],
        "rank": [None if i == 3 else i * i for i in range(n)],
        "height": [None if i % 7 == 2 else 1.5 + i / 7 for i in range(n)],
        "member": [None if i == 5 else i % 3 == 0 for i in range(n)],
        "since": [None if i == 4 else datetime(2020, 1 + i % 12, 1 + i, i % 24) for i in range(n)],
        "city": [None if i == 6 else ["rome", "oslo", 'so, "it"'][i % 3] for i in range(n)],
        "code": [f"00{i % 4}" for i in range(n)],
        "label": [None if i == 7 else ["yes", "no"][i % 2] for i in range(n)],
    }


def edges_of(n: int = N) -> Columns:
    return {
        "source": [f"p{i}" for i in range(n)],
        "target": [f"p{(i * 3 + 1) % n}" for i in range(n)],
        "strength": [i / 10 for i in range(n)],
    }


class OnlyStream:
    """Nothing but the Arrow protocol."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def text(columns: Columns, sep: str) -> bytes:
    return pd.DataFrame(columns).astype(object).to_csv(index=False, sep=sep).encode()


def file(suffix: str, write: Callable[[Columns, Path], object]) -> Callable[[Columns, Path], Any]:
    def make(columns: Columns, stem: Path) -> Path:
        path = stem.with_suffix(suffix)
        write(columns, path)
        return path

    return make


def categorical(columns: Columns) -> pd.DataFrame:
    frame = nullable(columns)
    return frame.astype({n: "category" for n in ("city", "label") if n in frame})


def nullable(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame(columns).convert_dtypes()


def named_index(columns: Columns) -> pd.DataFrame:
    first = next(iter(columns))
    return pd.DataFrame(columns).set_index(first)


KINDS: dict[str, Callable[[Columns, Path], Any]] = {
    "csv": file(".csv", lambda c, p: p.write_bytes(text(c, ","))),
    "tsv": file(".tsv", lambda c, p: p.write_bytes(text(c, "\t"))),
    "semicolon": file(".txt", lambda c, p: p.write_bytes(text(c, ";"))),
    "crlf and bom": file(".csv", lambda c, p: p.write_bytes(b"\xef\xbb\xbf" + text(c, ",").replace(b"\n", b"\r\n"))),
    "index saved": file(".csv", lambda c, p: pd.DataFrame(c).astype(object).to_csv(p)),
    "gzip": file(".csv.gz", lambda c, p: p.write_bytes(gzip.compress(text(c, ",")))),
    "parquet": file(".parquet", lambda c, p: parquet.write_table(pa.table(c), p, row_group_size=7)),
    "parquet of pandas": file(".pq", lambda c, p: pd.DataFrame(c).iloc[::1].set_axis([f"r{i}" for i in range(len(c["source" if "source" in c else "id"]))]).to_parquet(p)),
    "feather": file(".feather", lambda c, p: feather.write_feather(pa.table(c), p)),
    "arrow": file(".arrow", lambda c, p: feather.write_feather(pa.table(c), p, compression="uncompressed")),
    "pandas": lambda c, p: pd.DataFrame(c),
    "pandas objects": lambda c, p: pd.DataFrame(c, dtype=object),
    "pandas categories": lambda c, p: categorical(c),
    "pandas nullable": lambda c, p: nullable(c),
    "pandas index": lambda c, p: named_index(c),
    "pandas filtered": lambda c, p: pd.DataFrame(c).set_axis(range(7, 7 + len(next(iter(c.values()))))),
    "polars": lambda c, p: pl.DataFrame(c),
    "polars lazy": lambda c, p: pl.DataFrame(c).lazy(),
    "polars categories": lambda c, p: pl.DataFrame(c).with_columns(pl.col(n).cast(pl.Categorical) for n in ("city", "label") if n in c),
    "pyarrow": lambda c, p: pa.table(c),
    "arrow stream": lambda c, p: OnlyStream(pa.table(c)),
    "lists": lambda c, p: c,
    "arrays": lambda c, p: {name: np.array(values) for name, values in c.items()},
    "series": lambda c, p: {name: pd.Series(values) for name, values in c.items()},
}  # fmt: skip


@pytest.fixture(scope="module")
def reference() -> TableData:
    return load_tables(nodes_of(), edges_of(), target="label", weight="strength")


def same(found: TableData, wanted: TableData) -> None:
    one, two = found.dataset, wanted.dataset
    assert torch.allclose(one.x, two.x, atol=1e-6)
    for name in ("edge_index", "y", "train", "val", "test", "edge_weight"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    assert (one.class_names, one.node_ids, one.task) == (two.class_names, two.node_ids, two.task)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_is_the_same_dataset(
    tmp_path: Path, reference: TableData, kind: str
) -> None:
    tables = [KINDS[kind](c, tmp_path / n) for c, n in ((nodes_of(), "n"), (edges_of(), "e"))]
    data = load_tables(*tables, target="label", weight="strength")
    assert data.encoder.names == ("age", "rank", "height", "member", "since", "city", "code")
    same(data, reference)


@pytest.mark.parametrize("kind", KINDS)
def test_one_encoder_for_every_kind(tmp_path: Path, reference: TableData, kind: str) -> None:
    """Fitted on one kind, applied to any other; new categories are counted."""
    nodes = {n: v[:9] for n, v in reversed(nodes_of().items()) if n != "label"}
    nodes["city"] = ["bonn", *nodes["city"][1:]]
    edges = dict(reversed({n: v[:2] for n, v in edges_of().items()}.items()))
    if kind == "pandas index":
        nodes = {"id": nodes.pop("id"), **nodes}
    made = KINDS[kind](nodes, tmp_path / "n"), KINDS[kind](edges, tmp_path / "e")
    data = load_tables(*made, like=reference.schema)
    assert torch.allclose(data.dataset.x[1:], reference.dataset.x[1:9], atol=1e-6)
    assert data.dataset.edge_index.tolist() == [[0, 1], [1, 4]]
    assert data.ids == tuple(f"p{i}" for i in range(9))
    assert any("column 'city': 1 cells have a category not seen" in note for note in data.notes)


def test_networkx_with_the_encoder_of_a_file(reference: TableData) -> None:
    nodes, edges = nodes_of(), edges_of()
    graph = nx.DiGraph()
    for i, name in enumerate(nodes["id"]):
        values = {n: v[i] for n, v in nodes.items() if n != "id"}
        graph.add_node(name, **values)
    for a, b, w in zip(*edges.values(), strict=True):
        graph.add_edge(a, b, strength=w)
    graph.nodes["p0"]["city"] = "bonn"
    data = load_tables(graph, like=reference.schema)
    assert torch.allclose(data.dataset.x[1:], reference.dataset.x[1:], atol=1e-6)
    assert torch.equal(data.dataset.edge_index, reference.dataset.edge_index)
    assert torch.equal(data.dataset.edge_weight, reference.dataset.edge_weight)
    assert any("column 'city': 1 cells have a category not seen" in note for note in data.notes)


# --- the property ----------------------------------------------------------------------------

VALUES = {
    "whole": st.integers(-5, 1000) | st.none(),
    "real": st.floats(-1e6, 1e6).map(lambda v: round(v, 3)) | st.none(),
    "truth": st.booleans() | st.none(),
    "date": st.datetimes(datetime(1990, 1, 1), datetime(2030, 1, 1)).map(lambda t: t.replace(microsecond=0)) | st.none(),
    "word": st.sampled_from(["red", "Green", "blau, hell", 'q"uote', "007", "tail ", "é"]) | st.none(),
}  # fmt: skip


@st.composite
def random_columns(draw: st.DrawFn) -> Columns:
    n = 12
    columns: Columns = {"id": [f"n{i}" for i in range(n)], "label": ["a", "b"] * (n // 2)}
    for at, kind in enumerate(draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4))):
        columns[f"{kind}{at}"] = draw(st.lists(VALUES[kind], min_size=n, max_size=n))
    return columns


def outputs(data: TableData) -> torch.Tensor:
    dataset = data.dataset
    torch.manual_seed(0)
    network = CSNN(dataset.num_features, dataset.out_channels, stalk_dim=2, num_layers=1)
    network.eval()
    with torch.no_grad():
        return network(dataset.x, dataset.edge_index)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), columns=random_columns())
def test_order_index_and_kind_do_not_matter(
    tmp_path: Path, data: st.DataObject, columns: Columns
) -> None:
    ends = data.draw(st.lists(st.tuples(*[st.integers(0, 11)] * 2), min_size=1, max_size=8))
    edges: Columns = {
        "source": [f"n{a}" for a, _ in ends],
        "target": [f"n{b}" for _, b in ends],
        "w": [float(a) for a, _ in ends],
    }
    options: dict[str, Any] = {"target": "label", "weight": "w"}
    wanted = load_tables(columns, edges, **options)
    kinds = data.draw(st.tuples(*[st.sampled_from(sorted(KINDS.keys() - {"pandas index"}))] * 2))
    made = []
    for table, kind, name in zip((columns, edges), kinds, "ne", strict=True):
        order = data.draw(st.permutations(list(table)))
        rows = len(next(iter(table.values())))
        shuffled = {n: table[n] for n in order}
        index = data.draw(st.sampled_from([None, "", "Unnamed: 0", "unnamed: 7"]))
        if index is not None and not (kind == "index saved" and index in ("", "Unnamed: 0")):
            shuffled = {index: list(range(100, 100 + rows)), **shuffled}
        made.append(KINDS[kind](shuffled, tmp_path / name))
    found = load_tables(*made, features=None, **options)
    # The features come in the order of the columns: the fitted schema puts them into one.
    again = load_tables(*made, like=wanted.schema)
    assert {*found.encoder.names} == {*wanted.encoder.names}
    assert torch.allclose(again.dataset.x, wanted.dataset.x, atol=1e-6)
    for name in ("edge_index", "y", "edge_weight"):
        assert torch.equal(getattr(again.dataset, name), getattr(wanted.dataset, name))
        assert torch.equal(getattr(found.dataset, name), getattr(wanted.dataset, name))
    for name in ("train", "val", "test"):
        assert torch.equal(getattr(found.dataset, name), getattr(wanted.dataset, name))
    assert (found.class_names, found.ids) == (wanted.class_names, wanted.ids)
    ours = {c.name: c for c in found.encoder.columns}
    assert all(ours[c.name].feature_names == c.feature_names for c in wanted.encoder.columns)
    assert torch.allclose(outputs(again), outputs(wanted), atol=1e-5)


# --- two readers of text ---------------------------------------------------------------------

PIECES = st.sampled_from(['"', '""', " ", ",", "\n", "\r\n", "\r", "a", "b c", "1", "é", "", "\t", "-"])  # fmt: skip


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(PIECES, max_size=24),
    rows=st.lists(st.tuples(st.text("ab ,\n\"", max_size=4), st.text("x 1", max_size=3)), max_size=4),
    bom=st.booleans(),
)  # fmt: skip
def test_both_readers_of_text_give_the_same(
    tmp_path: Path, pieces: list[str], rows: list[tuple[str, str]], bom: bool
) -> None:
    tame = "".join('"' + a.replace('"', '""') + f'",{b}\n' for a, b in rows)
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbf" * bom + ("x,y\n" + tame + "".join(pieces)).encode())

    def read() -> object:
        try:
            opened = open_table(path, "nodes")
            table = opened.read(opened.names)
        except DataError as error:
            return str(error)
        rows = range(table.num_rows)
        return [[c.text(row) for row in rows] for c in table.columns.values()], list(table.lines)

    fast = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "has_pyarrow", lambda: False)
        slow = read()
    assert fast == slow


# --- pipes -----------------------------------------------------------------------------------


def pipe(folder: Path, name: str, content: bytes) -> Path:
    """A named pipe that is written once, by somebody else."""
    path = folder / name
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb") as stream:
            stream.write(content)

    threading.Thread(target=write, daemon=True).start()
    return path


@pytest.mark.parametrize("form", ["plain", "gzip", "parquet", "no pyarrow"])
def test_pipes_are_read_once(
    tmp_path: Path, reference: TableData, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def content(columns: Columns) -> bytes:
        if form == "parquet":
            sink = io.BytesIO()
            parquet.write_table(pa.table(columns), sink)
            return sink.getvalue()
        plain = text(columns, ",")
        return gzip.compress(plain) if form == "gzip" else plain

    if form == "no pyarrow":
        monkeypatch.setattr(inputs, "has_pyarrow", lambda: False)
    tables = [pipe(tmp_path, n, content(c)) for n, c in (("n", nodes_of()), ("e", edges_of()))]
    data = load_tables(*tables, target="label", weight="strength")
    same(data, reference)
    assert data.kept["tables"]["nodes"] is None  # it cannot be read again


def test_a_fault_in_a_pipe_is_named(tmp_path: Path) -> None:
    nodes = pipe(tmp_path, "n", b"id,label\na,x\nb\n")
    with pytest.raises(DataError, match=r"n, line 3: every row must have 2 fields"):
        load_tables(nodes, edges_of(), target="label")


def test_standard_input(reference: TableData, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(text(nodes_of(), ",")))
    monkeypatch.setattr("sys.stdin", stream)
    same(load_tables("-", edges_of(), target="label", weight="strength"), reference)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    with pytest.raises(DataError, match=r"^standard input, line 1: the header must have two"):
        load_tables("-", edges_of(), target="label")
    with pytest.raises(DataError, match="standard input has one table"):
        load_tables("-", "-", target="label")


# --- what is refused, and what is not misread ------------------------------------------------


@pytest.mark.parametrize(
    ("given_table", "message"),
    [
        (7, "`nodes` must be a path, a DataFrame, .* got int"),
        ({}, "`nodes` must have columns of one length; got no column"),
        ({"id": [1, 2], "x": [1]}, "`nodes` must have columns of one length; got 1, 2"),
        ({"id": "abc"}, r"`nodes\['id'\]` must be an array of one or two dimensions; got str"),
        ({"id": 5}, r"`nodes\['id'\]` must be an array of one or two dimensions; got int"),
        ({"id": [1, 2], "x": [[1], [1, 2]]}, r"`nodes\['x'\]` must be an array of one or two"),
        ({"id": [1], "x": np.ones(1) * 1j}, r"`nodes\['x'\]` must be real numbers; got complex128"),
        ({1: [1], "1": [2]}, "`nodes`: column names must differ; '1' occurs twice"),
        ({"x[0]": [1], "x": np.ones((1, 2))}, "`nodes`: column names must differ; 'x'"),
        ({"id": []}, "`nodes` must have rows; it has none"),
        (pd.DataFrame({"id": []}), "`nodes` must have rows; it has none"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "`nodes`: column names must differ; 'a'"),
        (pl.DataFrame({"id": []}), "`nodes` must have rows; it has none"),
        ("/nowhere/at/all.csv", "/nowhere/at/all.csv does not exist"),
        ("/", "/ must be a file; it is a folder"),
        ("a\0b", "cannot be read: not a valid path"),
    ],
)  # fmt: skip
def test_no_table(given_table: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        load_tables(given_table, edges_of(), target="label")
    assert len(str(error.value).splitlines()) == 1


def test_without_pyarrow_frames_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(inputs, "has_pyarrow", lambda: False)
    with pytest.raises(
        DataError, match=r"`nodes` is a DataFrame, which needs pyarrow: pip install"
    ):
        open_table(pd.DataFrame(nodes_of()), "nodes")
    path = KINDS["parquet"](nodes_of(), tmp_path / "n")
    with pytest.raises(DataError, match=r"n\.parquet is a Parquet or Arrow file, which needs"):
        open_table(path, "nodes")


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
@pytest.mark.parametrize("content", [b"", b"id,label\na,b\n", b"PAR1", b"PAR1" + b"x" * 90 + b"PAR1", b"ARROW1\0\0" + b"y" * 50])  # fmt: skip
def test_damaged_binary_files(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"n{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"n\{suffix} must be") as error:
        load_tables(path, edges_of(), target="label")
    assert len(str(error.value).splitlines()) == 1


def test_a_dropped_column_is_not_read() -> None:
    """One that could not be read, too."""
    nodes = nodes_of()
    frame = pl.DataFrame(nodes).with_columns(odd=pl.struct("age", "rank"))
    with pytest.raises(
        DataError, match=r"`nodes`, column 'odd': a column must hold .*: leave it out with drop"
    ):
        load_tables(frame, edges_of(), target="label")
    for table in (frame, nodes | {"odd": nodes["age"]}, pd.DataFrame(nodes).assign(odd=1)):
        data = load_tables(table, edges_of(), target="label", drop=["odd", "code"])
        assert data.encoder.names == ("age", "rank", "height", "member", "since", "city")
        assert "node ids: column 'id'; not used: 'code', 'odd'" in data.notes


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "parquet", "feather", "arrays", "lists"])  # fmt: skip
def test_a_column_of_lists_is_several(tmp_path: Path, kind: str) -> None:
    nodes = nodes_of()
    nodes["vec"] = [[i, i / 2, 0.0] for i in map(float, range(N))]
    if kind == "arrays":
        made: Any = {n: np.array(v) for n, v in nodes.items()}
    else:
        made = KINDS[kind](nodes, tmp_path / "n")
    data = load_tables(made, edges_of(), target="label", features=["vec", "age"])
    assert data.encoder.names == ("vec[0]", "vec[1]", "vec[2]", "age")
    later = load_tables(made, edges_of(), like=data.schema)
    assert torch.allclose(later.dataset.x, data.dataset.x)
    short = load_tables(made, edges_of(), target="label", drop=["vec"])
    assert not any(name.startswith("vec") for name in short.encoder.names)


def test_large_whole_numbers_stay_themselves() -> None:
    """Ids beyond 2^53 that floats would make equal, and beyond 2^63 that would be negative."""
    ids = [2**63 + i for i in range(6)]
    for values in (ids, np.array(ids, dtype=np.uint64), pa.array(ids, pa.uint64())):
        table = {"id": values, "label": ["a", "b"] * 3}
        frame = table if not isinstance(values, pa.Array) else pa.table(table)
        data = load_tables(frame, {"s": ids[:2], "t": ids[1:3]}, target="label")
        assert data.ids == tuple(map(str, ids))
    near = pa.table({"id": [f"{i}" for i in range(6)], "x": pa.array([2**53 + 1, None, *[1] * 4]), "label": ["a", "b"] * 3})  # fmt: skip
    data = load_tables(near, {"s": ["0"], "t": ["1"]}, target="label")
    assert data.encoder.names == ("x",)


def test_tensors_and_unusual_values_in_mappings() -> None:
    nodes = {"id": torch.arange(6), "x": torch.rand(6, 2, dtype=torch.bfloat16), "flag": np.array([True, False] * 3), "label": pd.array([1, 2, pd.NA, 1, 2, 1], dtype="Int64")}  # fmt: skip
    data = load_tables(
        nodes, {"s": torch.tensor([0, 1]), "t": torch.tensor([1, 2])}, target="label"
    )
    assert data.ids == tuple("012345")
    assert data.encoder.names == ("x[0]", "x[1]", "flag")
    assert data.dataset.y.tolist() == [0, 1, -1, 0, 1, 0]
    mixed = pd.DataFrame({"id": [1, "b", 2.5, 3, 4, 5], "label": ["a", "b", pd.NA, "a", "b", "a"]})
    data = load_tables(mixed, {"s": ["1"], "t": ["b"]}, target="label")
    assert data.ids == ("1", "b", "2.5", "3", "4", "5")


def test_an_index_without_a_name_is_said_and_can_be_named() -> None:
    nodes = {n: v for n, v in nodes_of().items() if n != "id"} | {"name": nodes_of()["id"]}
    frame = pd.DataFrame(nodes, index=nodes["name"])
    data = load_tables(frame.drop(columns="name"), edges_of(), target="label", id="Unnamed: 0")
    assert data.ids == tuple(nodes["name"])
    data = load_tables(frame, edges_of(), target="label", id="name")
    assert "node ids: column 'name'; not used: 'Unnamed: 0'" in data.notes
    frame.index.name = "age"
    with pytest.raises(DataError, match="`nodes`: column names must differ; 'age' occurs twice"):
        load_tables(frame, edges_of(), target="label")


# --- bombs -----------------------------------------------------------------------------------


def test_a_file_that_grows_beyond_reason_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = b"id,label\n" + b"".join(
        b"%d,%s\n" % (i, b"ab"[i % 2 : i % 2 + 1] * 60) for i in range(4000)
    )
    path = tmp_path / "n.csv.gz"
    path.write_bytes(gzip.compress(rows))
    edges = {"source": ["1"], "target": ["2"]}
    assert load_tables(path, edges, target="label").dataset.num_nodes == 4000
    monkeypatch.setattr(compressed, "RATIO", 3)
    monkeypatch.setattr(compressed, "FREE", 1000)
    with pytest.raises(DataError, match=r"n\.csv\.gz: must unpack to at most"):
        load_tables(path, edges, target="label")
    monkeypatch.setattr(compressed, "RATIO", 1)
    many = tmp_path / "n.parquet"
    parquet.write_table(
        pa.table({"id": list(map(str, range(3000))), "label": ["a", "b"] * 1500}), many
    )
    with pytest.raises(DataError, match=r"n\.parquet: must unpack to at most"):
        load_tables(many, edges, target="label")
