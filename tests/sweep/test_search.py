"""Sweeps: every trial counts once, validation alone decides, the best becomes a recipe."""

from __future__ import annotations

import math
import os
import random
import re
import threading
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from sweep.sweeps import FINITE, SPACE, Trainer, closeness, plan
from train.small import node_dataset

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.sweep import search as sweep_module
from coopsheaf.sweep.queue import TrialRow, best_row
from coopsheaf.sweep.search import Sweep
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.records import find_records


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody cuts the power here."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Trainer:
    """Trials take no time, and the best learning rate is known."""
    fake = Trainer(closeness)
    monkeypatch.setattr(sweep_module, "bench", fake)
    monkeypatch.setattr(sweep_module, "current_commit", lambda: "abc123")
    return fake


def run(folder: Path, trials: int, text: str = SPACE, *, name: str = "sweep", dataset: NodeDataset | None = None, **options: Any) -> Sweep:  # fmt: skip
    data = node_dataset() if dataset is None else dataset
    sweep = Sweep(plan(folder, text, dataset=data, **options), folder / name)
    sweep.grow(trials)
    assert sweep.work(data, worker="me")
    return sweep


# --- a sweep -----------------------------------------------------------------------------------


def test_a_sweep_trains_selects_and_writes(tmp_path: Path) -> None:
    sweep = run(tmp_path, 4)
    rows = sweep.queue.rows()
    assert [(row.slot, row.state) for row in rows] == [(k, "complete") for k in range(4)]
    records = find_records(tmp_path / "sweep" / "records")
    assert len(records) == 8
    by_config = {row.config: row for row in rows}
    for row in rows:
        assert row.value == sum(row.vals) / 2
        assert row.worker == "me"
        assert (row.seconds, row.parameters) > (0, 0)
    for record in records:
        row = by_config[record.config_hash]
        assert record.val == row.vals[record.split]
        assert record.parameters == row.parameters
        assert record.epochs == 2
    best = sweep.best()
    assert best is not None
    assert best.value == max(row.value or 0 for row in rows)
    file = sweep.write_best()
    assert file == tmp_path / "sweep" / "best.toml"
    recipe = load_recipe(str(file))
    assert recipe.hash() == best.config
    assert recipe == replace(sweep.recipe_of(best), name="sweep/csnn/small", source=recipe.source)
    # Networks are not kept, and nothing is where a report would find it.
    assert not [path for path in (tmp_path / "sweep").rglob("*") if path.suffix == ".safetensors"]
    assert not list((tmp_path / "sweep").rglob("run.json"))
    assert not list((tmp_path / "sweep").glob("*.jsonl"))


def test_the_splits_of_a_trial_are_trained_in_one_pass(tmp_path: Path) -> None:
    alone, data = run(tmp_path, 3, name="alone"), node_dataset()
    sweep = Sweep(plan(tmp_path), tmp_path / "together")
    sweep.grow(3)
    assert sweep.work(data, together=True)
    rows = sweep.queue.rows()
    assert [row.state for row in rows] == ["complete"] * 3
    for mine, theirs in zip(rows, alone.queue.rows(), strict=True):
        assert mine.params == theirs.params
        assert mine.vals == pytest.approx(theirs.vals)
    records = find_records(tmp_path / "together" / "records")
    assert [record.together for record in records] == [2] * 6
    assert not any(path.is_dir() for path in (tmp_path / "together" / "runs").glob("csnn-*"))


def test_the_source_of_the_best_recipe_says_it_all(tmp_path: Path, trainer: Trainer) -> None:
    sweep = run(tmp_path, 6, sampler="random", seed=3, prune=False)
    best = sweep.best()
    file = sweep.write_best()
    assert best is not None
    assert file is not None
    source = load_recipe(str(file)).source
    assert re.fullmatch(
        r"sweep of 6 trials \(0 pruned; random, seed 3\) over a small space, varying "
        r"model\.hidden_channels, model\.learner, model\.learner_layers, train\.lr; selected on the "
        rf"mean validation accuracy of splits 0-1 \({best.value:.4f}, trial {best.number}\); "
        r"\d{4}-\d\d-\d\d; commit abc123",
        source,
    )
    before = file.read_text()
    assert sweep.write_best() == file
    assert file.read_text() == before


def test_tpe_finds_what_is_good(tmp_path: Path, trainer: Trainer) -> None:
    best = run(tmp_path, 30, prune=False).best()
    assert best is not None
    assert best.params["model.hidden_channels"] == 4
    assert abs(math.log10(float(best.params["train.lr"] or 0)) + 2) < 0.1


def test_errors_are_minimised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "bench", Trainer(lambda r, s: 1 - closeness(r, s)))
    sweep = run(tmp_path, 8, dataset=node_dataset(task="regression"), prune=False)
    best = sweep.best()
    assert sweep.plan.metric == "mae"
    assert best is not None
    assert best.value == min(row.value or 1 for row in sweep.queue.rows())


# --- validation alone decides ------------------------------------------------------------------


def test_test_scores_choose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same scores on validation beside opposite ones on test give the same sweep."""
    sweeps = []
    for name, test in (("same", lambda val: val), ("opposite", lambda val: -val)):
        monkeypatch.setattr(sweep_module, "bench", Trainer(closeness, test))
        sweeps.append(run(tmp_path, 25, name=name))
    one, other = ([(r.params, r.state, r.value, r.vals) for r in s.queue.rows()] for s in sweeps)
    assert one == other
    assert sweeps[0].best() is not None
    assert sweeps[0].best().number == sweeps[1].best().number  # type: ignore[union-attr]


def test_labels_of_test_nodes_choose_nothing(tmp_path: Path) -> None:
    """Real training: with other labels on the test nodes, everything but the test score is the same."""
    data = node_dataset(splits=1)
    y = data.y.clone()
    y[data.test[0]] = (y[data.test[0]] + 1) % 3
    found = []
    for name, labels in (("true", data.y), ("false", y)):
        sweep = run(tmp_path, 4, name=name, splits=(0,), dataset=replace(data, y=labels))
        records = {record.config_hash: record for record in find_records(sweep.folder / "records")}
        found.append((sweep, records))
    (one, true), (other, false) = found
    assert [(r.params, r.value) for r in one.queue.rows()] == [(r.params, r.value) for r in other.queue.rows()]  # fmt: skip
    assert one.recipe_of(one.best()) == other.recipe_of(other.best())  # type: ignore[arg-type]
    assert [true[key].test for key in true] != [false[key].test for key in true]


def test_the_study_knows_no_test_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "bench", Trainer(closeness, lambda val: 0.123456789))
    sweep = run(tmp_path, 3)
    sweep.write_best()
    for path in sweep.folder.rglob("*"):
        if path.is_file():
            assert b"123456789" not in path.read_bytes()


def test_ties_go_to_the_smaller_network_then_to_the_first() -> None:
    def row(number: int, value: float | None, parameters: int, state: str = "complete") -> TrialRow:
        return TrialRow(number, number, state, value, parameters=parameters)

    rows = [row(0, 0.5, 10), row(1, 0.7, 30), row(2, 0.7, 20), row(3, 0.7, 20), row(4, 0.9, 5, "pruned")]  # fmt: skip
    assert best_row(rows, maximise=True) is rows[2]
    assert best_row(rows, maximise=False) is rows[0]
    assert best_row(rows[4:], maximise=True) is None
    # Of equals the first slot, though its trial was lost and has a later number now.
    again = [TrialRow(1, 1, "complete", 0.5), TrialRow(2, 0, "complete", 0.5)]
    assert best_row(again, maximise=True) is again[1]
    assert best_row([row(0, None, 1, "pruned")], maximise=True) is None


# --- pruning, repetitions, failures ------------------------------------------------------------


def test_pruning_is_between_splits_and_counts(tmp_path: Path, trainer: Trainer) -> None:
    sweep = run(tmp_path, 30, splits=(0, 1), sampler="random")
    rows = sweep.queue.rows()
    pruned = [row for row in rows if row.state == "pruned"]
    assert pruned
    assert all(len(row.vals) == 1 and row.value == row.vals[0] for row in pruned)
    assert len([row for row in rows if row.finished]) == len(rows) == 30
    whole = [row for row in rows if row.state == "complete"]
    assert all(len(row.vals) == 2 for row in whole)
    # What was pruned was below the median of the completed ones before it.
    for row in pruned:
        assert row.vals[0] < median(r.vals[0] for r in whole if r.number < row.number)
    assert max(r.vals[0] for r in pruned) < max(r.vals[0] for r in whole)


@pytest.mark.parametrize("options", [{"prune": False}, {"splits": (0,)}], ids=str)
def test_without_pruning_all_are_completed(tmp_path: Path, trainer: Trainer, options: Any) -> None:
    rows = run(tmp_path, 15, sampler="random", **options).queue.rows()
    assert {row.state for row in rows} == {"complete"}


def test_a_grid_is_run_whole_and_once(tmp_path: Path, trainer: Trainer) -> None:
    sweep = Sweep(plan(tmp_path, FINITE, sampler="grid", prune=False), tmp_path / "sweep")
    assert sweep.grow(1000) == 12
    assert sweep.work(node_dataset())
    assert len(trainer.calls) == len(set(trainer.calls)) == 24
    assert len({row.config for row in sweep.queue.rows()}) == 12


def test_what_was_run_is_not_run_again(tmp_path: Path, trainer: Trainer) -> None:
    """Twelve different points, thirty trials."""
    sweep = run(tmp_path, 30, FINITE, sampler="random", prune=False)
    assert len(trainer.calls) == len(set(trainer.calls)) <= 24
    rows = sweep.queue.rows()
    assert len(rows) == 30
    copies = [row for row in rows if row.same_as is not None]
    assert copies
    for row in copies:
        twin = rows[row.same_as or 0]
        assert (row.config, row.value, row.vals) == (twin.config, twin.value, twin.vals)
        assert row.parameters == twin.parameters
    assert sweep.best() in [row for row in rows if row.same_as is None]


def test_splits_that_are_recorded_are_not_run_again(tmp_path: Path) -> None:
    """A real bench: what a killed process had recorded is used."""
    data, folder = node_dataset(), tmp_path / "sweep"
    asked = iter([False] * 4 + [True] * 3)  # a look, two epochs, and one of the second split
    sweep = Sweep(plan(tmp_path), folder)
    sweep.grow(1)
    assert not sweep.work(data, should_stop=lambda: next(asked))
    (row,) = sweep.queue.rows()
    assert (row.state, len(row.vals), row.error) == ("fail", 1, "stopped")
    assert len(find_records(folder / "records")) == 1
    assert list((folder / "runs").glob("*/state.safetensors"))
    assert Sweep(sweep.plan, folder).work(data)
    before, after = sweep.queue.rows()
    assert (after.state, after.slot, after.params) == ("complete", before.slot, before.params)
    assert after.vals[0] == before.vals[0]
    assert len(find_records(folder / "records")) == 2
    whole = run(tmp_path, 1, name="at-once").queue.rows()[0]
    assert whole.vals == after.vals


def test_what_diverges_counts_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def score(recipe: Recipe, split: int) -> float | None:
        if recipe.model.learner == "mlp":
            raise ValueError("the loss became\nnan")
        if recipe.model.hidden_channels == 2:
            raise RuntimeError("not enough memory")
        return None if recipe.model.learner_layers == 2 else 0.5

    monkeypatch.setattr(sweep_module, "bench", trainer := Trainer(score))
    sweep = run(tmp_path, 40, FINITE, sampler="random")
    rows = sweep.queue.rows()
    assert len(rows) == 40
    errors = {row.error for row in rows}
    assert errors == {"", "the loss became nan", "not enough memory", "the validation auroc is not defined"}  # fmt: skip
    assert all((row.state == "pruned") == bool(row.error) for row in rows)
    assert all(row.value is None for row in rows if row.error)
    assert len(set(trainer.calls)) == len(trainer.calls)  # nor is a failure tried twice
    best = sweep.best()
    assert best is not None
    assert best.value == 0.5


def test_values_that_do_not_go_together_count(tmp_path: Path, trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    sweep = Sweep(plan(tmp_path, FINITE, sampler="random"), tmp_path / "sweep")
    sweep.grow(3)
    from coopsheaf.config import ConfigError
    from coopsheaf.sweep import space as sweep_space

    def refuse(recipe: Recipe, values: Any) -> Recipe:
        raise ConfigError("these do not go together")

    monkeypatch.setattr(sweep_space, "with_values", refuse)
    assert sweep.work(node_dataset())
    assert [(row.state, row.error) for row in sweep.queue.rows()] == [("pruned", "these do not go together")] * 3  # fmt: skip
    assert sweep.best() is None
    assert sweep.write_best() is None
    assert sweep.importances() == {}


def test_importances(tmp_path: Path, trainer: Trainer) -> None:
    sweep = run(tmp_path, 7, sampler="random", prune=False)
    assert sweep.importances() == {}
    sweep.grow(40)
    assert sweep.work(node_dataset())
    found = sweep.importances()
    assert sum(found.values()) == pytest.approx(1.0)
    assert set(found) == set(sweep.plan.space.searched)
    assert list(found) == sorted(found, key=lambda name: -found[name])
    # The scores depend on these two and on nothing else.
    assert {"train.lr", "model.hidden_channels"} == set(list(found)[:2])


# --- the same command goes on ------------------------------------------------------------------


def test_more_trials_continue(tmp_path: Path, trainer: Trainer) -> None:
    sweep = run(tmp_path, 5, sampler="random")
    first = [(row.number, row.params) for row in sweep.queue.rows()]
    assert Sweep(sweep.plan, sweep.folder).work(node_dataset())  # nothing to do
    more = run(tmp_path, 9, sampler="random")
    rows = more.queue.rows()
    assert [(row.number, row.params) for row in rows[:5]] == first
    assert len([row for row in rows if row.finished]) == 9
    with pytest.raises(ValueError, match="`trials` must be at least 9, which this sweep was asked for before; got 5"):  # fmt: skip
        more.grow(5)
    with pytest.raises(ValueError, match="`trials` must be an integer of at least 1; got 0"):
        more.grow(0)


def test_what_is_drawn_depends_on_the_seed_alone(tmp_path: Path, trainer: Trainer) -> None:
    data = node_dataset()
    alone = run(tmp_path, 12, name="alone", sampler="random").queue.rows()
    many = [Sweep(plan(tmp_path, sampler="random"), tmp_path / "many") for _ in range(3)]
    many[0].grow(12)
    threads = [threading.Thread(target=sweep.work, args=(data,)) for sweep in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = many[0].queue.rows()
    assert {row.slot: row.params for row in together} == {row.slot: row.params for row in alone}
    other = run(tmp_path, 12, name="other", sampler="random", seed=1).queue.rows()
    assert [row.params for row in other] != [row.params for row in alone]


@pytest.mark.parametrize("seed", range(3))
def test_no_trial_is_lost_whoever_dies(tmp_path: Path, trainer: Trainer, seed: int) -> None:
    """Processes that die, stop and come back at random moments; in the end all slots are full."""
    draw, data = random.Random(seed), node_dataset()
    folder, settings = tmp_path / "sweep", plan(tmp_path, sampler="random", prune=False)
    Sweep(settings, folder).grow(12)
    deaths: dict[int, int] = {}
    for _ in range(200):
        sweep = Sweep(settings, folder)
        claims = [sweep.queue.claim("", sweep._suggest) for _ in range(draw.randint(1, 3))]
        taken = [claim for claim in claims if claim is not None]
        rows = sweep.queue.rows()
        assert sum(row.state == "running" for row in rows) == len(taken)
        draw.shuffle(taken)
        for claim in taken:
            row, fate = rows[claim.trial.number], draw.random()
            if fate < 0.3 and deaths.get(row.slot, 0) < 2:
                deaths[row.slot] = deaths.get(row.slot, 0) + 1
            elif fate < 0.5:
                claim.note(error="stopped")
                sweep.queue.end(claim, "fail")
            else:
                sweep._run(claim, data, lambda: False, together=False)
            claim.close()
        if not taken and sweep.queue.is_finished():
            break
    rows = Sweep(settings, folder).queue.rows()
    assert sorted(row.slot for row in rows if row.finished) == list(range(12))
    assert sum(deaths.values()) > 0
    assert {row.state for row in rows} == {"complete", "fail"}
    for row in rows:  # each slot has one point, however often it was tried
        (final,) = (r for r in rows if r.slot == row.slot and r.finished)
        assert row.params == final.params


def test_a_process_that_waits_takes_over(tmp_path: Path, trainer: Trainer) -> None:
    sweep = Sweep(plan(tmp_path), tmp_path / "sweep")
    sweep.grow(1)
    claim = sweep.queue.claim("victim", sweep._suggest)
    assert claim is not None
    other = Sweep(sweep.plan, sweep.folder)
    thread = threading.Thread(target=other.work, args=(node_dataset(),), kwargs={"poll_seconds": 0.01})  # fmt: skip
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    claim.close()
    thread.join(60)
    assert [row.state for row in other.queue.rows()] == ["fail", "complete"]
