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
    assert f"{label} (selected)" in program.ok("evaluate", "run")
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


def test_the_end_of_training_and_evaluate_show_all_metrics_and_classes(program: Program) -> None:
    words = tables()
    out = program.ok("train", *words, "--class-weights", "--threshold", "f1", "--out", "run")
    shown = program.ok("evaluate", "run")
    for text in (out, shown):
        for name in ("AUROC (selected)", "macro F1", "recall at precision 0.9", "Brier score"):
            assert name in text
        assert "probabilities are calibrated on validation: temperature " in text
        assert "'young' is predicted above 0." in text
        assert "(f1)" in text
        assert "test part, by class" in text
        assert "true \\ predicted" in text
        rows = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│ young")]
        by_class, by_predicted = rows[-2:]
        true = sum(int(cell) for cell in by_predicted[1:])
        assert int(by_class[4]) == true
        assert float(by_class[2]) == pytest.approx(int(by_predicted[2]) / true, abs=1e-4)
    program.ok("predict", "run", "-o", "out.csv")
    info = json.loads(Path("run/run.json").read_text())
    threshold = info["decision"]["threshold"]
    header, *lines = [line.rsplit(",", 2) for line in Path("out.csv").read_text().splitlines()]
    assert header[-1] == "p(young)"
    assert {("young" in head) == (float(p) > threshold) for head, _, p in lines} == {True}
    assert info["recipe"]["train"]["threshold"] == "f1"


def test_training_tables_are_evaluated_by_part(program: Program, tmp_path: Path) -> None:
    """The score of nodes that the run has learned from is not mixed into that of others."""
    words = tables()
    program.ok("train", *words, "--out", "run")
    scores = json.loads(Path("run/run.json").read_text())["result"]["scores"]
    nodes, edges = write_tables(tmp_path, 30, seed=7, prefix="q")
    given = ("--nodes", "nodes.csv", "--edges", "edges.csv")
    out = program.ok("evaluate", "run", *given)
    for part, where in {
        "train": "that the run was trained on",
        "val": "that it was selected by",
        "test": "of its test part",
    }.items():
        assert f"labelled nodes {where}: auroc {scores[part]:.4f}" in out
    assert "that are new to it" not in out
    assert "they are kept apart" in out
    # Tables that are new but for some rows, and those of which nobody knows any more.
    both = [Path("nodes.csv").read_text(), *nodes.read_text().splitlines(keepends=True)[1:]]
    Path("more.csv").write_text("".join(both))
    more = ("--nodes", "more.csv", "--edges", "edges.csv")
    assert "24 labelled nodes that are new to it: auroc" in program.ok("evaluate", "run", *more)
    out = program.ok("evaluate", "run", "--nodes", nodes, "--edges", edges)
    assert "24 labelled nodes: auroc" in out
    assert "NOTE" not in out
    Path("nodes.csv").unlink()
    out = program.ok("evaluate", "run", "--nodes", nodes, "--edges", edges)
    assert "24 labelled nodes: auroc" in out
    assert "NOTE: nodes that the run was trained on cannot be told from others" in out


def test_decisions_that_cannot_be(program: Program) -> None:
    """A threshold for several classes, none at all, and one class alone in validation."""
    words = tables()
    error = program("train", *words, "--threshold", "f2", "--out", "run").error
    assert "`threshold` must be f1, youden, precision=0.9, cost=10:1 or a number" in error
    text = Path("nodes.csv").read_text()
    Path("nodes.csv").write_text(text.replace('"young"', '"middling"', 20))
    error = program("train", *words, "--threshold", "f1", "--out", "run").error
    assert "`train.threshold` is for two classes, and the task is 'multiclass'" in error
    Path("nodes.csv").write_text(text)
    with_folds(5, alike=2)
    words = (*words, "--metric", "accuracy", "--threshold", "youden", "--splits", "0-1")
    error = program("train", *words).error
    assert "`train.threshold` 'youden' looks at validation, which must have two classes" in error
    assert "on split 1 of" in error
    assert not Path("runs").exists()
    assert not Path("run").exists()


def test_a_precision_out_of_reach_loses_nothing(program: Program) -> None:
    """It is known after training alone: the run is there, and what was done instead is said."""
    words = tables()[:6]
    header, *rows = [line.split(",", 2) for line in Path("nodes.csv").read_text().splitlines()]
    # Two kinds of people that a network without edges can tell apart: two cuts, both of them poor.
    rows = [[person, str(place % 2), rest] for place, (person, _, rest) in enumerate(rows)]
    Path("nodes.csv").write_text("\n".join(map(",".join, [header, *rows])) + "\n")
    more = ("--features", "age", "--model", "mlp", "--epochs", 2, "--out", "run")
    out = program.ok("train", *words, *more, "--threshold", "precision=0.99")
    assert Path("run/model.safetensors").exists()
    (note,) = json.loads(Path("run/run.json").read_text())["decision"]["notes"]
    assert note.startswith("a precision of 0.99 is reached nowhere on validation; ")
    assert f"NOTE: {note}" in out
