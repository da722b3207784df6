"""The metric of a run is that of its settings, or of its data; what cannot end well does not begin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from train.small import graph_dataset, link_dataset, node_dataset, recipe

from coopsheaf.data.metrics import METRICS, metrics_of
from coopsheaf.train.beforehand import check_splits, part_targets, task_of
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.runner import make_record


def test_the_setting_comes_before_the_metric_of_the_data() -> None:
    dataset = node_dataset(task="binary")
    assert task_of(TrainConfig(), dataset).metric == "auroc"
    assert task_of(TrainConfig(metric="log_loss"), dataset).metric == "log_loss"
    with pytest.raises(ValueError, match=r"`train.metric` must be one of auroc.*; got 'rmse'"):
        task_of(TrainConfig(metric="rmse"), dataset)
    with pytest.raises(ValueError, match=r"`metric` must be one of .*got 'acuracy' \(did you mean"):
        TrainConfig(metric="acuracy")


def test_settings_without_a_metric_are_called_what_they_were() -> None:
    """And another metric is another run: it may choose another epoch."""
    assert recipe().hash() == recipe(metric=None).hash()
    assert "metric" not in recipe().to_mapping()["train"]
    assert recipe(metric="accuracy").hash() != recipe().hash()


@pytest.mark.parametrize("metric", metrics_of("binary"))
def test_the_best_epoch_is_best_by_the_metric(metric: str, tmp_path: Path) -> None:
    """Down for losses, up for scores, at the first epoch that attains the best."""
    dataset = node_dataset(80, task="binary")
    run, result = run_split(recipe(metric=metric, epochs=25), dataset, out=tmp_path / "run")
    vals = [row[3] for row in result.history]
    best = max(vals) if METRICS[metric].higher else min(vals)
    assert result.scores["val"] == best
    assert result.best_epoch == 1 + vals.index(best)
    assert len(set(vals)) > 1
    assert run.info["metric"] == make_record(run, result).metric == metric
    again = load_run(tmp_path / "run")
    assert again.task.metric == metric
    assert again.notes == ()


@pytest.mark.parametrize(
    ("dataset", "metric"),
    [
        (link_dataset(), "hits@3"),
        (graph_dataset(), "macro_f1"),
        (node_dataset(task="regression"), "r2"),
        (node_dataset(), "balanced_accuracy"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.task,
)
def test_every_task_takes_its_metrics(dataset: object, metric: str) -> None:
    run, result = run_split(recipe(metric=metric, epochs=2), dataset)  # type: ignore[arg-type]
    assert run.task.metric == metric
    assert result.scores["val"] == result.scores["val"]


def test_a_plateau_falls_with_a_loss() -> None:
    """The learning rate is halved when the loss stalls, not while it falls."""
    dataset = node_dataset(80, task="binary")
    options = {"metric": "log_loss", "schedule": "plateau", "plateau_patience": 1, "epochs": 8}
    _, falling = run_split(recipe(**options), dataset)
    _, constant = run_split(recipe(**(options | {"schedule": "none"})), dataset)
    vals = [row[3] for row in constant.history]
    assert vals == sorted(vals, reverse=True)  # it falls all the time, so nothing is halved
    assert [row[3] for row in falling.history] == vals


def test_one_class_in_validation_is_said_before_training(tmp_path: Path) -> None:
    dataset = replace(node_dataset(task="binary"), class_names=("no", "yes"))
    mask = dataset.val.clone()
    mask[1] &= dataset.y == 0
    dataset = replace(dataset, val=mask)
    match = (
        r"metric, auroc, is not defined on split 1 of small: its \d+ validation targets are all of "
        r"the class 'no'; leave the split out, or set `train.metric` to accuracy or log_loss or "
    )
    with pytest.raises(ValueError, match=match):
        check_splits(TrainConfig(), dataset, [0, 1])
    with pytest.raises(ValueError, match="not defined on split 1"):
        run_split(recipe(), dataset, 1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    check_splits(TrainConfig(), dataset, [0])
    check_splits(TrainConfig(metric="accuracy"), dataset, [0, 1])


def test_other_validation_parts_that_say_nothing() -> None:
    numbers = node_dataset(task="regression")
    constant = replace(numbers, y=torch.ones(len(numbers.y)))
    with pytest.raises(ValueError, match=r"r2, is not defined .*all the same.*to mae or rmse$"):
        check_splits(TrainConfig(metric="r2"), constant, [0])
    empty = replace(numbers, val=torch.zeros_like(numbers.val))
    with pytest.raises(ValueError, match=r"it has no validation part; leave the split out$"):
        check_splits(TrainConfig(), empty, [0])


def test_targets_of_parts() -> None:
    dataset = node_dataset()
    assert torch.equal(part_targets(dataset, "val", 1), dataset.y[dataset.val[1]])
    links = link_dataset()
    assert part_targets(links, "val", 0).shape == (16, 1 + links.val_negatives.shape[1])
    assert part_targets(links, "train", 0).shape == (links.train.shape[1], 2)
    graphs = graph_dataset()
    assert part_targets(graphs, "test", 0).shape == (6, 2)
