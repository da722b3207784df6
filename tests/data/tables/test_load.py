"""The user's own tables: what is read, what is said, and one clear line for bad input."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import TableData, load_tables
from coopsheaf.data.tables.reading import inputs
from coopsheaf.data.tables.schema import TableSchema

PEOPLE = [f"p{i}" for i in range(20)]
NODES = "id,age,city,label\n" + "".join(
    f"{person},{20 + i},{'paris' if i % 3 else 'rome'},{'yes' if i % 2 else 'no'}\n"
    for i, person in enumerate(PEOPLE)
)
EDGES = "source,target,strength\n" + "".join(f"p{i},p{(i + 1) % 20},{i / 10}\n" for i in range(20))


def write(
    folder: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES
) -> tuple[Path, Path]:
    paths = folder / "nodes.csv", folder / "edges.csv"
    for path, content in zip(paths, (nodes, edges), strict=True):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return paths


def load(folder: Path, nodes: str = NODES, edges: str = EDGES, **options: object) -> TableData:
    return load_tables(*write(folder, nodes, edges), **{"target": "label", **options})


def replace_line(text: str, line: int, new: str) -> str:
    lines = text.splitlines()
    lines[line - 1] = new
    return "\n".join(lines) + "\n"


# --- what is read ----------------------------------------------------------------------------


def test_a_whole_graph(tmp_path: Path) -> None:
    data = load(tmp_path)
    dataset = data.dataset
    assert data.ids == tuple(PEOPLE)
    assert data.class_names == ("no", "yes")
    assert dataset.y.tolist() == [0, 1] * 10
    assert (dataset.task, dataset.metric) == ("binary", "auroc")
    assert dataset.edge_index.tolist() == [list(range(20)), [*range(1, 20), 0]]
    assert dataset.edge_weight is None
    assert dataset.processing.direction == "stored"
    assert [int(m.sum()) for m in (dataset.train, dataset.val, dataset.test)] == [12, 4, 4]
    assert dataset.x.shape == (20, 1 + 4)
    age = dataset.x[:, 0]
    assert age[dataset.train[0]].mean().abs() < 1e-6
    assert age[dataset.train[0]].std(unbiased=False) == pytest.approx(1, abs=1e-6)
    assert len(dataset.checksum) == 64
    notes = "\n".join(data.notes)
    assert (
        "20 nodes, 20 edges; 0.0% of the edges between different nodes have their reverse" in notes
    )
    assert "1 numeric feature columns: 'age'" in notes
    assert "1 categorical feature columns: 'city'" in notes
    assert "stratified 60/20/20 split (seed 0): 12/4/4" in notes
    assert all(len(note.splitlines()) == 1 for note in data.notes)


def test_seed_changes_the_split_only(tmp_path: Path) -> None:
    first, again, other = load(tmp_path), load(tmp_path), load(tmp_path, seed=1)
    assert torch.equal(first.dataset.train, again.dataset.train)
    assert torch.equal(first.dataset.x, again.dataset.x)
    assert not torch.equal(first.dataset.train, other.dataset.train)
    assert torch.equal(first.dataset.edge_index, other.dataset.edge_index)
    assert first.dataset.checksum == again.dataset.checksum
    assert first.dataset.checksum != other.dataset.checksum  # another reading


def test_the_encoder_sees_training_nodes_only(tmp_path: Path) -> None:
    first = load(tmp_path)
    outside = int((~first.dataset.train[0]).nonzero()[0])
    changed = replace_line(
        NODES, outside + 2, f"p{outside},999999,oslo,{'yes' if outside % 2 else 'no'}"
    )
    data = load(tmp_path, changed)
    assert data.encoder == first.encoder
    assert any("column 'city': 1 cells have a category not seen" in note for note in data.notes)


def test_columns_by_name(tmp_path: Path) -> None:
    nodes = NODES.replace("id,", "x,").replace("\np", "\n7,p").replace("x,age", "other,x,age")
    edges = EDGES.replace("source,target", "b,a")
    data = load(
        tmp_path,
        nodes,
        edges,
        id="x",
        source="a",
        edge_target="b",
        weight="strength",
        features=["age"],
    )
    assert data.encoder.names == ("age",)
    assert data.ids == tuple(PEOPLE)
    assert data.dataset.edge_index[0].tolist() == [*range(1, 20), 0]
    assert torch.allclose(data.dataset.edge_weight, torch.arange(20) / 10)


def test_ids_are_compared_exactly(tmp_path: Path) -> None:
    nodes = "id,label\n" + "".join(
        f"{i},{'ab'[k % 2]}\n"
        for k, i in enumerate(["1", "01", "1.0", "1e0", "é", "e\u0301", "Z", "z", "-", "q"])
    )
    data = load(tmp_path, nodes, "s,t\n01,1.0\né,e\u0301\n")
    assert data.dataset.edge_index.tolist() == [[1, 4], [2, 5]]
    assert data.dataset.x.tolist() == [[1.0]] * 10
    assert "no feature columns: every node has the constant feature 1" in data.notes


@pytest.mark.parametrize("given_name", [True, False])
def test_split_column(tmp_path: Path, given_name: bool) -> None:
    parts = [
        "train",
        "TRAIN",
        "Val",
        "valid",
        "validation",
        "test",
        "Test",
        "",
        "training",
        "dev",
    ] * 2
    lines = NODES.splitlines()
    nodes = "\n".join(
        [lines[0] + ",split"]
        + [f"{line},{part}" for line, part in zip(lines[1:], parts, strict=True)]
    )
    data = load(tmp_path, nodes, split="split" if given_name else None)
    assert data.dataset.train[0].nonzero().flatten().tolist() == [0, 1, 8, 10, 11, 18]
    assert data.dataset.val[0].nonzero().flatten().tolist() == [2, 3, 4, 9, 12, 13, 14, 19]
    assert data.dataset.test[0].nonzero().flatten().tolist() == [5, 6, 15, 16]
    assert "split" not in data.encoder.names


def test_a_split_column_cannot_place_unlabelled_nodes(tmp_path: Path) -> None:
    nodes = "id,split,label\na,train,x\nb,train,y\nc,train,\nd,val,x\ne,val,\nf,test,NA\n"
    data = load(tmp_path, nodes, "s,t\na,b\n")
    assert data.dataset.train[0].nonzero().flatten().tolist() == [0, 1]
    assert data.dataset.val[0].nonzero().flatten().tolist() == [3]
    assert not data.dataset.test.any()
    assert "3 nodes of column 'split' have no label: in no part" in data.notes


def test_unlabelled_nodes_are_in_no_part(tmp_path: Path) -> None:
    data = load(tmp_path, replace_line(replace_line(NODES, 2, "p0,20,rome,"), 3, "p1,21,paris,NA"))
    dataset = data.dataset
    assert dataset.y[:2].tolist() == [-1, -1]
    assert not (dataset.train | dataset.val | dataset.test)[0, :2].any()
    assert any("18 nodes labelled, 2 not" in note for note in data.notes)


def test_regression(tmp_path: Path) -> None:
    data = load(tmp_path, target="age", task="regression")
    assert (data.dataset.task, data.dataset.metric) == ("regression", "mae")
    assert data.dataset.y.tolist() == list(range(20, 40))
    assert "age" not in data.encoder.names


def test_repeated_edges_and_loops_are_kept_and_noted(tmp_path: Path) -> None:
    data = load(tmp_path, edges="s,t\np0,p1\np0,p1\np1,p0\np2,p2\np3,p4\n")
    assert data.dataset.num_edges == 5
    assert "1 edges repeat earlier ones: kept; --duplicates merge makes one of them" in data.notes
    assert "1 edges join a node to itself: kept; --self-loops remove takes them out" in data.notes
    assert (
        "15 nodes have no edge: kept; --isolated exclude leaves them out of the split" in data.notes
    )
    assert any(
        "75.0% of the edges between different nodes have their reverse" in n for n in data.notes
    )


def test_undirected_on_request(tmp_path: Path) -> None:
    data = load(tmp_path, undirected=True, weight="strength")
    assert data.dataset.num_edges == 40
    assert data.dataset.reciprocated == 1
    assert data.dataset.processing.direction == "undirected"
    assert data.dataset.edge_weight.shape == (40,)
    assert data.notes[-1].endswith("all are used both ways")


def test_validation_of_one_class_is_measured_by_accuracy(tmp_path: Path) -> None:
    parts = ["val" if i in (0, 2) else "train" for i in range(20)]
    lines = NODES.splitlines()
    nodes = "\n".join(
        [lines[0] + ",split"]
        + [f"{line},{part}" for line, part in zip(lines[1:], parts, strict=True)]
    )
    assert load(tmp_path, nodes).dataset.metric == "accuracy"


# --- prediction ------------------------------------------------------------------------------


def again(data: TableData) -> TableSchema:
    """A schema as a run keeps it."""
    return TableSchema.from_json(data.schema.to_json(), data.encoder.to_json())


def test_new_nodes_are_read_the_same_way(tmp_path: Path) -> None:
    trained = load(tmp_path)
    new = write(tmp_path, "city,age,id\nparis,20,n1\noslo,,n2\n", "target,x,source\nn2,0,n1\n")
    data = load_tables(*new, like=again(trained))
    old = trained.dataset.x[PEOPLE.index("p0")]
    assert data.ids == ("n1", "n2")
    assert data.dataset.edge_index.tolist() == [[0], [1]]
    assert data.dataset.x[0, 0] == old[0]  # the age is standardised by the old mean
    assert data.dataset.x.shape[1] == trained.dataset.x.shape[1]
    assert data.dataset.y.tolist() == [-1, -1]
    assert not data.dataset.test.any()
    assert data.class_names == ("no", "yes")
    assert data.dataset.out_channels == 1
    notes = "\n".join(data.notes)
    assert "column 'city': 1 cells have a category not seen in training" in notes
    assert "column 'age': 1 missing" in notes
    assert "not used: 'x'" in notes


def test_the_same_tables_give_the_same_features_at_prediction(tmp_path: Path) -> None:
    trained = load(tmp_path)
    data = load_tables(*write(tmp_path), like=again(trained))
    assert torch.equal(data.dataset.x, trained.dataset.x)
    assert torch.equal(data.dataset.y, trained.dataset.y)
    assert data.dataset.test.all()
    assert not data.dataset.train.any()


def test_labels_of_other_classes_are_noted_at_prediction(tmp_path: Path) -> None:
    trained = load(tmp_path)
    paths = write(tmp_path, replace_line(NODES, 2, "p0,20,rome,perhaps"))
    data = load_tables(*paths, like=trained.schema)
    assert data.dataset.y[0] == -1
    assert "WARNING: 1 labels are none of the model's classes; not counted" in data.notes


def test_later_tables_need_the_columns_of_then(tmp_path: Path) -> None:
    trained = load(tmp_path, weight="strength")
    for nodes, edges, message in [
        (NODES.replace("age", "years"), EDGES, r"nodes\.csv must have the feature columns .* it lacks 'age'"),
        (NODES.replace("id,", "key,"), EDGES, r"nodes\.csv has no column 'id' \(wanted as the id\)"),
        (NODES, EDGES.replace("source", "from"), r"edges\.csv has no column 'source' \(wanted as the source of the edges\)"),
        (NODES, EDGES.replace("strength", "w"), r"edges\.csv has no column 'strength'"),
    ]:  # fmt: skip
        with pytest.raises(DataError, match=message):
            load_tables(*write(tmp_path, nodes, edges), like=trained.schema)


def test_a_schema_excludes_options(tmp_path: Path) -> None:
    trained = load(tmp_path)
    with pytest.raises(ValueError, match="`like` says how tables are read; it excludes `target`"):
        load(tmp_path, like=trained.schema)
    with pytest.raises(DataError, match="`graphs`: the model does not predict whole graphs"):
        load_tables(*write(tmp_path), graphs={"graph": ["a"]}, like=trained.schema)


# --- bad input -------------------------------------------------------------------------------

SPLIT = NODES.replace("city", "split").replace("paris", "train")
COMMENTS = "id,comment\n" + "".join(f'p{i},"a remark, number {i}"\n' for i in range(20))
BAD: dict[str, tuple[str, str, dict[str, object], str]] = {
    "unknown node": (NODES, replace_line(EDGES, 5, "p3,nobody,1"), {}, r"edges\.csv, line 5, column 'target': an edge must join nodes of .*nodes\.csv; it has no node 'nobody'$"),
    "several unknown": (NODES, EDGES + "x,y,1\ny,p1,2\n", {}, r"edges\.csv, line 22, column 'source': .* no node 'x' \(and 1 more\)$"),
    "duplicate id": (replace_line(NODES, 9, "p2,1,rome,no"), EDGES, {}, r"nodes\.csv, line 9, column 'id': ids must differ; 'p2' is also on line 4: name the column of ids with --id$"),
    "no id": (replace_line(NODES, 9, ",1,rome,no"), EDGES, {}, r"nodes\.csv, line 9, column 'id': every node must have an id"),
    "empty nodes": ("", EDGES, {}, r"nodes\.csv must have a header and rows; it is empty$"),
    "empty edges": (NODES, "", {}, r"edges\.csv must have a header and rows; it is empty$"),
    "header only": (NODES, "source,target\n", {}, r"edges\.csv must have rows below its header"),
    "wrong delimiter": (NODES.replace(",", "|"), EDGES, {}, r"nodes\.csv, line 1: the header must have two columns or more, separated by commas, tabs or semicolons; got the single column 'id\|age"),
    "edges by blanks": (NODES, EDGES.replace(",", " "), {}, r"edges\.csv, line 1: the header must have two columns"),
    "edges without header": (NODES, EDGES.split("\n", 1)[1], {}, r"edges\.csv, line 1: the first line must name the columns; got 'p0' and 'p1', which are nodes"),
    "ragged": (replace_line(NODES, 4, "p2,22,rome"), EDGES, {}, r"nodes\.csv, line 4: every row must have 4 fields"),
    "duplicate column": (NODES.replace("age", "city"), EDGES, {}, r"nodes\.csv, line 1: column names must differ"),
    "one class": (NODES.replace(",yes", ",no"), EDGES, {}, r"nodes\.csv, column 'label': labels must be of two classes or more; got only 'no'$"),
    "no labels": (NODES.replace(",yes", ",").replace(",no", ","), EDGES, {}, r"nodes\.csv, column 'label': some labels must be there to train on"),
    "too few labels": ("id,label\np0,a\np1,b\np2,\n", "s,t\np0,p1\n", {}, r"nodes\.csv, column 'label': there must be labelled nodes for validation"),
    "no training rows": (SPLIT.replace("train", "val").replace("rome", "test"), EDGES, {"split": "split"}, r"nodes\.csv, column 'split': there must be labelled nodes for training"),
    "no validation rows": (SPLIT.replace("rome", "test"), EDGES, {"split": "split"}, r"nodes\.csv, column 'split': there must be labelled nodes for validation"),
    "training of one class": ("id,split,label\na,train,x\nb,train,x\nc,val,y\n", "s,t\na,b\n", {}, r"nodes\.csv, column 'split': training nodes must be of two classes or more; all 2 are 'x'"),
    "bad split": (SPLIT, EDGES, {"split": "split"}, r"nodes\.csv, line 2, column 'split': a split must be train, val, test or empty; got 'rome': correct it, or --drop 'split'$"),
    "free text label": (COMMENTS, EDGES, {"target": "comment"}, r"nodes\.csv, column 'comment': labels must be classes that repeat; 20 of 20 differ, such as 'a remark, number 0', 'a remark, number 1' and 18 more, which looks like free text"),
    "no such target": (NODES, EDGES, {"target": "lable"}, r"nodes\.csv has no column 'lable' \(wanted as the target\) \(did you mean 'label'\?\); its columns are 'id', 'age', 'city', 'label'$"),
    "no target": (NODES, EDGES, {"target": None}, r"nodes\.csv: name the target, the column to predict"),
    "no such id": (NODES, EDGES, {"id": "key"}, r"nodes\.csv has no column 'key' \(wanted as the id\)"),
    "no such feature": (NODES, EDGES, {"features": ["size"]}, r"nodes\.csv has no column 'size' \(wanted as a feature\)"),
    "target as feature": (NODES, EDGES, {"features": ["age", "label"]}, r"nodes\.csv, column 'label': the target or split cannot be a feature$"),
    "categorical no feature": (NODES, EDGES, {"categorical": ["label"]}, r"nodes\.csv, column 'label': the target or split cannot be a feature$"),
    "no such source": (NODES, EDGES, {"source": "from"}, r"edges\.csv has no column 'from' \(wanted as the source of the edges\)"),
    "one end twice": (NODES, EDGES, {"source": "target", "edge_target": "target"}, r"edges\.csv: source and target must be different columns; both are 'target'$"),
    "no such weight": (NODES, EDGES, {"weight": "w"}, r"edges\.csv has no column 'w' \(wanted as the edge weight\)"),
    "negative weight": (NODES, replace_line(EDGES, 3, "p1,p2,-1"), {"weight": "strength"}, r"edges\.csv, line 3, column 'strength': a weight must be a finite number, not negative; got '-1'$"),
    "no weight": (NODES, replace_line(EDGES, 3, "p1,p2,"), {"weight": "strength"}, r"edges\.csv, line 3, column 'strength': a weight must be .*got ''$"),
    "nan weight": (NODES, replace_line(EDGES, 3, "p1,p2,nan"), {"weight": "strength"}, r"edges\.csv, line 3, column 'strength': a weight must be"),
}  # fmt: skip


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(
    tmp_path: Path, case: str, fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pyarrow and without."""
    monkeypatch.setattr(inputs, "has_pyarrow", lambda: fast)
    nodes, edges, options, message = BAD[case]
    with pytest.raises(DataError, match=message) as error:
        load(tmp_path, nodes, edges, **options)
    assert len(str(error.value).splitlines()) == 1
    assert error.value.__cause__ is None


# Cases of cells rather than of text: rows instead of lines.
CELLS = ["unknown node", "duplicate id", "no id", "one class", "bad split", "negative weight", "no weight", "no such target", "target as feature"]  # fmt: skip


@pytest.mark.parametrize("kind", ["pandas", "parquet"])
@pytest.mark.parametrize("case", CELLS)
def test_bad_cells_of_frames_and_parquet_are_named_by_row(
    tmp_path: Path, case: str, kind: str
) -> None:
    nodes, edges, options, message = BAD[case]
    frames = [pd.read_csv(io.StringIO(t), dtype=str, keep_default_na=False) for t in (nodes, edges)]
    tables: list[object] = list(frames)
    if kind == "parquet":
        tables = [tmp_path / "nodes.parquet", tmp_path / "edges.parquet"]
        for frame, path in zip(frames, tables, strict=True):
            frame.to_parquet(path)
    message = re.sub(r"line (\d+)", lambda m: f"row {int(m[1]) - 2}", message)
    for role in ("nodes", "edges"):
        new = rf"{role}\.parquet" if kind == "parquet" else f"`{role}`"
        message = message.replace(rf"{role}\.csv", new)
    with pytest.raises(DataError, match=message) as error:
        load_tables(*tables, **{"target": "label", **options})
    assert len(str(error.value).splitlines()) == 1


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    nodes, edges = write(tmp_path, NODES.replace("paris", "münchen").encode("latin-1"))
    with pytest.raises(
        DataError, match=r"nodes\.csv, line 3: the text must be UTF-8; byte 0xfc at offset \d+"
    ):
        load_tables(nodes, edges, target="label")


def test_unknown_task(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`task` must be one of 'classification', 'binary'"):
        load(tmp_path, task="ranking")


# --- mangled tables --------------------------------------------------------------------------


@st.composite
def mangled(draw: st.DrawFn, text: str) -> bytes:
    """A table after a few accidents."""
    rows = [line.split(",") for line in text.splitlines()]
    for _ in range(draw(st.integers(0, 2))):
        accident = draw(st.sampled_from(["column", "shuffle", "cell", "drop", "repeat", "huge"]))
        row = draw(st.integers(0, len(rows) - 1))
        if accident == "column" and len(rows[0]) > 1:
            gone = draw(st.integers(0, min(map(len, rows)) - 1))
            rows = [r[:gone] + r[gone + 1 :] for r in rows]
        elif accident == "shuffle":
            rows = draw(st.permutations(rows))
        elif accident == "cell":
            cell = draw(st.integers(0, len(rows[row]) - 1))
            odd = st.sampled_from(
                [
                    "",
                    "NA",
                    "nan",
                    "1e400",
                    '"',
                    "\0",
                    "\u2028",
                    "\u202e",
                    "p1",
                    "9" * 5000,
                    "é,",
                    "\r",
                ]
            )
            rows[row] = [*rows[row][:cell], draw(odd | st.text(max_size=5)), *rows[row][cell + 1 :]]
        elif accident == "drop" and len(rows) > 1:
            rows = rows[:row] + rows[row + 1 :]
        elif accident == "repeat":
            rows = [*rows, rows[row]]
        elif accident == "huge":
            rows[row] = ["x" * draw(st.sampled_from([140_000, 100_000])), *rows[row][1:]]
        rows = [r or [""] for r in rows]
    delimiter = draw(st.sampled_from([",", ",", ",", "\t", ";", "|"]))
    data = "\n".join(delimiter.join(row) for row in rows)
    content = data.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(content)))
        content = (
            content[:at] + draw(st.binary(max_size=4)) + content[at + draw(st.integers(0, 9)) :]
        )
    return content


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
@given(nodes=mangled(NODES), edges=mangled(EDGES), weight=st.sampled_from([None, "strength"]))
def test_mangled_tables_give_a_graph_or_one_line(
    tmp_path: Path, nodes: bytes, edges: bytes, weight: str | None
) -> None:
    paths = write(tmp_path, nodes, edges)
    message = ""
    try:
        data = load_tables(*paths, target="label", weight=weight)
    except DataError as error:
        message = str(error)
    if message:
        assert len(message.splitlines()) == 1
        assert "nodes.csv" in message or "edges.csv" in message
        assert len(message) < 1500
        return
    dataset = data.dataset
    assert dataset.x.isfinite().all()
    assert dataset.edge_index.max() < dataset.num_nodes
    assert dataset.train.any()
    assert dataset.val.any()
    assert all(len(note.splitlines()) == 1 for note in data.notes)
