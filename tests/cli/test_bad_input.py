"""Bad input and bad disks: one clear line, exit code 2, nothing overwritten or left half-written."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from cli.program import SMALL, Done, Program, snapshot, write_tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import REAL_DATA, needs_real_data

from coopsheaf.cli import main
from coopsheaf.train.checkpoint import load_tensors, save_tensors
from coopsheaf.train.run import load_run


def command(nodes: object = "nodes.csv", edges: object = "edges.csv", *more: object) -> tuple[object, ...]:  # fmt: skip
    return ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 1, *SMALL, *more)  # fmt: skip


# --- tables ------------------------------------------------------------------------------------


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


def header_only(text: str) -> str:
    return text.splitlines()[0] + "\n"


def column(number: int, value: Callable[[int], str]) -> Callable[[str], str]:
    """Fill one column of the node table."""

    def change(text: str) -> str:
        header, *rows = text.splitlines()
        cells = [row.split(",", 4) for row in rows]
        for row, cell in enumerate(cells):
            cell[number] = value(row)
        return "\n".join([header, *(",".join(cell) for cell in cells)]) + "\n"

    return change


def words(row: int) -> str:
    return f"somebody wrote the sentence number {row} here"


TABLES = {
    "edge of an unknown node": ("edges", replaced("\n", "\np1,stranger,1\n"), ("edges.csv, line 2, column 'to'", "an edge must join nodes of nodes.csv", "no node 'stranger'")),
    "duplicate id": ("nodes", replaced("\np5,", "\np4,"), ("nodes.csv, line 7, column 'person'", "ids must differ; 'p4' is also on line 6")),
    "no id": ("nodes", replaced("\np5,", "\n,"), ("nodes.csv, line 7, column 'person'", "every node must have an id")),
    "empty nodes": ("nodes", lambda text: "", ("nodes.csv must have a header and rows; it is empty",)),
    "empty edges": ("edges", lambda text: "", ("edges.csv must have a header and rows; it is empty",)),
    "header only": ("nodes", header_only, ("nodes.csv must have rows below its header",)),
    "edges header only": ("edges", header_only, ("edges.csv must have rows below its header",)),
    "wrong delimiter": ("nodes", lambda text: text.replace(",", "|"), ("nodes.csv, line 1", "separated by commas, tabs or semicolons")),
    "mixed delimiters": ("nodes", replaced("p7,", "p7;"), ("nodes.csv, line 9", "every row must have 5 fields")),
    "short row": ("edges", replaced("\n", "\np1,p2\n"), ("edges.csv, line 2", "every row must have 3 fields, as many as the header; got 2")),
    "no header": ("edges", lambda text: text.split("\n", 1)[1], ("edges.csv, line 1", "the first line must name the columns")),
    "two columns of a name": ("nodes", replaced("kind", "age"), ("nodes.csv, line 1", "column names must differ")),
    "open quote": ("nodes", lambda text: text + '"p99,1,red,,young\n', ("nodes.csv, line 62", "a quoted field must end with a quote")),
    "one class": ("nodes", column(4, lambda row: "same"), ("nodes.csv, column 'label'", "labels must be of two classes or more; got only 'same'")),
    "no labels": ("nodes", column(4, lambda row: ""), ("nodes.csv, column 'label'", "some labels must be there to train on")),
    "one label": ("nodes", column(4, lambda row: ["a", "b"][row] if row < 2 else ""), ("nodes.csv, column 'part'", "there must be labelled nodes for training")),
    "label NaN": ("nodes", column(4, lambda row: "nan"), ("nodes.csv, column 'label'", "some labels must be there to train on; all 60 cells are empty or mean unknown")),
    "free text": ("nodes", column(4, words), ("nodes.csv, column 'label'", "60 of 60 differ", "looks like free text")),
    "no target": ("nodes", replaced("label", "labels"), ("nodes.csv has no column 'label' (wanted as the target)",)),
    "NUL": ("nodes", replaced("red", "r\0d"), ("nodes.csv, line", "the text must have no NUL characters")),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_a_bad_table(program: Program, case: str) -> None:
    write_tables(Path())
    which, change, messages = TABLES[case]
    path = Path(f"{which}.csv")
    path.write_text(change(path.read_text("utf-8")), encoding="utf-8")
    before = snapshot(Path())
    error = program(*command()).error
    for message in messages:
        assert message in error
    assert snapshot(Path()) == before


ODD = {
    "NaN": (column(1, lambda row: "nan" if row == 3 else str(row)), "missing cells (of 60): 'age' 1"),
    "inf": (column(1, lambda row: "-inf" if row == 3 else str(row)), "column 'age': 1 of 60 cells are not a number and count as missing: '-inf' (nodes.csv, line 5)"),
    "text": (column(1, lambda row: "old" if row == 3 else str(row)), "column 'age': 1 of 60 cells are not a number and count as missing: 'old' (nodes.csv, line 5)"),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_an_odd_cell_is_missing_and_named(program: Program, case: str) -> None:
    nodes, _ = write_tables(Path())
    change, message = ODD[case]
    nodes.write_text(change(nodes.read_text("utf-8")), encoding="utf-8")
    assert program.ok(*command()).count(message) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--weight", "kind"), "edges.csv has no column 'kind' (wanted as the edge weight)"),
        (("--weight", "to"), "edges.csv: column 'to' names an end of the edges and cannot be their weight"),
        (("--id", "nobody"), "nodes.csv has no column 'nobody' (wanted as the id)"),
        (("--features", "age", "nothing"), "nodes.csv has no column 'nothing' (wanted as a feature)"),
        (("--features", "label"), "column 'label': the target or split cannot be a feature"),
        (("--categorical", "nothing"), "nodes.csv has no column 'nothing' (wanted as a feature)"),
        (("--features", "age", "--categorical", "kind"), "categorical and text columns must be features; 'kind' is not among"),
        (("--split-column", "kind"), "column 'kind': a split must be train, val, test or empty; got '"),
        (("--task", "guess"), "`task` must be one of 'classification', 'binary', 'multiclass', 'multilabel', 'regression', 'link'"),
        (("--task", "regression"), "line 8, column 'label': the target of a regression must be a finite number"),
        (("--target", "age", "--task", "regression", "--class-weights"), "`class_weights` needs classes"),
    ],
)  # fmt: skip
def test_wrong_columns(program: Program, words: tuple[str, ...], message: str) -> None:
    write_tables(Path())
    before = snapshot(Path())
    assert message in program(*command("nodes.csv", "edges.csv", *words)).error
    assert snapshot(Path()) == before


def test_not_utf8(program: Program) -> None:
    nodes, _ = write_tables(Path())
    nodes.write_bytes(nodes.read_bytes().replace(b"p3,", b"J\xf6rg,", 1))
    assert "nodes.csv, line 5: the text must be UTF-8; byte 0xf6" in program(*command()).error


def test_files_that_are_not_there_or_are_folders(program: Program) -> None:
    nodes, edges = write_tables(Path())
    Path("folder").mkdir()
    assert "gone.csv does not exist" in program(*command("gone.csv", edges)).error
    assert "gone.csv does not exist" in program(*command(nodes, "gone.csv")).error
    assert "folder must be a file; it is a folder" in program(*command("folder", edges)).error
    assert "nodes.csv/x.csv cannot be read: Not a directory" in program(*command("nodes.csv/x.csv", edges)).error  # fmt: skip
    assert "gone: not a run (there is no run.json in it)" in program("evaluate", "gone").error
    assert "nodes.csv/run.json: not readable" in program("evaluate", nodes).error
    assert sorted(path.name for path in Path().iterdir()) == ["edges.csv", "folder", "nodes.csv"]


# --- mangled tables, by the hundred ------------------------------------------------------------

CELLS = st.sampled_from(["", "1", "-3.5", "1e400", "nan", "inf", "a", "b", "NA", "p1", "p2", '"', '""', "é", "\t", ";", "train", "0x1", " ", "1_0", "\ud83e\udd84".encode("utf-16", "surrogatepass").decode("utf-16")])  # fmt: skip
ROWS = st.lists(st.lists(CELLS, max_size=5).map(",".join), max_size=4).map("\n".join)


@st.composite
def mangled(draw: st.DrawFn, text: str) -> bytes:
    """A good table with a few things done to it."""
    lines = text.splitlines()
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["drop", "repeat", "rows", "cell", "swap", "cut"]))
        if kind == "drop" and len(lines) > 1:
            del lines[at]
        elif kind == "repeat":
            lines.insert(at, lines[at])
        elif kind == "rows":
            lines.insert(at, draw(ROWS))
        elif kind == "cell":
            cells = lines[at].split(",")
            cells[draw(st.integers(0, len(cells) - 1))] = draw(CELLS)
            lines[at] = ",".join(cells)
        elif kind == "swap":
            lines[at] = draw(st.sampled_from([lines[at].replace(",", ";"), lines[at][::-1]]))
        elif kind == "cut":
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
    data = ("\n".join(lines) + draw(st.sampled_from(["\n", "", "\r\n"]))).encode()
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from([b"\xff", b"\0", b'"', b"\r", b"\n\n"])) + data[at:]
    return data


GOOD_NODES = "id,age,kind,label\n" + "".join(f"p{i},{i * 7 % 11},{'xy'[i % 2]},{'ab'[i * 3 % 5 % 2]}\n" for i in range(12))  # fmt: skip
GOOD_EDGES = "from,to\n" + "".join(f"p{i},p{(i * 5 + 1) % 12}\n" for i in range(12))


@settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(nodes=mangled(GOOD_NODES), edges=mangled(GOOD_EDGES))
def test_mangled_tables_train_or_are_refused_in_one_line(
    program: Program, nodes: bytes, edges: bytes
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nodes.csv").write_bytes(nodes)
        (folder / "edges.csv").write_bytes(edges)
        before = snapshot(folder)
        places = ("--out", folder / "run", "--results", folder / "results")
        done = program(*command(folder / "nodes.csv", folder / "edges.csv", *places))
        if done.code == 0:
            assert load_run(folder / "run").info["result"]["epochs"] == 1
        else:
            assert done.error
            assert snapshot(folder) == before


# --- files of datasets -------------------------------------------------------------------------


class Evil:
    """What a malicious pickle does when it is read."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {os.environ['EVIL_MARK']}",)


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that is there if something was executed."""
    path = tmp_path / "executed"
    monkeypatch.setenv("EVIL_MARK", str(path))
    yield path
    assert not path.exists()


@needs_real_data
@pytest.mark.parametrize("damage", ["truncated", "pickle", "empty"])
def test_a_damaged_dataset_file(program: Program, mark: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "data" / "platonov" / "chameleon_filtered.npz"
    path.parent.mkdir(parents=True)
    content = (REAL_DATA / "platonov" / "chameleon_filtered.npz").read_bytes()
    path.write_bytes({"truncated": content[:-500], "pickle": pickle.dumps(Evil()), "empty": b""}[damage])  # fmt: skip
    before = snapshot(tmp_path / "data")
    error = program("train", "chameleon", "--data-dir", tmp_path / "data", "--epochs", 1).error
    assert f"{path}: must have {len(content)} bytes; found" in error
    assert snapshot(tmp_path / "data") == before
    assert list(Path().iterdir()) == []


# --- checkpoints -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and two runs of different models on them; read only."""
    folder = tmp_path_factory.mktemp("trained")
    nodes, edges = write_tables(folder)
    for model in ("csnn", "mlp"):
        options = ("--model", model, "--out", folder / model, "--results", folder / "results")
        small = SMALL if model == "csnn" else ()
        words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2, *options, *small)  # fmt: skip
        with pytest.raises(SystemExit) as caught:
            main([str(word) for word in words])
        assert caught.value.code == 0
    return folder


def info_without(*keys: str) -> Callable[[Path, Path], None]:
    def damage(run: Path, trained: Path) -> None:
        info = json.loads((run / "run.json").read_text("utf-8"))
        for key in keys:
            del info[key]
        (run / "run.json").write_text(json.dumps(info))

    return damage


def info_with(**values: object) -> Callable[[Path, Path], None]:
    def damage(run: Path, trained: Path) -> None:
        info = json.loads((run / "run.json").read_text("utf-8"))
        (run / "run.json").write_text(json.dumps(info | values))

    return damage


def model_file(content: Callable[[Path, Path], bytes]) -> Callable[[Path, Path], None]:
    def damage(run: Path, trained: Path) -> None:
        (run / "model.safetensors").write_bytes(content(run, trained))

    return damage


def same(run: Path) -> bytes:
    return (run / "model.safetensors").read_bytes()


def other_model_same_identity(run: Path, trained: Path) -> None:
    tensors, _ = load_tensors(trained / "mlp" / "model.safetensors")
    _, meta = load_tensors(run / "model.safetensors")
    save_tensors(run / "model.safetensors", tensors, meta)


def torch_pickle(run: Path, trained: Path) -> None:
    torch.save({"x": Evil()}, run / "model.safetensors")


def pickle_as_json(run: Path, trained: Path) -> None:
    (run / "run.json").write_bytes(pickle.dumps(Evil()))


def deep_json(run: Path, trained: Path) -> None:
    (run / "run.json").write_text("[" * 100_000)


def folder_as_model(run: Path, trained: Path) -> None:
    (run / "model.safetensors").unlink()
    (run / "model.safetensors").mkdir()


def no_model(run: Path, trained: Path) -> None:
    (run / "model.safetensors").unlink()


CHECKPOINTS = {
    "truncated": (model_file(lambda run, trained: same(run)[:-10]), "model.safetensors: not a readable safetensors file"),
    "header only": (model_file(lambda run, trained: same(run)[:20]), "model.safetensors: not a readable safetensors file"),
    "empty": (model_file(lambda run, trained: b""), "model.safetensors: not a readable safetensors file"),
    "pickle": (model_file(lambda run, trained: pickle.dumps(Evil())), "model.safetensors: not a readable safetensors file"),
    "torch pickle": (torch_pickle, "model.safetensors: not a readable safetensors file"),
    "other model": (model_file(lambda run, trained: same(trained / "mlp")), "model.safetensors: belongs to another run"),
    "other model, same identity": (other_model_same_identity, "model.safetensors: does not fit the model in run.json"),
    "no model": (no_model, "model.safetensors: there is no such checkpoint"),
    "folder": (folder_as_model, "model.safetensors: not a readable safetensors file"),
    "pickle as JSON": (pickle_as_json, "run.json: not readable JSON"),
    "deep JSON": (deep_json, "run.json: not readable JSON"),
    "other format": (info_with(format=2), "run.json: not a run of coopsheaf, format 1"),
    "no recipe": (info_without("recipe"), "run.json: not a run of coopsheaf (it lacks 'recipe')"),
    "recipe of another kind": (info_with(recipe=[]), "run.json: not a run of coopsheaf"),
    "unknown model": (info_with(recipe={"model": {"name": "magic"}}), "model.name must be one of csnn"),
    "no result": (info_without("result"), "run.json: not a run of coopsheaf (it lacks 'result')"),
    "result of another kind": (info_with(result={"scores": 3}), "run.json: not a run of coopsheaf"),
    "channels as text": (info_with(in_channels="many"), "run.json: not a run of coopsheaf"),
    "too many channels": (info_with(in_channels=10**15), "run.json: not a run of coopsheaf"),
    "encoder of another kind": (info_with(encoder={"columns": [{"kind": "magic", "name": "age"}]}), "run.json: a stored feature encoder must have one of"),
    "tables without columns": (info_with(tables={"nodes": "x"}), "run.json: stored tables must say how they were read; they lack categorical"),
    "tables of another kind": (info_with(tables=[1]), "run.json: not a run of coopsheaf (tables must be an object, or null; got a list of 1)"),
    "no processing": (info_without("processing"), "run.json: not a run of coopsheaf (it lacks 'processing')"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_a_bad_checkpoint(
    program: Program, mark: Path, trained: Path, tmp_path: Path, case: str
) -> None:
    damage, message = CHECKPOINTS[case]
    run = tmp_path / "run"
    shutil.copytree(trained / "csnn", run)
    damage(run, trained)
    before = snapshot(run)
    tables = ("--nodes", trained / "nodes.csv", "--edges", trained / "edges.csv")
    assert message in program("predict", run, *tables, "-o", "out.csv").error
    assert message in program("evaluate", run, *tables).error
    assert snapshot(run) == before
    assert list(Path().iterdir()) == []


def test_a_bad_state_is_not_resumed(program: Program, mark: Path, trained: Path) -> None:
    info = json.loads((trained / "csnn" / "run.json").read_text("utf-8"))
    Path("run").mkdir()
    Path("run/run.json").write_text(json.dumps(info | {"status": "interrupted"}))
    words = list(command(trained / "nodes.csv", trained / "edges.csv", "--out", "run", "--resume"))
    words[words.index("--epochs") + 1] = 2
    for content, message in (
        (b"", "state.safetensors: not a readable safetensors file"),
        (pickle.dumps(Evil()), "state.safetensors: not a readable safetensors file"),
        (same(trained / "mlp"), "state.safetensors: the state of another run"),
        (same(trained / "csnn"), "state.safetensors: does not fit this model"),
    ):
        Path("run/state.safetensors").write_bytes(content)
        assert message in program(*words).error
        assert Path("run/state.safetensors").read_bytes() == content


def test_tables_that_do_not_fit_the_run(program: Program, trained: Path, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, 20, target=None)
    text = nodes.read_text("utf-8")

    def predict() -> Done:
        return program("predict", trained / "csnn", "--nodes", nodes, "--edges", edges, "-o", "o.csv")  # fmt: skip

    nodes.write_text(text.replace("age", "years", 1))
    assert f"{nodes} must have the feature columns of the training table; it lacks 'age'" in predict().error  # fmt: skip
    header, first, *rest = text.splitlines()
    cells = first.split(",")
    nodes.write_text("\n".join([header, ",".join([cells[0], "old", *cells[2:]]), *rest]) + "\n")
    assert f"1 of 20 cells are not a number and count as missing: 'old' ({nodes}, line 2)" in predict().out  # fmt: skip
    Path("o.csv").unlink()
    assert "--nodes and --edges go together" in program("predict", trained / "csnn", "--nodes", nodes, "-o", "o.csv").error  # fmt: skip
    assert not Path("o.csv").exists()


# --- disks -------------------------------------------------------------------------------------


def test_a_file_where_a_folder_should_be(program: Program, trained: Path) -> None:
    tables = write_tables(Path("tables"))
    Path("taken").write_text("mine")
    for out in ("taken", "taken/run"):
        assert "taken" in program(*command(*tables, "--out", out)).error
    assert "taken" in program("predict", trained / "csnn", "-o", "taken/out.csv").error
    Path("folder").mkdir()
    assert "folder: Is a directory" in program("predict", trained / "csnn", "-o", "folder", "--force").error  # fmt: skip
    assert Path("taken").read_text() == "mine"
    assert list(Path("folder").iterdir()) == []


def test_a_run_is_kept_if_its_record_cannot_be_written(program: Program) -> None:
    tables = write_tables(Path("tables"))
    Path("results").write_text("mine")
    assert "results" in program(*command(*tables, "--out", "run")).error
    assert Path("results").read_text() == "mine"
    Path("results").unlink()
    program.ok(*command(*tables, "--out", "run", "--resume"))
    assert len(Path("results/csnn-own-nodes.jsonl").read_text("utf-8").splitlines()) == 1


def test_a_read_only_folder(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the system's answer is imitated."""
    tables = write_tables(Path("tables"))
    Path("run").mkdir()

    def refuse(*args: object, dir: object = None, **options: object) -> object:
        raise PermissionError(errno.EACCES, "Permission denied", f"{dir}/.run.json.abc.part")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    assert program(*command(*tables, "--out", "run")).error == "run/run.json: Permission denied"
    assert list(Path("run").iterdir()) == []


def test_a_disk_that_fills_up_leaves_the_previous_state(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run stops after three epochs; then the disk is full; then it is not."""
    from coopsheaf.cli import training

    tables = write_tables(Path("tables"))
    words = (*command(*tables, "--out", "run"), "--epochs", 8)
    program.ok(*words[:-4], "--out", "whole", "--epochs", 8)
    with monkeypatch.context() as patch:
        real, count = training.run_split, iter(range(99))
        patch.setattr(
            training,
            "run_split",
            lambda *a, **k: real(*a, **{**k, "should_stop": lambda: next(count) == 2}),
        )
        assert program(*words).code == 130
    before = snapshot(Path("run"))
    with monkeypatch.context() as patch:

        def full(handle: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr(os, "fsync", full)
        assert program(*words, "--resume").error == "run/run.json: No space left on device"
    assert snapshot(Path("run")) == before
    program.ok(*words, "--resume")
    whole, pieces = (load_run(Path(name)).info["result"] for name in ("whole", "run"))
    assert whole["history"] == pieces["history"]


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 96 kB, where the system lets us have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    words = [str(mount), "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(words, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(program: Program, tiny_disk: Path) -> None:
    tables = write_tables(Path("tables"))
    large = ("--set", "model.hidden_channels=64", "--out", tiny_disk / "run")
    done = program(*command(*tables, *large))
    assert done.error == f"{tiny_disk}/run/state.safetensors: No space left on device"
    assert list(tiny_disk.iterdir()) == []
    program.ok(*command(*tables, "--out", tiny_disk / "small"))
    before = snapshot(tiny_disk)
    with pytest.raises(OSError, match="No space"):
        (tiny_disk / "filler").write_bytes(b"x" * 2**20)
    error = program("predict", tiny_disk / "small", "-o", tiny_disk / "out.csv").error
    assert error == f"{tiny_disk}/out.csv: No space left on device"
    (tiny_disk / "filler").unlink()
    assert snapshot(tiny_disk) == before
    program.ok("predict", tiny_disk / "small", "-o", tiny_disk / "out.csv")
