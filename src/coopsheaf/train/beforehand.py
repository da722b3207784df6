"""What can be known to go wrong before a fit begins, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.metrics import check_metric, metrics_of
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.decisions import CALIBRATED
from coopsheaf.train.metrics import compute
from coopsheaf.train.task import Task
from coopsheaf.train.thresholds import parse_rule


def task_of(config: TrainConfig, dataset: AnyDataset) -> Task:
    """The task of a dataset, with the metric that the settings choose or else its own."""
    if config.metric is not None:
        check_metric("train.metric", config.metric, dataset.task)
    return Task(dataset.task, config.metric or dataset.metric)


def part_targets(dataset: AnyDataset, part: str, split: int) -> Tensor:
    """The targets of a part of a split, as :class:`Task` has them."""
    if isinstance(dataset, NodeDataset):
        mask: Tensor = getattr(dataset, part)[split]
        return dataset.y[mask]
    if isinstance(dataset, LinkDataset):
        links = getattr(dataset, part).shape[1]
        others = 1 if part == "train" else getattr(dataset, f"{part}_negatives").shape[1]
        return torch.eye(1, 1 + others).expand(links, -1)
    chosen: Tensor = getattr(dataset, part)
    return dataset.stack("y")[chosen] if chosen.numel() else torch.empty(0)


def check_splits(config: TrainConfig, dataset: AnyDataset, splits: Iterable[int]) -> None:
    """Refuse settings that cannot come to a good end on one of some splits.

    Raises:
        ValueError: one line that names the split, and what would do.
    """
    task = task_of(config, dataset)
    _check_decisions(config, task.kind)
    for split in splits:
        y = part_targets(dataset, "val", split)
        fit = _defined(task, y, dataset)
        if task.metric not in fit:
            others = f", or set `train.metric` to {' or '.join(fit)}" if fit else ""
            raise ValueError(
                f"the validation metric, {task.metric}, is not defined on split {split} of "
                f"{dataset.name}: {_what_is_there(y, dataset)}; leave the split out{others}"
            )
        needs = _needs_both(config)
        if needs and task.kind != "multilabel" and len(y.unique()) < 2:
            raise ValueError(
                f"{needs} looks at validation, which must have two classes; on split {split} of "
                f"{dataset.name} {_what_is_there(y, dataset)}: leave the split out, or {needs}"
            )


def _check_decisions(config: TrainConfig, kind: str) -> None:
    """Thresholds are for two classes, probabilities for whatever has some."""
    if config.threshold is not None and kind != "binary":
        raise ValueError(
            f"`train.threshold` is for two classes, and the task is {kind!r}; leave it out; got "
            f"{config.threshold!r}"
        )
    if config.calibrate and kind not in CALIBRATED:
        raise ValueError(
            f"`train.calibrate` is for probabilities of classes, and the task is {kind!r}; leave "
            "it out"
        )


def _needs_both(config: TrainConfig) -> str:
    """What the settings ask for and cannot be had from one class; empty if nothing."""
    if config.threshold is not None and not isinstance(parse_rule(config.threshold), float):
        return f"`train.threshold` {config.threshold!r}"
    return "`train.calibrate`" if config.calibrate else ""


def _defined(task: Task, y: Tensor, dataset: AnyDataset) -> list[str]:
    """The metrics that can be computed with these targets, whatever the outputs are."""
    width = y.shape[-1] if task.kind == "link" else dataset.out_channels
    answers = task.answers(torch.zeros(len(y), width), y)
    values = {name: compute(name, answers) for name in metrics_of(task.kind)}
    return [name for name, value in values.items() if value == value]


def _what_is_there(y: Tensor, dataset: AnyDataset) -> str:
    """The targets of a validation part in a few words."""
    if len(y) == 0:
        return "it has no validation part"
    if dataset.task in ("binary", "multiclass"):
        found = y.unique().tolist()
        names = [dataset.class_names[k] if dataset.class_names else str(k) for k in found]
        if len(names) == 1:
            return f"its {len(y)} validation targets are all of the class {names[0]!r}"
        return f"its {len(y)} validation targets have {len(names)} classes"
    return f"its {len(y)} validation targets are too few, or all the same"
