"""What to say when a fit goes wrong, or goes nowhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coopsheaf.data.links import AnyDataset
from coopsheaf.train.beforehand import part_targets
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.task import Task

if TYPE_CHECKING:
    from coopsheaf.train.loop import FitResult

# A score so little above chance may be luck.
_LUCK = 0.02
# So few epochs say nothing.
_FEW = 5


def divergence(mean: float, epoch: int, sound: bool, config: TrainConfig) -> str:
    """Why a loss is not finite.

    Args:
        mean: the loss.
        epoch: from 0.
        sound: the first step of all had finite gradients: its numbers were no trouble.
        config: the settings.
    """
    if not sound:
        return (
            "the loss or its gradient is not finite before the first step, so that the learning "
            "rate is not to blame; look for very large numbers among features, targets and edge "
            "weights, and scale them down"
        )
    return (
        f"the loss became {mean} in epoch {epoch + 1}; lower `train.lr` (it is {config.lr:g}) or "
        "set `train.clip`"
    )


def endless_gradient(epoch: int, sound: bool, config: TrainConfig) -> str:
    """Why a gradient that was to be clipped has no finite norm; arguments as above."""
    if not sound:
        return divergence(math.nan, epoch, sound, config)
    return (
        f"the norm of the gradient is not finite in epoch {epoch + 1}; scale very large "
        f"features, targets or edge weights down, or lower `train.lr` (it is {config.lr:g})"
    )


def remark(
    task: Task,
    dataset: AnyDataset,
    split: int,
    result: FitResult,
    config: TrainConfig,
) -> str | None:
    """A word on a training that came to nothing; ``None`` if it came to something."""
    targets = part_targets(dataset, "train", split)
    chance, score = chance_score(task, targets), result.scores["train"]
    if len(result.history) < _FEW or math.isnan(chance) or math.isnan(score):
        return None
    if task.better(score, chance + _LUCK):
        return None
    text = (
        f"the {task.metric} on the training part, {score:.4f}, is no better than chance "
        f"({chance:.4f})"
    )
    first, *later = (row[1] for row in result.history)
    if min(later) >= first:
        text += (
            f"; the loss never fell below its first value, {first:.3g}, and ended at "
            f"{later[-1]:.3g}: lower `train.lr` (it is {config.lr:g})"
        )
    return text


def chance_score(task: Task, targets: Tensor) -> float:
    """The score of whoever always says the same; NaN where there is no simple one."""
    if task.metric == "auroc":
        return 0.5
    if task.metric == "accuracy" and targets.numel():
        return torch.bincount(targets).max().item() / targets.numel()
    if task.metric == "balanced_accuracy" and targets.numel():
        return 1 / len(targets.unique())
    return 0.0 if task.metric == "r2" else math.nan
