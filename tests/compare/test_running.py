"""Whole comparisons: same folds, same budgets, resumed without a fit too many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from compare.tiny import dataset, tables

from coopsheaf.compare import compare_models, load_comparison
from coopsheaf.compare.boosted import TreeContestant
from coopsheaf.compare.data import Division, given_folds
from coopsheaf.compare.lineup import USUAL, find_contestants
from coopsheaf.compare.networks import NetworkContestant
from coopsheaf.compare.running import Match, Step
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.records import find_records

QUICK: dict[str, Any] = {"epochs": 2, "trials": 2, "folds": 3}


def test_the_graph_is_found_where_it_is_all_that_helps(tmp_path: Path) -> None:
    nodes, edges = tables(120)
    comparison = compare_models(
        nodes, edges, target="label", models=["boosted-columns", "boosted-neighbours"], folds=4, trials=1, out=tmp_path / "c"
    )  # fmt: skip
    assert comparison.model("boosted-neighbours").mean == pytest.approx(1.0, abs=0.02)
    assert comparison.model("boosted-columns").mean < 0.8
    assert "The graph adds 0." in comparison.sentence
    assert load_comparison(tmp_path / "c") == comparison


def test_all_the_usual_models_and_what_is_recorded_is_not_run_again(tmp_path: Path) -> None:
    nodes, edges = tables()
    steps: list[Step] = []
    first = compare_models(nodes, edges, target="label", **QUICK, out=tmp_path / "c", report=steps.append)  # fmt: skip
    assert [model.name for model in first.models] == list(USUAL)
    assert len(steps) == first.plan.fits == 3 * 6 * 2
    assert {(step.model, step.fold, step.trial) for step in steps} == {
        (name, fold, trial) for name in USUAL for fold in range(3) for trial in range(2)
    }
    records = find_records(tmp_path / "c" / "records")
    assert len(records) == 36
    assert {record.dataset_checksum for record in records} == {records[0].dataset_checksum}
    assert not any((tmp_path / "c" / "runs").glob("[!.]*"))  # networks are not kept
    again = compare_models(nodes, edges, target="label", **QUICK, out=tmp_path / "c")
    assert again == first
    assert find_records(tmp_path / "c" / "records") == records
    more = compare_models(nodes, edges, target="label", **{**QUICK, "trials": 3}, models=["mlp"], out=tmp_path / "c")  # fmt: skip
    assert more.model("mlp").fits == 9
    assert len(find_records(tmp_path / "c" / "records")) == 36 + 3


def test_a_stopped_comparison_goes_on_to_the_same_end(tmp_path: Path) -> None:
    folds = given_folds(dataset(), Division())
    contestants = find_contestants(["csnn", "boosted-columns"], DataConfig(), settings=["train.epochs=4"])  # fmt: skip
    match = Match(folds, contestants, trials=2)
    whole = list(match.run(tmp_path / "whole"))
    told = iter([False] * 7)
    cut = list(match.run(tmp_path / "cut", should_stop=lambda: next(told, True)))
    assert 0 < len(cut) < len(whole)
    assert match.missing(tmp_path / "cut") == len(whole) - len(cut)
    assert len(list(match.run(tmp_path / "cut"))) == len(whole)
    a, b = (match.conclude(tmp_path / name) for name in ("whole", "cut"))
    assert [m.test for m in a.models] == [m.test for m in b.models]


def test_budgets_are_equal_and_more_trials_begin_with_the_same() -> None:
    for who in find_contestants(USUAL, DataConfig()):
        few, many = who.draw(2, seed=0), who.draw(5, seed=0)
        assert len(many) == len({trial.hash for trial in many}) == 5
        assert [trial.hash for trial in few] == [trial.hash for trial in many[:2]]
        assert few[0].changed == {}
        assert few[1].changed
        assert who.draw(5, seed=1)[1].hash != many[1].hash


def test_what_is_set_is_not_searched() -> None:
    (who,) = find_contestants(["csnn"], DataConfig(), settings=["model.num_layers=1", "train.lr=0.5"])  # fmt: skip
    for trial in who.draw(6, seed=0):
        assert trial.point.model.num_layers == 1
        assert trial.point.train.lr == 0.5


def test_who_sees_the_graph() -> None:
    seen = {who.name: who.sees_graph for who in find_contestants((*USUAL, "resnet"), DataConfig())}
    assert {name for name, sees in seen.items() if not sees} == {"mlp", "resnet", "boosted-columns"}


def test_nobody_is_given_what_it_cannot_use(tmp_path: Path) -> None:
    data = dataset(edge_weight=torch.rand(60), edge_attr=torch.randn(60, 2))
    folds = given_folds(data, Division(splits=(0,)))
    names = ["csnn", "sage-plain", "nsd-diag", "mlp"]
    contestants = find_contestants(names, DataConfig(), settings=["train.epochs=1"])
    match = Match(folds, contestants, trials=1)
    assert any("sage-plain does not use the features of edges and the weights" in r for r in match.plan.remarks)  # fmt: skip
    assert any("nsd-diag does not use the features of edges and the direction" in r for r in match.plan.remarks)  # fmt: skip
    assert not any(r.startswith(("csnn", "mlp")) for r in match.plan.remarks)
    assert len(list(match.run(tmp_path / "c"))) == 4


def test_settings_with_which_training_fails_are_tried_and_have_no_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import coopsheaf.compare.networks as networks

    real = networks.bench

    def fail(recipe: Any, *arguments: Any, **options: Any) -> Any:
        if recipe.name.endswith("trial 1"):
            raise ValueError("the loss became nan")
        yield from real(recipe, *arguments, **options)

    monkeypatch.setattr(networks, "bench", fail)
    folds = given_folds(dataset(), Division())
    match = Match(folds, find_contestants(["mlp"], DataConfig(), settings=["train.epochs=2"]), trials=2)  # fmt: skip
    steps = list(match.run(tmp_path / "c"))
    assert [step.record.val is None for step in steps] == [False, True] * 2
    assert "the loss became nan" in steps[1].record.config["recipe"]["source"]
    assert match.missing(tmp_path / "c") == 0
    comparison = match.conclude(tmp_path / "c")
    assert comparison.model("mlp").failed == 2
    assert set(comparison.model("mlp").chosen.values()) == {0}


def test_regression_and_another_metric() -> None:
    found = compare_models(dataset(task="regression"), models=["mlp", "boosted-columns"], trials=1, epochs=3, metric="rmse")  # fmt: skip
    assert found.metric == "rmse"
    assert found.model("boosted-columns").mean is not None
    assert "RMSE" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["gcm-plain"]}, r"`models` must be among .*; got 'gcm-plain' \(did you mean 'gcn-plain'\?\)"),
        ({"models": ["mlp", "mlp"]}, "`models` must have each name once"),
        ({"models": []}, "`models` must name at least one model"),
        ({"metric": "f2"}, "`metric` must be one of"),
        ({"metric": "mae"}, "`metric` must be one of .* for the task 'binary'; got 'mae'"),
        ({"trials": 0}, "`trials` must be an integer of at least 1; got 0"),
        ({"max_fits": 5}, "`max_fits` must be at least the number of fits, 24"),
        ({"settings": {"train.metric": "ap"}}, "say `metric` instead"),
        ({"settings": {"data.direction": "reversed"}}, "settings of data are for datasets by name"),
        ({"target": "label"}, "a dataset stands alone"),
        ({"splits": [9]}, "`splits` must be below 2 for tiny; got 9"),
    ],
)  # fmt: skip
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_models(dataset(), **{"trials": 2, **options})


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    import coopsheaf.extras as extras

    def missing(module: str) -> Any:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(ValueError, match=r"boosted trees need sklearn, which is not installed: pip install 'coopsheaf\[compare\]'"):  # fmt: skip
        compare_models(dataset())
    assert compare_models(dataset(), models=["mlp"], trials=1, epochs=1).is_complete


def test_kinds_of_contestants() -> None:
    network, trees = find_contestants(["mlp", "boosted-columns"], DataConfig(), class_weights=True)
    assert isinstance(network, NetworkContestant)
    assert isinstance(trees, TreeContestant)
    assert network.recipe.train.class_weights
    assert trees.settings.class_weights
    assert network.seed == trees.seed
