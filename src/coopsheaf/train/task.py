"""What is learned: loss, metric and predictions of a task."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.data.metrics import METRICS, check_metric, metrics_of
from coopsheaf.train.metrics import Answers, compute, known

HIGHER_IS_BETTER = {name: metric.higher for name, metric in METRICS.items()}
KINDS = ("binary", "multiclass", "multilabel", "regression", "link")


@dataclass(frozen=True)
class Task:
    """Loss, metric and predictions.

    Targets are class numbers ``(n,)`` for binary and multiclass tasks, and ``(n,)`` or ``(n, k)``
    numbers, NaN where unknown, for multilabel and regression. For links they are ``(k, 1 + K)``, a
    row for each link: a one for itself, then zeros for non-edges with the same source.

    Args:
        kind: ``"binary"``, ``"multiclass"``, ``"multilabel"``, ``"regression"`` or ``"link"``.
        metric: what selects, one of :func:`~coopsheaf.data.metrics.metrics_of` the kind; always
            over a whole split.
    """

    kind: str
    metric: str

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, dict.fromkeys(KINDS))
        check_choice("metric", self.metric, METRICS)
        check_metric("metric", self.metric, self.kind)

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
        return compute(self.metric, self.answers(logits, y))

    def summary(self, logits: Tensor, y: Tensor, threshold: float = 0.5) -> dict[str, float]:
        """All metrics that fit the task, by name; NaN where one is not defined."""
        answers = self.answers(logits, y, threshold)
        return {name: compute(name, answers) for name in metrics_of(self.kind)}

    def answers(self, logits: Tensor, y: Tensor, threshold: float = 0.5) -> Answers:
        """Outputs beside what is true, as metrics take them."""
        # Double precision keeps large logits apart after the sigmoid.
        logits = logits.detach().double()
        predicted = None
        if self.kind == "multilabel":
            predicted = logits > 0
        elif self.kind in ("binary", "multiclass"):
            predicted = self.classes(logits, threshold)
        return Answers(self.kind, logits, y, predicted)

    def classes(self, logits: Tensor, threshold: float = 0.5) -> Tensor:
        """Predicted class numbers, ``(n,)``; of two classes the second, if it is more probable than
        the threshold."""
        if self.kind != "binary":
            return logits.argmax(-1)
        # As logits, of which there are more near 0 and 1 than probabilities.
        return (logits.squeeze(-1) > math.log(threshold / (1 - threshold))).long()

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


def _mean_of_known(distance: Callable[..., Tensor], logits: Tensor, y: Tensor) -> Tensor:
    """The mean distance of outputs from targets that are known."""
    if y.is_cpu:
        return distance(*known(logits, y))
    # Choosing them would wait for the device, which has to say how many they are.
    there, logits = ~torch.isnan(y), logits.reshape(y.shape)
    each = distance(logits, torch.where(there, y, 0.0).to(logits.dtype), reduction="none")
    return torch.where(there, each, 0.0).sum() / there.sum().clamp(min=1)
