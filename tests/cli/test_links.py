"""Runs on links at the command line: said what they are, evaluated, refused where they do not fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Program
from train.small import link_dataset, recipe

from coopsheaf.cli import training, using
from coopsheaf.data.links import LinkDataset
from coopsheaf.train.data import RunData
from coopsheaf.train.run import run_split


@pytest.fixture
def dataset() -> LinkDataset:
    data = link_dataset(undirected=True)
    run_split(recipe(epochs=2), data, out=Path("run"))
    return data


def test_an_introduction_counts_links(capsys: pytest.CaptureFixture[str]) -> None:
    data = link_dataset(undirected=True)
    training.introduce(recipe(), data)
    first, second, third, _ = capsys.readouterr().out.splitlines()
    assert first == f"links: 40 nodes, {data.num_edges} directed edges, 5 features, link"
    assert second.startswith("  direction undirected")
    sizes = ", ".join(f"{getattr(data, part).shape[1]} {part}" for part in ("train", "val", "test"))
    count = data.val_negatives.shape[1]
    assert third == (
        f"  links: {sizes} (each from both of its ends); messages travel on those of train, val and "
        f"test are ranked against {count} non-edges each"
    )


def test_a_run_is_evaluated_on_its_own_data(
    program: Program, dataset: LinkDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Callable[..., RunData] = lambda *_, **__: RunData(dataset, 0)  # noqa: E731
    monkeypatch.setattr(using, "run_data", found)
    lines = program.ok("evaluate", "run").splitlines()
    assert any("mrr" in line for line in lines)
    for part in ("train", "val", "test"):
        row = next(line for line in lines if part in line.split())
        now, then = [word for word in row.split() if word.startswith("0.")]
        assert now == then


def test_what_is_for_nodes_refuses_links(program: Program, dataset: LinkDataset) -> None:
    words = {
        "predict run -o out.csv": "run: predicts links; give --pairs, a table of pairs to score",
        "explain run": "run: predicts links; explain takes node tasks only",
        "figures run -o figures": "run: predicts links; figures of runs take node tasks only",
        "export run model.pt2": "the run predicts links, and a program takes a graph and no pairs",
        "evaluate run --nodes a.csv --edges b.csv": "run: predicts links, and new tables have no ",
        "evaluate run": "the links of this run, links, were made in Python: evaluate it there",
    }
    for command, error in words.items():
        assert program(*command.split()).error.startswith(error), command
