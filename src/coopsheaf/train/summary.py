"""What a run is worth by all metrics that fit its task, with its decisions: once, at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.train.config import TrainConfig
from coopsheaf.train.decisions import Decision, decide
from coopsheaf.train.feed import Feed
from coopsheaf.train.metrics import confusion
from coopsheaf.train.task import Task
from coopsheaf.train.world import World

SUMMARISED = ("val", "test")
MOST_CLASSES = 40  # of a table of true and predicted classes that anybody reads


@dataclass(frozen=True)
class Summary:
    """What is known of a part of the data.

    Args:
        metrics: all that fit, by name; NaN where one is not defined.
        confusion: counts of true classes (rows) by predicted ones; empty if there are no classes or
            more than 40.
    """

    metrics: dict[str, float]
    confusion: list[list[int]]

    def to_plain(self) -> dict[str, Any]:
        return {"metrics": self.metrics, "confusion": self.confusion}


def summarise(task: Task, decision: Decision, logits: Tensor, y: Tensor) -> Summary:
    """All metrics of ``(n, out)`` outputs as a run came to decide about them."""
    logits = decision.adjust(logits.detach().double())
    metrics = task.summary(logits, y, decision.threshold)
    classes = {"binary": 2, "multiclass": logits.shape[-1]}.get(task.kind, math.inf)
    if classes > MOST_CLASSES or len(y) == 0:
        return Summary(metrics, [])
    predicted = task.classes(logits, decision.threshold)
    return Summary(metrics, confusion(predicted, y, int(classes)).tolist())


@torch.no_grad()
def conclude(
    model: nn.Module, feed: Feed, task: Task, config: TrainConfig, world: World
) -> dict[str, Any]:
    """What ``run.json`` says of decisions and metrics, found with the parameters that were kept.

    Args:
        model: the trained network.
        feed, task, config, world: of the run.
    """
    model.eval()
    with world.fabric.autocast():
        outputs = world.join(feed.outputs(model, SUMMARISED), SUMMARISED)
    weight = task.class_weight(feed.train_targets()) if config.class_weights else None
    decision = decide(task, config, *outputs["val"], weight)
    parts = {part: summarise(task, decision, *pair) for part, pair in outputs.items()}
    said = {"summary": {part: found.to_plain() for part, found in parts.items()}}
    return said if decision == Decision() else said | {"decision": decision.to_plain()}


def read_summary(info: Mapping[str, Any]) -> dict[str, Summary]:
    """The summaries in ``run.json`` by part; runs of earlier versions have none."""
    return {
        part: Summary(
            {name: math.nan if v is None else v for name, v in plain["metrics"].items()},
            plain["confusion"],
        )
        for part, plain in info.get("summary", {}).items()
    }
