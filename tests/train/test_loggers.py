"""Curves where people watch them: what is shown is the history, also after an interruption."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from train.small import node_dataset, recipe

from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, load_run, run_split


def watched(kind: str | None, epochs: int = 6) -> Recipe:
    found = recipe(epochs=epochs)
    return replace(found, train=replace(found.train, logger=kind, eval_every=2))


def interrupted(kind: str, out: Path) -> Run:
    """A run that was stopped after two epochs, lost what it wrote of them, and went on."""
    asked = iter([False, True])
    run_split(watched(kind), node_dataset(), out=out, should_stop=lambda: next(asked))
    return run_split(watched(kind), node_dataset(), out=out, resume=True)[0]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def read_events(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


@pytest.mark.parametrize("stopped", [False, True])
def test_csv(stopped: bool, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = interrupted("csv", out) if stopped else run_split(watched("csv"), node_dataset(), out=out)[0]  # fmt: skip
    history = run.info["result"]["history"]
    found = rows_of(out / "logs" / "csv" / "metrics.csv")
    assert [int(row["step"]) for row in found] == [2, 4, 6]
    for row, (_, loss, train, val, test) in zip(found, history, strict=True):
        assert float(row["loss"]) == loss
        assert [float(row[f"accuracy/{part}"]) for part in ("train", "val", "test")] == [train, val, test]  # fmt: skip


@pytest.mark.parametrize("stopped", [False, True])
def test_tensorboard(stopped: bool, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = interrupted("tensorboard", out) if stopped else run_split(watched("tensorboard"), node_dataset(), out=out)[0]  # fmt: skip
    events = read_events(out / "logs" / "tensorboard")
    assert events.keys() == {"loss", "accuracy/train", "accuracy/val", "accuracy/test"}
    history = run.info["result"]["history"]
    assert events["loss"] == [(row[0], pytest.approx(row[1])) for row in history]
    assert events["accuracy/val"] == [(row[0], pytest.approx(row[3])) for row in history]


def test_a_logger_changes_nothing_and_is_no_part_of_the_name(tmp_path: Path) -> None:
    plain, _ = run_split(watched(None), node_dataset(), out=tmp_path / "a")
    seen, _ = run_split(watched("csv"), node_dataset(), out=tmp_path / "b")
    assert plain.info["identity"] == seen.info["identity"]
    assert plain.info["config_hash"] == seen.info["config_hash"]
    assert plain.info["result"]["history"] == seen.info["result"]["history"]
    assert load_run(tmp_path / "b").recipe.train.logger == "csv"
    # A run that was begun with one logger goes on with another.
    asked = iter([False, False, True])
    run_split(watched("csv"), node_dataset(), out=tmp_path / "c", should_stop=lambda: next(asked))
    run_split(watched("tensorboard"), node_dataset(), out=tmp_path / "c", resume=True)
    assert [step for step, _ in read_events(tmp_path / "c/logs/tensorboard")["loss"]] == [2, 4, 6]


def test_a_resumed_run_that_has_ended_keeps_its_logs(tmp_path: Path) -> None:
    for resume in (False, True):
        run_split(watched("csv"), node_dataset(), out=tmp_path / "run", resume=resume)
    assert len(rows_of(tmp_path / "run/logs/csv/metrics.csv")) == 3


def test_what_cannot_be_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"`logger` must be one of .*; got 'tensorbord' \(did you mean 'tensorboard'\?\)"):  # fmt: skip
        watched("tensorbord")
    with pytest.raises(
        ValueError, match=r"`train\.logger` 'csv' writes into the folder of the run"
    ):
        run_split(watched("csv"), node_dataset())
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match=r"'wandb' needs wandb, which is not installed: pip install 'coopsheaf\[wandb\]'"):  # fmt: skip
        run_split(watched("wandb"), node_dataset(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_nothing_is_imported_that_is_not_named() -> None:
    code = (
        "import sys, coopsheaf.train.run, coopsheaf.train.loggers\n"
        "print([m for m in ('wandb', 'mlflow', 'tensorboard', 'lightning_fabric') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# The other two start threads and services of their own: each has a process to itself.
ELSEWHERE = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from train.test_loggers import interrupted
run = interrupted({kind!r}, Path({out!r}))
print("HISTORY", len(run.info["result"]["history"]))
"""


def run_elsewhere(kind: str, out: Path, **environment: str) -> None:
    tests = str(Path(__file__).parents[1])
    code = ELSEWHERE.format(tests=tests, kind=kind, out=str(out))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        cwd=out.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "HISTORY 3" in done.stdout


@pytest.mark.thorough
def test_wandb_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    run_elsewhere("wandb", tmp_path / "run", WANDB_MODE="offline", WANDB_SILENT="true")
    runs = sorted((tmp_path / "run" / "wandb").glob("offline-run-*"))
    assert runs  # one of each start, of the same id
    # offline-run-DATE_TIME-ID, and a number behind it for a second start within one second
    assert len({path.name.split("-")[3] for path in runs}) == 1
    assert all(list(path.glob("*.wandb")) for path in runs)


@pytest.mark.thorough
def test_mlflow(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    address = f"sqlite:///{tmp_path / 'mlflow.db'}"
    run_elsewhere("mlflow", tmp_path / "run", MLFLOW_TRACKING_URI=address, MLFLOW_DISABLE_TELEMETRY="true")  # fmt: skip
    import sqlite3

    with sqlite3.connect(tmp_path / "mlflow.db") as base:
        points = base.execute("select key, step, value from metrics order by step").fetchall()
        assert [(step) for key, step, _ in points if key == "loss"] == [2, 4, 6]  # each once
        assert base.execute("select status from runs").fetchall() == [("FINISHED",)]
        names = {name for (name,) in base.execute("select key from params")}
        assert {"model.name", "train.epochs"} <= names
