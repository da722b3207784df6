"""Runs of the peptides' plan, on a few made-up graphs: stopped, continued, recorded, tidied up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.program import Program
from train.test_many_graphs import dataset, recipe

from coopsheaf.train.records import find_records
from coopsheaf.train.runner import Outcome
from lab.peptides import running
from lab.peptides.plan import MODELS, Job
from lab.peptides.records import folder_of, read_known
from lab.peptides.running import measure


def a_job(part: str, model: str) -> Job:
    plan = recipe(model)
    return Job(part, f"{model}, small", replace(plan, data=replace(plan.data, name="made-up")))


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every reading of data."""
    made: list[Any] = []

    def load(config: Any, data_dir: Path | None) -> Any:
        made.append(config)
        return replace(dataset(edges=0), name="made-up")

    monkeypatch.setattr(running, "load_data", load)
    return made


class Here:
    """Results and work in a folder, and the plan run there until it is stopped."""

    def __init__(self, folder: Path) -> None:
        self.results, self.work = folder / "results", folder / "work"

    def run(self, jobs: list[Job], stop: Callable[[], bool] = lambda: False) -> list[Outcome]:
        known = read_known(self.results)
        made = measure(
            jobs,
            known,
            results=self.results,
            work=self.work,
            data_dir=None,
            should_stop=stop,
            progress=lambda job: nullcontext(None),
        )
        return [outcome for _, outcome in made]

    def files(self) -> list[Path]:
        return [p for p in self.work.rglob("*") if p.is_file() and not p.name.endswith(".lock")]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def after(count: int) -> Callable[[], bool]:
    """False so many times, then true."""
    asked: list[None] = []
    return lambda: asked.append(None) or len(asked) > count  # type: ignore[func-returns-value]


@pytest.mark.usefixtures("loads")
def test_a_run_that_was_stopped_goes_on_where_it_was(here: Here, tmp_path: Path) -> None:
    job = a_job("cut", "gcn-lrgb")
    assert here.run([job, a_job("cut", "csnn")], after(2)) == []  # before it, and after an epoch
    assert not read_known(here.results)
    (state,) = (path for path in here.files() if path.name == "state.safetensors")
    assert state.parent.parent.parent == here.work / "cut"
    (ended,) = here.run([job])
    assert not ended.skipped
    (whole,) = Here(tmp_path / "whole").run([job])
    assert ended.record.val == whole.record.val
    assert ended.record.epochs == 3
    (skipped,) = here.run([job])
    assert skipped.skipped


@pytest.mark.usefixtures("loads")
def test_short_runs_leave_nothing_but_their_record(here: Here) -> None:
    here.run([a_job("search", "csnn"), a_job("cut", "gcn-lrgb")])
    assert here.files() == []
    assert len(find_records(folder_of("cut", here.results))) == 2
    assert find_records(here.results) == []


@pytest.mark.usefixtures("loads")
def test_what_a_run_holds_on_disk_is_bounded(here: Here) -> None:
    """Parameters and the best of them, two moments of each, as numbers of four bytes."""
    here.run([a_job("full", "csnn")], after(2))
    sizes = {path.name: path.stat().st_size for path in here.files()}
    assert set(sizes) == {"run.json", "state.safetensors"}
    (ended,) = here.run([a_job("full", "csnn")])
    count = ended.record.parameters
    assert sizes["state.safetensors"] <= 20 * count + (1 << 16)
    kept = {path.name: path.stat().st_size for path in here.files()}
    assert set(kept) == {"run.json", "model.safetensors"}
    assert kept["model.safetensors"] <= 4 * count + (1 << 16)
    assert len(find_records(folder_of("full", here.results))) == 1


def test_data_is_read_once_for_those_that_see_the_same(here: Here, loads: list[Any]) -> None:
    jobs = [a_job("cut", "gcn-lrgb"), a_job("cut", "csnn")]
    here.run(jobs)
    assert len(loads) == 1
    here.run(jobs)  # recorded: nothing is read
    assert len(loads) == 1


def test_wrong_words_are_one_line(laboratory: Program) -> None:
    for words, said in (
        (["--part", "none"], "`--part` must be one of"),
        (["--models", "none"], "`--models` must be one of"),
        (["--precision", "16"], "`--precision` must be one of"),
        (["--minutes", "0"], "--minutes must be positive; got 0"),
        (["--part", "full", "--seeds", "5"], "--seeds must be at most 4; got 5"),
        (["--seeds", "2"], "--seeds goes with --part full; cut has one seed"),
        (["--part", "search", "--models", "csnn"], "--models goes with --part cut and full"),
        (["--report", "--models", "csnn"], "--models, --minutes and --seeds go with training"),
        (["--models", "csnn"], "0 of 5 settings are recorded; run --part search first"),
    ):
        assert said in laboratory("peptides", *words).error


@pytest.mark.usefixtures("loads")
def test_the_report_trains_nothing(laboratory: Program, loads: list[Any]) -> None:
    places = ("search", "cut", "full", "needs")
    marks = (f"<!-- peptides-{p}: begin -->\n<!-- peptides-{p}: end -->\n" for p in places)
    Path("page.md").write_text("".join(marks))
    done = laboratory("peptides", "--report", "--document", "page.md")
    assert done.out == "tables: page.md\n"
    assert all(f"| {model} |" in Path("page.md").read_text() for model in MODELS)
    assert loads == []
