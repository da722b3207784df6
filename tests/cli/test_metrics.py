"""The metric of a command: chosen, wrong, or not defined where it is wanted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.program import SMALL, Program, records, snapshot, write_tables


def tables(target: str = "label") -> tuple[object, ...]:
    write_tables(Path(), 80, target=target)
    own = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--target", target, "--drop", "part")
    return (*own, "--epochs", 4, *SMALL)


def with_folds(folds: int, alike: int) -> None:
    """Add a column of folds, of which one has people of one label alone."""
    header, *rows = Path("nodes.csv").read_text().splitlines()
    old = [row for row in rows if "old" in row]
    young = [row for row in rows if "young" in row]
    cells = {row: k % (folds - 1) for group in (old, young) for k, row in enumerate(group)}
    cells = {row: fold + (fold >= alike) for row, fold in cells.items()}
    cells |= dict.fromkeys(young[:10], alike)
    lines = [f"{row},{cells.get(row, '')}" for row in rows]
    Path("nodes.csv").write_text("\n".join([f"{header},fold", *lines]) + "\n")


@pytest.mark.parametrize(
    ("target", "metric", "label"),
    [("label", "brier", "Brier score"), ("height", "rmse", "RMSE"), ("label", "ap", "AP")],
)
def test_the_metric_is_chosen_and_recorded(
    program: Program, target: str, metric: str, label: str
) -> None:
    out = program.ok("train", *tables(target), "--metric", metric, "--out", "run")
    assert f"split 0: {label} train" in out
    (record,) = records()
    assert record.metric == metric
    assert record.config["train"]["metric"] == metric
    info = json.loads(Path("run/run.json").read_text())
    assert (info["metric"], info["result"]["scores"]["val"]) == (metric, record.val)
    assert label in program.ok("evaluate", "run")
    assert label in program.ok("report")


def test_an_unknown_metric(program: Program) -> None:
    words = tables()
    error = program("train", *words, "--metric", "auc", "--out", "run").error
    assert error.startswith("--set train.metric: `metric` must be one of 'auroc', ")
    assert "got 'auc' (did you mean 'auroc'?)" in error
    error = program("train", *words, "--metric", "rmse", "--out", "run").error
    assert "`train.metric` must be one of auroc, accuracy," in error
    assert "for the task 'binary'; got 'rmse'" in error
    assert not Path("run").exists()
    assert records() == []


def test_a_metric_that_a_fold_does_not_define(program: Program) -> None:
    """Said before anything is trained, with the fold, and what would do; what is there stays."""
    words = tables()
    with_folds(5, alike=2)
    program.ok("train", *words, "--metric", "auroc", "--splits", "0")
    before = snapshot(Path())
    error = program("train", *words, "--metric", "auroc", "--splits", "0-4", "--resume").error
    assert "auroc, is not defined on split 1 of" in error
    assert "its 10 validation targets are all of the class 'young'; leave the split out" in error
    assert "set `train.metric` to accuracy" in error
    assert snapshot(Path()) == before
    # The score on the test part may be missing: nothing is selected by it.
    out = program.ok("train", *words, "--metric", "auroc", "--splits", "0,2-4", "--resume")
    assert "split 2: AUROC" in out
    assert "test nan" in out
    assert {record.split: record.test for record in records()}[2] is None
    program.ok("train", *words, "--splits", "1")  # of its own accord it takes what is defined
