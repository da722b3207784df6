"""A run folder from a stranger: whatever is changed in it, the commands refuse it in one line or work.

Whoever changes a run can also sign it: identities are made to fit after every change, so that what
refuses it is the check that is meant to.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from cli.program import SMALL, Program, snapshot, write_tables

from coopsheaf.cli import main
from coopsheaf.train.checkpoint import load_tensors, save_tensors
from coopsheaf.train.run import load_run

Change = Callable[[Path, dict[str, Any]], None]

SECRET = "hunter2 is the password"
SECONDS = 10.0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables and a run on them; read only."""
    folder = tmp_path_factory.mktemp("trained")
    nodes, edges = write_tables(folder, 40)
    words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 1,
             "--out", folder / "run", "--results", folder / "results", *SMALL)  # fmt: skip
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 0
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed, with something beside it that nobody should read."""
    target = tmp_path / "stranger"
    shutil.copytree(trained, target)
    write_info(target, read_info(target) | {"tables": near(target)})
    hidden = target / ".private"
    hidden.mkdir()
    (hidden / "secret.csv").write_text(f"{SECRET},x\n{SECRET},y\n")
    (target / "diary.txt").write_text(f"{SECRET}\n{SECRET}\n")
    return target


def near(folder: Path) -> dict[str, Any]:
    tables = read_info(folder)["tables"]
    return tables | {name: str(folder / f"{name}.csv") for name in ("nodes", "edges")}


def read_info(folder: Path) -> dict[str, Any]:
    info: dict[str, Any] = json.loads((folder / "run/run.json").read_text("utf-8"))
    return info


def write_info(folder: Path, info: dict[str, Any]) -> None:
    (folder / "run/run.json").write_text(json.dumps(info), encoding="utf-8")


def sign(folder: Path, info: dict[str, Any]) -> None:
    """Make the identity fit what is said elsewhere, in both files."""
    parts = (
        "model",
        "model_version",
        "config_hash",
        "seed",
        "split",
        "dataset",
        "dataset_checksum",
    )
    info["identity"] = "/".join(str(info.get(part)) for part in parts)
    file = folder / "run/model.safetensors"
    tensors, _ = load_tensors(file)
    save_tensors(file, tensors, {"identity": info["identity"]})


def put(path: str, value: Any) -> Change:
    """Set one value, by its place."""

    def change(folder: Path, info: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        inside = info
        for parent in parents:
            inside = inside[parent]
        inside[last] = value
        sign(folder, info)

    return change


def put_raw(path: str, value: Any) -> Change:
    """Set one value and leave the identity as it was."""

    def change(folder: Path, info: dict[str, Any]) -> None:
        info[path] = value

    return change


def drop(path: str) -> Change:
    def change(folder: Path, info: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        inside = info
        for parent in parents:
            inside = inside[parent]
        del inside[last]

    return change


def all_of(*changes: Change) -> Change:
    def change(folder: Path, info: dict[str, Any]) -> None:
        for one in changes:
            one(folder, info)

    return change


def tensors(edit: Callable[[dict[str, torch.Tensor], str], None]) -> Change:
    """Change the tensors; the edit gets them and the name of a matrix that is not square."""

    def change(folder: Path, info: dict[str, Any]) -> None:
        file = folder / "run/model.safetensors"
        values, meta = load_tensors(file)
        matrices = (name for name, value in values.items() if value.dim() == 2)
        name = next(name for name in matrices if values[name].shape[0] != values[name].shape[1])
        edit(values, name)
        save_tensors(file, values, meta)

    return change


def fill(value: float) -> Change:
    return tensors(lambda values, name: values.__setitem__(name, torch.full_like(values[name], value)))  # fmt: skip


def meta(value: dict[str, Any]) -> Change:
    def change(folder: Path, info: dict[str, Any]) -> None:
        file = folder / "run/model.safetensors"
        save_tensors(file, load_tensors(file)[0], value)

    return change


def text(edit: Callable[[str], str]) -> Change:
    """Change the text of run.json itself."""

    def change(folder: Path, info: dict[str, Any]) -> None:
        path = folder / "run/run.json"
        path.write_text(edit(json.dumps(info)), encoding="utf-8")
        info.clear()

    return change


def table(where: Callable[[Path], object], name: str = "nodes") -> Change:
    def change(folder: Path, info: dict[str, Any]) -> None:
        info["tables"][name] = str(where(folder))

    return change


def link_to_secret(folder: Path, info: dict[str, Any]) -> None:
    (folder / "people.csv").symlink_to(folder / ".private/secret.csv")
    info["tables"]["nodes"] = str(folder / "people.csv")


def pipe(folder: Path, info: dict[str, Any]) -> None:
    os.mkfifo(folder / "pipe.csv")
    info["tables"]["nodes"] = str(folder / "pipe.csv")


def by_name(dataset: str, pack: str = "") -> Change:
    """A run on a dataset instead of tables."""

    def change(folder: Path, info: dict[str, Any]) -> None:
        del info["tables"], info["encoder"]
        info["recipe"]["data"]["name"] = pack
        info["dataset"] = dataset
        sign(folder, info)

    return change


HUGE = 10**20

REFUSED: dict[str, tuple[Change, str]] = {
    # the file as a whole
    "empty": (text(lambda t: ""), "not readable JSON"),
    "a list": (text(lambda t: f"[{t}]"), "not a run of coopsheaf, format 1"),
    "cut": (text(lambda t: t[:-20]), "not readable JSON"),
    "not UTF-8": (text(lambda t: "\x00" + t), "not readable JSON"),
    "Infinity": (text(lambda t: t.replace('"seconds": ', '"seconds": Infinity, "x": ')), "result.seconds must be a finite number"),
    "1e999": (text(lambda t: t.replace('"seconds": ', '"seconds": 1e999, "x": ')), "result.seconds must be a finite number"),
    "digits without end": (text(lambda t: t.replace('"split": 0', '"split": ' + "9" * 5000)), "not readable JSON"),
    "format as truth": (put_raw("format", True), "format must be a whole number"),
    "format of tomorrow": (put_raw("format", 2), "not a run of coopsheaf, format 1"),
    "status of another kind": (put_raw("status", ["finished"]), "the run has not ended"),
    "status unknown": (put_raw("status", "done"), "the run has not ended"),
    # who it is
    "identity of another kind": (put_raw("identity", 5), "identity must be text"),
    "identity of another run": (put_raw("identity", "x"), "identity must be 'csnn/"),
    "split without signature": (put_raw("split", 0.0), "split must be a whole number"),
    "identity of the tensors": (meta({"identity": "x"}), "belongs to another run"),
    "no identity of the tensors": (meta({}), "belongs to another run"),
    "another model": (put("model", "mlp"), "model must be that of its recipe, 'csnn'"),
    "model of another kind": (put("model", 7), "model must be text"),
    "version as text": (put("model_version", "1"), "model_version must be a whole number"),
    "version 0": (put("model_version", 0), "model_version must be a whole number of at least 1"),
    "hash of another kind": (put("config_hash", 5), "config_hash must be text"),
    "another seed": (put("seed", 1), "seed must be that of its recipe"),
    "seed as text": (put("seed", "0"), "seed must be a whole number"),
    "seed without end": (put("seed", HUGE), "seed must be a whole number of at least 0 and at most 4294967295"),
    # the recipe
    "recipe as a list": (put("recipe", []), "recipe must be an object"),
    "no model in the recipe": (drop("recipe.model"), "model.name must be one of"),
    "unknown model": (put("recipe.model.name", "magic"), "model.name must be one of"),
    "unknown section": (put("recipe.extra", {}), "unknown section [extra]"),
    "unknown setting": (put("recipe.model.depth", 3), "unknown setting 'depth'"),
    "unknown word": (put("recipe.model.learner", "magic"), "`learner` must be one of"),
    "channels without end": (put("recipe.model.hidden_channels", HUGE), "hidden_channels must be below 2**63"),
    "many channels": (put("recipe.model.hidden_channels", 9000), "more parameters than model.safetensors has"),
    "other channels": (put("recipe.model.hidden_channels", 5), "does not fit the model in run.json"),
    "negative channels": (put("recipe.model.hidden_channels", -4), "`hidden_channels` must be an integer of at least 1"),
    "channels as text": (put("recipe.model.hidden_channels", "4"), "hidden_channels must be a whole number"),
    "layers without end": (put("recipe.model.num_layers", 10**12), "num_layers must be at most"),
    "many layers": (put("recipe.model.num_layers", 900), "more parameters than model.safetensors has"),
    "more layers than any": (put("recipe.model.num_layers", 9999), "`num_layers` must be at most 1000"),
    "wide stalks": (put("recipe.model.stalk_dim", 250), "more parameters than model.safetensors has"),
    "wider stalks than any": (put("recipe.model.stalk_dim", 1000), "`stalk_dim` must be at most 256"),
    "stalks without end": (put("recipe.model.stalk_dim", HUGE), "stalk_dim must be below 2**63"),
    "rate that is none": (put("recipe.train.lr", float("nan")), "`lr` must be finite"),
    "precision unknown": (put("recipe.train.precision", "8"), "`precision` must be one of"),
    "other precision": (put("recipe.train.precision", "64"), "must be torch.float64 of shape"),
    "batch of another kind": (put("recipe.batch", {"kind": "magic"}), "`kind` must be one of"),
    # the data
    "negative split": (put("split", -1), "split must be a whole number"),
    "split beyond": (put("split", 5), "split must be below the number of splits, 1"),
    "no splits": (put("splits", 0), "splits must be a whole number of at least 1"),
    "dataset of another kind": (put("dataset", 5), "dataset must be text"),
    "checksum of another kind": (put("dataset_checksum", 5), "dataset_checksum must be text"),
    "another checksum": (put("dataset_checksum", "0" * 64), "the data of this run has changed since"),
    "processing as a list": (put("processing", []), "processing must be an object"),
    "processing unknown": (put("processing.direction", "sideways"), "`direction` must be one of"),
    "processing with more": (put("processing.magic", "x"), "unexpected keyword argument 'magic'"),
    "dataset that is a path": (by_name("../../etc/passwd"), "the dataset must be one of"),
    "pack elsewhere": (by_name("etc", "pack:/etc"), "run.json names the pack /etc"),
    "data folder of another kind": (put("data_dir", 5), "data_dir must be text"),
    # the outputs
    "level unknown": (put("level", "edge"), "level must be one of"),
    "whole graphs": (put("level", "graph"), ""),
    "task unknown": (put("task", "magic"), "task must be one of"),
    "another task": (all_of(put("task", "regression"), put("metric", "mae"), put("class_names", []), drop("summary")), "does not fit the model in run.json"),
    "labels instead of classes": (all_of(put("task", "multilabel"), put("metric", "ap"), put("class_names", ["a"]), drop("summary")), "task must be that of the data it names"),
    "metric unknown": (put("metric", "luck"), "metric must be one of"),
    "metric of another task": (put("metric", "mae"), "metric must be one of auroc, accuracy, ap, "),
    "classes as text": (put("class_names", "ab"), "class_names must be a list"),
    "classes as numbers": (put("class_names", [1, 2]), "class_names[0] must be text"),
    "three classes": (put("class_names", ["a", "b", "c"]), "class_names must be 2 for 1 outputs"),
    "a class twice": (put("class_names", ["a", "a"]), "class_names must differ"),
    "classes swapped": (put("class_names", ["young", "old, wise"]), "class_names must be that of the data"),
    "a class that is a script": (put("class_names", ["<script>alert(1)</script>", "b"]), "class_names must be that of the data"),
    "no features": (put("in_channels", 0), "in_channels must be a whole number of at least 1"),
    "other features": (put("in_channels", 7), "does not fit the model in run.json"),
    "features without end": (put("in_channels", HUGE), "in_channels must be a whole number"),
    "features of 100 GB": (put("in_channels", 2**31 - 1), "more parameters than model.safetensors has"),
    "other outputs": (put("out_channels", 5), "out_channels must be 1 for task binary"),
    "parameters as text": (put("parameters", "many"), "parameters must be a whole number"),
    "other parameters": (put("parameters", 7), "parameters must be"),
    # what else is said
    "weights of edges as text": (put("edge_weights", "yes"), "edge_weights must be true or false"),
    "threads as text": (put("threads", "x"), "threads must be a whole number"),
    "versions as a list": (put("versions", []), "versions must be an object"),
    "versions as numbers": (put("versions", {"torch": 5}), "versions.torch must be text"),
    "machine of another kind": (put("machine", {}), "machine must be text"),
    "memory as text": (put("peak_mb", "x"), "peak_mb must be a finite number"),
    "batches of another kind": (put("batches", 5), "batches must be an object"),
    "estimator of another kind": (put("estimator", 5), "estimator must be an object"),
    "no scores": (drop("result.scores"), "it lacks 'scores'"),
    "scores as text": (put("result.scores.val", "0.9"), "result.scores.val must be a finite number, or null"),
    "history as text": (put("result.history", "x"), "result.history must be a list"),
    "history of texts": (put("result.history", [["a"]]), "result.history[0][0] must be a finite number"),
    "negative epochs": (put("result.epochs", -1), "result.epochs must be a whole number"),
    "interrupted as text": (put("result.interrupted", "no"), "result.interrupted must be true or false"),
    # tables and their paths
    "tables without an encoder": (drop("encoder"), "it has tables but lacks 'encoder'"),
    "encoder of another kind": (put("encoder", 5), "encoder must be an object"),
    "tables without targets": (drop("tables.targets"), "cannot be read as they were"),
    "tables without options": (drop("tables.options"), "cannot be read as they were"),
    "options unknown": (put("tables.options.magic", "x"), "cannot be read as they were"),
    "options of another kind": (put("tables.options.undirected", "x"), "cannot be read as they were"),
    "both ways as text": (put("tables.undirected", "no"), "tables: undirected must be true or false"),
    "seed of tables as text": (put("tables.seed", "x"), "tables: seed must be a whole number"),
    "features as a number": (put("tables.features", 3), "tables: features must be a list, or null"),
    "read another way": (put("tables.undirected", True), "cannot be read as they were"),
    "other ends": (put("tables.source", "target"), "cannot be read as they were"),
    "asked for another way": (put("tables.options.undirected", True), "cannot be read as they were"),
    "path of half a letter": (put("tables.nodes", "\ud800"), "tables: nodes must be text"),
    "path as a number": (put("tables.nodes", 5), "tables: nodes must be text"),
    "path of a pipe": (put("tables.nodes", None), "came through a pipe"),
    "passwords": (table(lambda folder: "/etc/passwd"), "run.json names the table /etc/passwd, which lies neither"),
    "passwords as edges": (table(lambda folder: "/etc/passwd", "edges"), "run.json names the table /etc/passwd"),
    "a device without end": (table(lambda folder: "/dev/zero"), "run.json names the table /dev/zero"),
    "upwards": (table(lambda folder: folder / "../../../../etc/passwd"), "run.json names the table"),
    "hidden beside it": (table(lambda folder: folder / ".private/secret.csv"), "run.json names the table"),
    "a link to what is hidden": (link_to_secret, "run.json names the table"),
    "a pipe beside it": (pipe, "is no file"),
    "no table beside it": (table(lambda folder: folder / "diary.txt"), "cannot be read as they were"),
    "another table beside it": (table(lambda folder: folder / "edges.csv"), "cannot be read as they were"),
    "nothing there": (table(lambda folder: folder / "gone.csv"), "does not exist"),
    "a name that no file may have": (table(lambda folder: folder / ("x" * 2000)), "does not exist"),
    "NUL in a path": (table(lambda folder: "a\0b"), ""),
    # the tensors
    "NaN": (fill(float("nan")), "weights must be finite"),
    "infinity": (fill(float("inf")), "weights must be finite"),
    "twice as precise": (tensors(lambda v, n: v.__setitem__(n, v[n].double())), "must be torch.float32 of shape"),
    "whole numbers": (tensors(lambda v, n: v.__setitem__(n, v[n].long())), "must be torch.float32 of shape"),
    "transposed": (tensors(lambda v, n: v.__setitem__(n, v[n].T.contiguous())), "does not fit the model in run.json"),
    "one too many": (tensors(lambda v, n: v.__setitem__("extra", v[n].clone())), "the model has no tensor 'extra'"),
    "one missing": (tensors(lambda v, n: v.__delitem__(n)), "it lacks the tensor"),
}  # fmt: skip

# What may be: the commands work, and say what they did not use.
ACCEPTED: dict[str, tuple[Change, str]] = {
    "nothing": (lambda folder, info: None, ""),
    "a key of tomorrow": (put("colour", "blue"), "keys that this version does not know are not used: 'colour'"),
    "a result of tomorrow": (put("result.colour", "blue"), "result in run.json: keys that this version does not know"),
    "another version": (put("model_version", 99), "was of version 99 when it was trained"),
    "another hash": (put("config_hash", "beef"), "its settings are not those that it was trained with"),
    "a data folder that is gone": (put("data_dir", "/nowhere"), ""),
    "a curve with gaps": (put("result.history", [[1, None, None, None, None]]), ""),
}  # fmt: skip


def commands(folder: Path) -> list[tuple[object, ...]]:
    run = folder / "run"
    return [
        ("predict", run, "-o", folder / "out.csv"),
        ("evaluate", run),
        ("explain", run, "-o", folder / "page.html", "--explain", "0"),
    ]


def test_the_table_is_long_enough() -> None:
    assert len(REFUSED) + len(ACCEPTED) >= 60


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_line(program: Program, folder: Path, case: str) -> None:
    change, message = REFUSED[case]
    info = read_info(folder)
    change(folder, info)
    if info:
        write_info(folder, info)
    before = sorted(path.name for path in folder.rglob("*"))
    for words in commands(folder):
        start = time.monotonic()
        error = program(*words).error
        assert time.monotonic() - start < SECONDS
        assert message in error
        assert SECRET not in error
        assert "root:" not in error
        assert len(error) < 1000
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.parametrize("case", ACCEPTED)
def test_it_works_and_says_what_is_odd(program: Program, folder: Path, case: str) -> None:
    change, message = ACCEPTED[case]
    info = read_info(folder)
    change(folder, info)
    write_info(folder, info)
    before = snapshot(folder / "run")
    for words in commands(folder):
        out = program.ok(*words)
        assert message in out
        assert message or "run.json" not in out
    assert snapshot(folder / "run") == before


def test_what_a_run_writes_today_is_known(trained: Path) -> None:
    assert load_run(trained / "run").notes == ()


def test_a_folder_that_the_user_names_is_read(
    program: Program, trained: Path, tmp_path: Path
) -> None:
    away = tmp_path / "deep/down/below/run"
    shutil.copytree(trained / "run", away)
    error = program("evaluate", away).error
    assert f"--data-dir {trained}" in error
    assert "at training" in program.ok("evaluate", away, "--data-dir", trained)
    tables = ("--nodes", trained / "nodes.csv", "--edges", trained / "edges.csv")
    assert "labelled nodes" in program.ok("evaluate", away, *tables)


def test_an_encoder_wider_than_the_network(program: Program, folder: Path) -> None:
    info = read_info(folder)
    for column in info["encoder"]["columns"]:
        if column["kind"] == "categorical":
            column["categories"] = [f"c{k}" for k in range(1000)]
    write_info(folder, info)
    tables = ("--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv")
    error = program("predict", folder / "run", *tables, "-o", "out.csv").error
    assert "its encoder must make" in error
