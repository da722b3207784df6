"""Evaluations: how often, of which parts of the split, and what they find."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import nn

from coopsheaf.data.dataset import PARTS
from coopsheaf.train.config import AUTO, TrainConfig
from coopsheaf.train.feed import Feed
from coopsheaf.train.task import Task
from coopsheaf.train.world import World

# Of "auto": a forward pass takes a third of a training step, about, on all graphs and networks that
# were measured (`benchmarks/evaluation.py`), and evaluations shall take a tenth of the time.
STEP_SHARE, TIME_SHARE = 1 / 3, 0.1
EVALUATIONS = 50  # of a run, at least,
PER_PATIENCE = 10  # and of a stretch as long as the patience


def epochs_between(config: TrainConfig, share: Callable[[], float]) -> int:
    r"""How many epochs lie between two evaluations.

    What the settings say. With ``"auto"``, where an evaluation computes E nodes or graphs and an
    epoch trains on T of them,

    .. math:: k = \lceil 3 E / T \rceil

    so that evaluations take about a tenth of the time, but at most a tenth of the patience and a
    fiftieth of the epochs. A plateau schedule looks at every epoch. Nothing of this depends on a
    clock: a run that is resumed evaluates at the same epochs.

    Args:
        config: the settings.
        share: finds E / T, if somebody has to know.
    """
    if not isinstance(config.eval_every, str):
        return config.eval_every
    assert config.eval_every == AUTO
    if config.schedule == "plateau":
        return 1
    # k epochs of time 1 and an evaluation of time c: c / (k + c) is at most the wanted share.
    wanted = math.ceil(round(STEP_SHARE * share() * (1 / TIME_SHARE - 1), 6))
    limits = [wanted, config.epochs // EVALUATIONS]
    if config.patience:
        limits.append(config.patience // PER_PATIENCE)
    return max(1, min(limits))


def regular_parts(feed: Feed, config: TrainConfig) -> tuple[str, ...]:
    """The parts that every evaluation scores; the others are scored once, when the run has ended.

    Validation decides. The rest comes with it where one forward pass is over all parts.
    """
    return PARTS if feed.one_pass or config.eval_parts == "all" else ("val",)


@torch.no_grad()
def evaluate(
    model: nn.Module, feed: Feed, task: Task, parts: Sequence[str] = PARTS
) -> dict[str, float]:
    """The metric on some whole parts of the split."""
    model.eval()
    return {part: task.score(*pair) for part, pair in feed.outputs(model, parts).items()}


@torch.no_grad()
def evaluate_together(
    model: nn.Module, feed: Feed, task: Task, world: World, parts: Sequence[str]
) -> dict[str, float]:
    """The same by all processes of a run; with the validation part also its loss, ``val_loss``.

    The network is left as it evaluates, with nothing kept for a step back.
    """
    model.eval()
    with world.fabric.autocast():
        # The network itself: wrapped for several processes, it would wait for all of them.
        outputs = world.join(feed.outputs(model, parts), parts)
    scores = {part: task.score(*pair) for part, pair in outputs.items()}
    if "val" in outputs:
        logits, y = outputs["val"]
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        scores["val_loss"] = task.loss(logits, y).item() if len(y) else math.nan
    return scores
