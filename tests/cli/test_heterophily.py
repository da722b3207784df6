"""Networks for heterophily through the commands, each with as little as it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program, records

from coopsheaf.data.pack import write_pack
from coopsheaf.data.synthetic import contextual_sbm
from coopsheaf.models.registry import MODELS
from coopsheaf.sweep.space import load_space
from coopsheaf.train.recipe import default_recipe
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.records import find_records

NAMES = (
    "gcnii", "gcnii-star", "gprgnn", "gprgnn-lab", "fagcn", "pairnorm", "linkx", "dirgnn", "mixhop",
    "mixhop-linkx", "h2gcn", "h2gcn-linkx", "ggcn", "geom-gcn", "fsgnn", "acm-gcn", "acm-gcn-plus",
    "acmii", "glognn", "glognn++",
)  # fmt: skip
EACH = pytest.mark.parametrize("name", NAMES)
# A sweep has processes of its own, which take seconds to start: most only in the thorough tests.
FEW = ("gcnii", "glognn")
FEW_AND_ALL = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.thorough) for name in NAMES
]
ONE_GRAPH = [name for name in NAMES if not MODELS[name].inductive]
SPACE = "[train]\nlr = [0.1, 0.2]\n[model]\nhidden_channels = [6, 8]\n"


@pytest.fixture
def graph(program: Program) -> Program:
    """The program beside a pack of 40 nodes."""
    write_pack(contextual_sbm(40, 3.0, homophily=0.5, num_features=4, signal=1.0), "graph")
    return program


def write_tables(n: int, prefix: str = "") -> tuple[str, ...]:
    """The options that name tables of n people."""
    lines = [f"{i},{20 + i % 7},{'yn'[i % 3 > 0]}" for i in range(n)]
    Path(f"{prefix}nodes.csv").write_text("\n".join(["id,age,label", *lines]))
    lines = [f"{i},{(i * 7 + 1) % n}" for i in range(n)]
    Path(f"{prefix}edges.csv").write_text("\n".join(["source,target", *lines]))
    return "--nodes", f"{prefix}nodes.csv", "--edges", f"{prefix}edges.csv"


@EACH
def test_it_trains_predicts_and_is_recorded(graph: Program, name: str) -> None:
    few = ("--set", "model.hidden_channels=6", "--set", "train.epochs=2")
    graph.ok("train", "pack:graph", "--model", name, *few, "--out", "run")
    graph.ok("predict", "run", "--output", "predictions.csv")
    assert len(Path("predictions.csv").read_text("utf-8").splitlines()) == 41
    Path("mine.toml").write_text(
        f'[model]\nname = "{name}"\nhidden_channels = 6\n[data]\nname = "pack:graph"\n'
        "[train]\nepochs = 2\n"
    )
    graph.ok("bench", "mine.toml", "--splits", "0")
    assert [(record.model, record.epochs) for record in records()] == [(name, 2)] * 2


@pytest.mark.parametrize("name", FEW_AND_ALL)
def test_it_is_searched(graph: Program, name: str) -> None:
    """One trial through the command: what is kept is the point that was chosen, and trains."""
    Path("space.toml").write_text(SPACE)
    found = load_space(default_recipe(name, "texas"), Path("space.toml"))
    assert found.combinations() == 4
    quick = ("--trials", 1, "--epochs", 2, "--splits", 0, "--threads", 1, "--out", "sweep")
    graph.ok("sweep", "pack:graph", "--model", name, "--space", "space.toml", *quick)
    best = load_recipe("sweep/best.toml")
    assert (best.model_name, best.data.name, best.train.epochs) == (name, "pack:graph", 2)
    assert best.train.lr in (0.1, 0.2)
    assert best.model.hidden_channels in (6, 8)
    graph.ok("bench", "sweep/best.toml", "--splits", "0")
    assert {record.config_hash for record in records()} == {best.hash()}


@EACH
def test_it_is_compared(program: Program, name: str) -> None:
    own = (*write_tables(40), "--target", "label")
    quick = ("--folds", "3", "--trials", "1", "--epochs", "1", "--set", "model.hidden_channels=6")
    said = program.ok("compare", *own, *quick, "--models", name, "mlp", "--out", "c")
    assert name in said
    assert len(find_records(Path("c/records"))) == 6


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_another_graph_is_refused_in_one_line(program: Program, name: str) -> None:
    few = ("--set", "model.hidden_channels=6", "--set", "train.epochs=1")
    own = (*write_tables(40), "--target", "label")
    program.ok("train", *own, "--model", name, *few, "--out", "run")
    error = program("predict", "run", "--output", "p.csv", *write_tables(50, "other-")).error
    assert "knows every node of the graph that it was trained on, 40 of them" in error


def test_what_belongs_to_one_graph() -> None:
    assert ONE_GRAPH == ["linkx", "acm-gcn-plus", "acmii", "glognn", "glognn++"]


def test_wrgat_is_refused_with_the_reason(program: Program) -> None:
    assert "struc2vec" in program("train", "texas", "--model", "wrgat").error
