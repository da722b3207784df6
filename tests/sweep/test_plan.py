"""Plans of sweeps: read back, told apart, kept to their folder."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from sweep.sweeps import SPACE, plan, space
from train.small import node_dataset, recipe

from coopsheaf.sweep.plan import SweepError, load_plan, make_plan, plan_from_plain
from coopsheaf.sweep.search import Sweep


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    settings = plan(tmp_path, seed=7, sampler="random", prune=False, splits=(1,))
    assert plan_from_plain(json.loads(json.dumps(settings.to_plain())), "here") == settings
    sweep = Sweep(settings, tmp_path / "sweep")
    assert load_plan(sweep.folder) == settings
    assert load_plan(sweep.folder).identity == settings.identity


@pytest.mark.parametrize("change", ["space", "seed", "sampler", "splits", "prune", "data", "recipe"])  # fmt: skip
def test_another_plan_is_refused(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "sweep"
    first = plan(tmp_path)
    Sweep(first, folder)
    assert plan(tmp_path).identity == first.identity
    other = {
        "space": lambda: plan(tmp_path, SPACE.replace("[2, 4]", "[2, 8]")),
        "seed": lambda: plan(tmp_path, seed=1),
        "sampler": lambda: plan(tmp_path, sampler="random"),
        "splits": lambda: plan(tmp_path, splits=(0,)),
        "prune": lambda: plan(tmp_path, prune=False),
        "data": lambda: plan(tmp_path, dataset=replace(node_dataset(), checksum="other")),
        "recipe": lambda: replace(first, recipe=first.recipe.set("train.epochs=3")),
    }[change]()
    with pytest.raises(SweepError, match="holds another sweep"):
        Sweep(other, folder)
    assert load_plan(folder) == first


def test_folders_that_are_not_sweeps(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with pytest.raises(SweepError, match=r"not a sweep \(there is no sweep\.json in it\)"):
        load_plan(folder)
    folder.mkdir()
    (folder / "thesis.tex").write_text("")
    with pytest.raises(SweepError, match="holds files and no sweep"):
        Sweep(plan(tmp_path), folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    for text in ("", "[]", "{}", '{"plan": {}}', '{"plan": 3, "identity": ""}'):
        (folder / "sweep.json").write_text(text)
        with pytest.raises(SweepError, match="not a sweep of coopsheaf"):
            Sweep(plan(tmp_path), folder)


def test_a_plan_that_was_changed_is_refused(tmp_path: Path) -> None:
    sweep = Sweep(plan(tmp_path), tmp_path / "sweep")
    file = sweep.folder / "sweep.json"
    file.write_text(file.read_text().replace('"low": 0.001', '"low": 0.002'))
    with pytest.raises(SweepError, match="was changed"):
        load_plan(sweep.folder)


def test_other_data_is_refused(tmp_path: Path) -> None:
    sweep = Sweep(plan(tmp_path), tmp_path / "sweep")
    with pytest.raises(SweepError, match="is a sweep of other data"):
        sweep.work(replace(node_dataset(), checksum="other"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "best"}, "`sampler` must be one of 'tpe', 'random', 'grid'; got 'best'"),
        ({"seed": -1}, "`seed` must be an integer of at least 0; got -1"),
        ({"splits": ()}, "`splits` must name at least one split"),
        ({"sampler": "grid"}, "`sampler` grid needs lists, or ranges with a step"),
    ],
)
def test_bad_plans(tmp_path: Path, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        plan(tmp_path, **options)


def test_planning_leaves_the_random_state(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    plan(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_metric_of_a_sweep_is_chosen_not_searched(tmp_path: Path) -> None:
    with_metric = SPACE + '\nmetric = ["accuracy", "log_loss"]\n'
    with pytest.raises(ValueError, match=r"`train.metric` says which trial is best and cannot be"):
        plan(tmp_path, with_metric)
    base = recipe(epochs=2, metric="log_loss")
    chosen = make_plan(base, space(tmp_path, SPACE, base), node_dataset(), [0])
    assert chosen.metric == "log_loss"
    assert not chosen.maximise
    assert plan(tmp_path).maximise
    alike = replace(node_dataset(), y=torch.zeros(40, dtype=torch.int64))
    base = recipe(metric="macro_f1")
    with pytest.raises(ValueError, match="macro_f1, is not defined on split 1"):
        make_plan(base, space(tmp_path, SPACE, base), alike, [1])
