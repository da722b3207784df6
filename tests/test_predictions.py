"""Predictions of a run, from Python as from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from cli.program import SMALL, Program, write_tables
from train.small import graph_dataset, node_dataset, recipe

from coopsheaf import predict
from coopsheaf.predictions import shield
from coopsheaf.train import load_run, run_data, train

pytest_plugins = ("cli.conftest",)


def test_classes_have_names_and_probabilities() -> None:
    data = node_dataset()
    run = train(data, recipe=recipe(epochs=2))
    found = predict(run, data)
    assert found.ids == tuple(map(str, range(40)))
    assert found.probabilities is not None
    assert found.probabilities.shape == (40, 3)
    best = found.probabilities.argmax(1).tolist()
    assert list(found.values) == [found.class_names[k] for k in best]
    with torch.no_grad():
        logits = run.model(data.x, data.edge_index)
    assert torch.allclose(found.probabilities.float(), logits.softmax(1), atol=1e-6)
    assert found.to_csv().splitlines()[0] == "id,prediction,p(0),p(1),p(2)"


def test_numbers_are_numbers() -> None:
    data = node_dataset(task="regression")
    found = predict(train(data, recipe=recipe(epochs=2)), data)
    assert found.probabilities is None
    heading, first, *_ = found.to_csv().splitlines()
    assert heading == "id,prediction"
    assert float(first.split(",")[1]) == found.values[0]


CELLS = {
    "=1+1": "'=1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
    "-2+3": "'-2+3",
    "\t=1": "'\t=1",
    "-5": "-5",
    "+49.5": "+49.5",
    "-.5e-3": "-.5e-3",
    "-inf": "-inf",
    "plain": "plain",
    "a=b": "a=b",
    "": "",
}


@pytest.mark.parametrize("cell", CELLS)
def test_no_cell_is_a_formula(cell: str) -> None:
    assert shield(cell) == CELLS[cell]


def test_formulas_are_written_as_text_unless_asked_for(program: Program) -> None:
    nodes, edges = write_tables(Path(), prefix="=1+")
    words = ("--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 1, "--out", "run")
    program.ok("train", *words, *SMALL)
    assert "60 cells begin as formulas do" in program.ok("predict", "run", "-o", "out.csv")
    lines = Path("out.csv").read_text("utf-8").splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == ["person", "'=1+0", "'=1+1"]
    assert "formulas" not in program.ok("predict", "run", "-o", "raw.csv", "--raw")
    exact = Path("raw.csv").read_text("utf-8").splitlines()
    assert [line.removeprefix("'") for line in lines] == exact


def test_python_and_the_command_line_agree(program: Program) -> None:
    nodes, edges = write_tables(Path())
    words = ("--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2, "--out", "run")
    program.ok("train", *words, *SMALL)
    program.ok("predict", "run", "-o", "out.csv")
    run = load_run(Path("run"))
    assert predict(run, run_data(run).dataset).to_csv() == Path("out.csv").read_text("utf-8")


def test_other_data_is_refused() -> None:
    run = train(node_dataset(), recipe=recipe(epochs=1))
    with pytest.raises(ValueError, match="predicts whole graphs"):
        predict(run, graph_dataset())
