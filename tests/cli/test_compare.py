"""``coopsheaf compare``: the table, the sentence, and one line where it cannot be."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.program import Program

from coopsheaf.data.fraud import fraud_tables
from coopsheaf.train.records import find_records

NODES = "id,age,town,label\n" + "\n".join(f"{i},{20 + i % 7},{'ab'[i % 2]},{'yn'[i % 3 > 0]}" for i in range(60))  # fmt: skip
EDGES = "source,target\n" + "\n".join(f"{i},{(i * 7 + 1) % 60}" for i in range(60))
OWN = ("compare", "--nodes", "nodes.csv", "--edges", "edges.csv", "--target", "label")
QUICK = ("--folds", "3", "--trials", "1", "--epochs", "2")


@pytest.fixture
def own(program: Program) -> Program:
    Path("nodes.csv").write_text(NODES)
    Path("edges.csv").write_text(EDGES)
    return program


def test_own_tables(own: Program) -> None:
    said = own.ok(*OWN, *QUICK, "-o", "table.md")
    assert "3 folds x (1 csnn + 1 gcn-plain + 1 sage-plain + 1 mlp + 1 boosted-columns + 1 boosted-neighbours) = 18 fits" in said  # fmt: skip
    assert "against csnn (95 %)" in said
    assert "boosted-neighbours" in said
    assert "graph" in said.strip().splitlines()[-2]  # the sentence
    assert "columns are encoded anew in each fold, by its own training nodes" in said
    assert "| boosted-neighbours | yes |" in Path("table.md").read_text("utf-8")
    assert len(find_records(Path("comparisons/own-nodes/records"))) == 18
    again = own.ok(*OWN, *QUICK)
    assert "= 18 fits; 18 recorded already" in again


def test_a_dataset_by_name_and_a_metric(program: Program) -> None:
    said = program.ok("compare", "minesweeper-generated", "--models", "mlp", "boosted-columns", "--splits", "0", "--trials", "1", "--epochs", "1", "--metric", "ap", "--out", "c")  # fmt: skip
    assert "test AP" in said
    assert "one split" in said


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--models", "gcm"), "`models` must be among"),
        (("--metric", "f2"), "`metric` must be one of"),
        (("--folds", "99"), "`folds` must be at most the number of labelled nodes or graphs, 60; got 99"),
        (("--folds", "2"), "`folds` must be at least 3"),
        (("--splits", "0"), "`splits` chooses among the splits of the data, and own-nodes has none"),
        (("--max-fits", "3"), "`max_fits` must be at least the number of fits, 120"),
        (("--set", "train.nope=1"), "unknown setting 'nope'"),
        (("--set", "data.direction=reversed"), "settings of data are for datasets by name"),
        (("--task", "link"), "--target must be left out where links are predicted"),
        (("--nodes", "-"), "--nodes must be a file that can be read several times, for every fold; - is a pipe"),
    ],
)  # fmt: skip
def test_bad_options_are_one_line(own: Program, options: tuple[str, ...], line: str) -> None:
    assert line in own(*OWN, *options).error
    assert not Path("comparisons").exists()


def test_a_fold_on_which_the_metric_is_not_defined(own: Program) -> None:
    rare = NODES.replace(",y", ",n").replace("0,20,a,n", "0,20,a,y", 1).replace("1,21,b,n", "1,21,b,y", 1)  # fmt: skip
    Path("nodes.csv").write_text(rare)
    said = own(*OWN, "--metric", "auroc", "--folds", "5").error
    assert "auroc is not defined on the" in said
    assert "take fewer folds, or another metric" in said


def test_one_class_only(own: Program) -> None:
    Path("nodes.csv").write_text(NODES.replace(",y", ",n"))
    assert "class" in own(*OWN).error


def test_a_signal_loses_nothing(own: Program) -> None:
    tables = fraud_tables(400)
    tables.write("fraud")
    command = ["compare", "--nodes", "fraud/accounts.csv", "--edges", "fraud/transfers.csv", "--id", "account", "--target", "fraud", "--folds", "3", "--trials", "1", "--models", "csnn", "mlp", "--epochs", "3000", "--set", "train.patience=0", "--out", "c"]  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "coopsheaf", *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    for _ in range(600):
        if list(Path("c/runs").glob("[!.]*")):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "of 6 fits; the same command continues where it was" in errors
