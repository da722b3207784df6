"""What is learned: loss, metric and predictions of a task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.data.links import LINK_METRICS
from coopsheaf.train.curves import average_precision, roc_area

HIGHER_IS_BETTER = {"auroc": True, "accuracy": True, "ap": True, "mae": False, "mrr": True}
KINDS = ("binary", "multiclass", "multilabel", "regression", "link")


@dataclass(frozen=True)
class Task:
    """Loss, metric and predictions.

    Targets are class numbers ``(n,)`` for binary and multiclass tasks, and ``(n,)`` or ``(n, k)``
    numbers, NaN where unknown, for multilabel and regression. For links they are ``(k, 1 + K)``, a
    row for each link: a one for itself, then zeros for non-edges with the same source.

    Args:
        kind: ``"binary"``, ``"multiclass"``, ``"multilabel"``, ``"regression"`` or ``"link"``.
        metric: ``"auroc"``, ``"accuracy"``, ``"ap"``, ``"mae"`` or, for links, ``"mrr"``; always
            over a whole split.
    """

    kind: str
    metric: str

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, dict.fromkeys(KINDS))
        check_choice("metric", self.metric, HIGHER_IS_BETTER)
        if self.kind == "link":
            check_choice("metric", self.metric, LINK_METRICS)
        elif self.metric == "mrr":
            raise ValueError(f"`metric` 'mrr' goes with links; the task is {self.kind!r}")

    def better(self, score: float, best: float | None) -> bool:
        """Strictly better, so that the first of equals is kept. NaN is never better."""
        if score != score:
            return False
        if best is None:
            return True
        return score > best if HIGHER_IS_BETTER[self.metric] else score < best

    def loss(self, logits: Tensor, y: Tensor, class_weight: Tensor | None = None) -> Tensor:
        """Mean loss of ``(n, out)`` logits."""
        if self.kind == "multiclass":
            return F.cross_entropy(logits, y, weight=class_weight)
        if self.kind == "binary":
            ratio = None if class_weight is None else class_weight[1] / class_weight[0]
            targets = y.to(logits.dtype)
            return F.binary_cross_entropy_with_logits(logits.squeeze(-1), targets, pos_weight=ratio)
        distance: Any = F.l1_loss
        if self.kind in ("multilabel", "link"):
            distance = F.binary_cross_entropy_with_logits
        return _mean_of_known(distance, logits, y)

    def mass(self, y: Tensor, class_weight: Tensor | None = None) -> Tensor | float:
        """What the mean in :meth:`loss` is divided by: so many samples, or the sum of weights.

        A number where it can be had without waiting for a device, otherwise a tensor there.
        """
        if self.kind == "binary" or (self.kind == "multiclass" and class_weight is None):
            return float(len(y))
        if y.numel() == 0:
            return 0.0
        mass = class_weight[y].sum() if class_weight is not None else (~torch.isnan(y)).sum()
        return float(mass) if mass.is_cpu else mass

    def score(self, logits: Tensor, y: Tensor) -> float:
        """The metric of ``(n, out)`` logits; NaN if it is not defined."""
        # Double precision keeps large logits apart after the sigmoid.
        logits = logits.detach().double()
        if y.shape[0] == 0:
            return float("nan")
        if self.metric == "accuracy":
            return (self.classes(logits) == y).double().mean().item()
        if self.metric == "mae":
            outputs, targets = _known(logits, y.double())
            return (outputs - targets).abs().mean().item()
        if self.metric == "mrr":
            return _mean_reciprocal_rank(logits)
        if self.kind == "link":  # one decision, whatever the source
            logits, y = logits.reshape(-1, 1), y.reshape(-1)
        function = roc_area if self.metric == "auroc" else average_precision
        columns = y if y.dim() == 2 else y.unsqueeze(-1)
        scores = []
        for k in range(columns.shape[1]):
            value, label = _known(logits[:, k], columns[:, k].double())
            if 0 < label.sum() < label.numel():  # undefined with one class only
                scores.append(function(value.sigmoid(), label.long()).item())
        return sum(scores) / len(scores) if scores else float("nan")

    def classes(self, logits: Tensor) -> Tensor:
        """Predicted class numbers, ``(n,)``."""
        return (logits.squeeze(-1) > 0).long() if self.kind == "binary" else logits.argmax(-1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """``(n, classes)`` for classes, ``(n, k)`` for labels, those of the logits for links."""
        if self.kind == "multiclass":
            return logits.softmax(-1)
        if self.kind == "binary":
            positive = logits.reshape(-1, 1).sigmoid()
            return torch.cat([1 - positive, positive], dim=-1)
        if self.kind in ("multilabel", "link"):
            return logits.sigmoid()
        raise ValueError("a regression has no probabilities; use the outputs themselves")

    def class_weight(self, y: Tensor) -> Tensor:
        """Inverse frequencies of the classes among ``y``, with mean 1 over the samples."""
        if self.kind not in ("binary", "multiclass"):
            raise ValueError(f"`class_weights` needs classes; the task is {self.kind!r}")
        counts = torch.bincount(y, minlength=2).clamp(min=1).to(torch.get_default_dtype())
        return y.numel() / (counts.numel() * counts)


def _mean_reciprocal_rank(logits: Tensor) -> float:
    """Of the first of each row, ``(k, 1 + K)``; among equals it has the mean of their ranks."""
    first, others = logits[:, :1], logits[:, 1:]
    if others.shape[1] == 0 or logits.isnan().any():
        return float("nan")
    rank = 1 + (others > first).sum(1) + (others == first).sum(1) / 2
    return (1 / rank.double()).mean().item()


def _mean_of_known(distance: Callable[..., Tensor], logits: Tensor, y: Tensor) -> Tensor:
    """The mean distance of outputs from targets that are known."""
    if y.is_cpu:
        return distance(*_known(logits, y))
    # Choosing them would wait for the device, which has to say how many they are.
    known, logits = ~torch.isnan(y), logits.reshape(y.shape)
    each = distance(logits, torch.where(known, y, 0.0).to(logits.dtype), reduction="none")
    return torch.where(known, each, 0.0).sum() / known.sum().clamp(min=1)


def _known(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Flat outputs and targets where the target is known."""
    if logits.shape != y.shape:
        logits = logits.reshape(y.shape)
    known = ~torch.isnan(y)
    return logits[known], y[known].to(logits.dtype)
