"""What to say when a fit goes wrong, or goes nowhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.task import Task

if TYPE_CHECKING:
    from coopsheaf.train.loop import FitResult

# A score so little above chance may be luck.
_LUCK = 0.02
# So few epochs say nothing.
_FEW = 5


def has_finite_gradients(model: nn.Module) -> bool:
    """Whether a first step leaves finite parameters behind."""
    gradients = (parameter.grad for parameter in model.parameters())
    return all(bool(grad.isfinite().all()) for grad in gradients if grad is not None)


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


@contextmanager
def clipping(epoch: int, sound: bool, config: TrainConfig) -> Iterator[None]:
    """A norm that is not finite, which PyTorch does not clip, becomes advice."""
    try:
        yield
    except RuntimeError as error:
        if "non-finite" not in str(error):
            raise
        if not sound:
            raise ValueError(divergence(math.nan, epoch, sound, config)) from None
        raise ValueError(
            f"the norm of the gradient is not finite in epoch {epoch + 1}; scale very large "
            f"features, targets or edge weights down, or lower `train.lr` (it is {config.lr:g})"
        ) from None


def remark(
    task: Task,
    dataset: AnyDataset,
    split: int,
    result: FitResult,
    config: TrainConfig,
) -> str | None:
    """A word on a training that came to nothing; ``None`` if it came to something."""
    targets = _train_targets(dataset, split)
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


def _train_targets(dataset: AnyDataset, split: int) -> Tensor:
    if isinstance(dataset, NodeDataset):
        return dataset.y[dataset.train[split]]
    if isinstance(dataset, LinkDataset):
        return torch.ones(dataset.train.shape[1])
    return torch.cat([dataset.graphs[int(i)].y for i in dataset.train])


def chance_score(task: Task, targets: Tensor) -> float:
    """The score of whoever always says the same; NaN where there is no simple one."""
    if task.metric == "auroc":
        return 0.5
    if task.metric == "accuracy" and targets.numel():
        return torch.bincount(targets).max().item() / targets.numel()
    return math.nan
