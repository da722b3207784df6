r"""Metrics over a whole part of a split: pure functions, in double precision.

Whatever decides takes predicted classes, whatever trusts takes logits, from which probabilities and
their logarithms follow without loss. A metric that is not defined for the targets at hand, such as
an area under a curve where there is one class only, is NaN.

What each is called and which way is better: :data:`coopsheaf.data.metrics.METRICS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.train.curves import average_precision, recall_at_precision, roc_area

BINS = 15  # of the calibration error
PRECISION = 0.9  # of "recall@p90"


@dataclass(frozen=True)
class Answers:
    """What a network says of some nodes, graphs or links, and what is true of them.

    Args:
        kind: the kind of task.
        logits: ``(n, out)`` in double precision.
        y: targets as :class:`~coopsheaf.train.Task` has them.
        predicted: ``(n,)`` classes or ``(n, k)`` labels that hold; ``None`` for other tasks.
    """

    kind: str
    logits: Tensor
    y: Tensor
    predicted: Tensor | None = None

    @property
    def decided(self) -> Tensor:
        assert self.predicted is not None
        return self.predicted

    def columns(self) -> list[tuple[Tensor, Tensor]]:
        """Logits and zeros and ones of every yes or no that there is, where it is known.

        Of several classes: each against the rest, by the logarithm of its odds.
        """
        if self.kind == "link":  # one decision, whatever the source
            return [(self.logits.reshape(-1), self.y.reshape(-1))]
        if self.kind == "multiclass":
            log_p = self.logits.log_softmax(-1)
            odds = log_p - log1m_exp(log_p)
            return [(odds[:, k], (self.y == k).double()) for k in range(odds.shape[1])]
        y = self.y if self.y.dim() == 2 else self.y.unsqueeze(-1)
        return [known(self.logits[:, k], y[:, k].double()) for k in range(y.shape[1])]


def known(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Flat outputs and targets where the target is known."""
    if outputs.shape != y.shape:
        outputs = outputs.reshape(y.shape)
    there = ~torch.isnan(y)
    return outputs[there], y[there].to(outputs.dtype)


def log1m_exp(x: Tensor) -> Tensor:
    """log(1 - exp(x)) of numbers that are not positive."""
    return torch.where(x > -math.log(2), torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))


def compute(metric: str, answers: Answers) -> float:
    """A metric by name; NaN if it is not defined."""
    return float("nan") if len(answers.y) == 0 else float(_FUNCTIONS[metric](answers))


def mean_over_columns(function: Callable[[Tensor, Tensor], Tensor], answers: Answers) -> float:
    """The mean over classes or labels of which there are both, yes and no."""
    scores = [
        function(logit.sigmoid(), label.long()).item()
        for logit, label in answers.columns()
        if 0 < label.sum() < label.numel()
    ]
    return sum(scores) / len(scores) if scores else math.nan


def accuracy(predicted: Tensor, y: Tensor) -> float:
    return (predicted == y).double().mean().item()


def balanced_accuracy(predicted: Tensor, y: Tensor) -> float:
    """The mean recall of the classes that are there, of which there must be two."""
    counts = y.bincount()
    if (counts > 0).sum() < 2:
        return math.nan
    found = y[predicted == y].bincount(minlength=len(counts))
    return (found[counts > 0] / counts[counts > 0].double()).mean().item()


def f1(predicted: Tensor, y: Tensor) -> float:
    r"""2 TP / (2 TP + FP + FN) of the class 1, which must be there."""
    if not y.bool().any():
        return math.nan
    hits = 2 * (predicted.bool() & y.bool()).sum().double()
    return (hits / (predicted.bool().sum() + y.bool().sum())).item()


def macro_f1(predicted: Tensor, y: Tensor) -> float:
    """The mean F1 of the classes that are there or are predicted; two must be there."""
    if len(y.unique()) < 2:
        return math.nan
    size = int(torch.maximum(predicted.max(), y.max())) + 1
    hits = 2 * y[predicted == y].bincount(minlength=size).double()
    all_of = predicted.bincount(minlength=size) + y.bincount(minlength=size)
    return (hits[all_of > 0] / all_of[all_of > 0]).mean().item()


def macro_f1_of_labels(predicted: Tensor, y: Tensor) -> float:
    """The mean F1 of the labels ``(n, k)`` that hold for somebody, where they are known."""
    scores = [f1(*known(predicted[:, k].double(), y[:, k])) for k in range(y.shape[1])]
    defined = [score for score in scores if score == score]
    return sum(defined) / len(defined) if defined else math.nan


def log_loss(answers: Answers) -> float:
    if answers.kind == "multiclass":
        return F.cross_entropy(answers.logits, answers.y).item()
    logits, labels = _all_columns(answers)
    return F.binary_cross_entropy_with_logits(logits, labels).item() if len(labels) else math.nan


def brier(answers: Answers) -> float:
    r"""Mean of (p - y)²; of several classes of Σ_k (p_k - [y = k])²."""
    if answers.kind == "multiclass":
        shares = answers.logits.softmax(-1)
        truth = F.one_hot(answers.y, shares.shape[1])
        return (shares - truth).square().sum(-1).mean().item()
    logits, labels = _all_columns(answers)
    return (logits.sigmoid() - labels).square().mean().item() if len(labels) else math.nan


def calibration_error(answers: Answers) -> float:
    r"""How far probabilities are from frequencies:

    .. math:: \sum_b \frac{n_b}{n} \left| \bar p_b - \bar y_b \right|

    over equal bins b of [0, 1]. For two classes and for labels p is the probability of yes; for
    several classes it is that of the most probable one, and y whether that is the true one.
    """
    if answers.kind == "multiclass":
        p, place = answers.logits.softmax(-1).max(-1)
        y = (place == answers.y).double()
    else:
        logits, y = _all_columns(answers)
        p = logits.sigmoid()
    if not len(p) or p.isnan().any():
        return math.nan
    place = (p * BINS).long().clamp(max=BINS - 1)
    gaps = torch.zeros(BINS, dtype=p.dtype, device=p.device).index_add_(0, place, p - y)
    return (gaps.abs().sum() / len(p)).item()


def _all_columns(answers: Answers) -> tuple[Tensor, Tensor]:
    logits, labels = zip(*answers.columns(), strict=True)
    return torch.cat(logits), torch.cat(labels)


def r2(outputs: Tensor, y: Tensor) -> float:
    """1 - Σ (y - output)² / Σ (y - ȳ)² of ``(n,)`` or ``(n, k)``, the mean over those that vary."""
    scores = []
    for column, target in zip(_matrix(outputs).unbind(1), _matrix(y).unbind(1), strict=True):
        output, true = known(column, target)
        spread = (true - true.mean()).square().sum()
        if len(true) > 1 and spread > 0:
            scores.append(1 - ((true - output).square().sum() / spread).item())
    return sum(scores) / len(scores) if scores else math.nan


def _matrix(values: Tensor) -> Tensor:
    return values.reshape(values.shape[0], -1)


def _errors(answers: Answers) -> Tensor:
    outputs, targets = known(answers.logits, answers.y.double())
    return outputs - targets


def ranks(logits: Tensor) -> Tensor:
    """Of the first of each row, ``(k, 1 + K)``; among equals it has the mean of their ranks.

    NaN where nothing is ranked.
    """
    first, others = logits[:, :1], logits[:, 1:]
    if others.shape[1] == 0 or logits.isnan().any():
        return logits.new_full((len(logits),), math.nan)
    return 1 + (others > first).sum(1) + (others == first).sum(1).double() / 2


def hits(logits: Tensor, most: int) -> float:
    """The share of rows whose first is among the ``most`` best."""
    rank = ranks(logits)
    return math.nan if rank.isnan().any() else (rank <= most).double().mean().item()


def confusion(predicted: Tensor, y: Tensor, classes: int) -> Tensor:
    """``(classes, classes)`` counts: rows are true classes, columns predicted ones."""
    return (y * classes + predicted).bincount(minlength=classes**2).view(classes, classes)


def _at_p90(scores: Tensor, labels: Tensor) -> Tensor:
    return recall_at_precision(scores, labels, PRECISION)


def _macro_f1(answers: Answers) -> float:
    function = macro_f1_of_labels if answers.kind == "multilabel" else macro_f1
    return function(answers.decided, answers.y)


_FUNCTIONS: dict[str, Callable[[Answers], float]] = {
    "auroc": lambda a: mean_over_columns(roc_area, a),
    "ap": lambda a: mean_over_columns(average_precision, a),
    "recall@p90": lambda a: mean_over_columns(_at_p90, a),
    "accuracy": lambda a: accuracy(a.decided, a.y),
    "balanced_accuracy": lambda a: balanced_accuracy(a.decided, a.y),
    "f1": lambda a: f1(a.decided, a.y),
    "macro_f1": _macro_f1,
    "log_loss": log_loss,
    "brier": brier,
    "ece": calibration_error,
    "mae": lambda a: _errors(a).abs().mean().item(),
    "rmse": lambda a: _errors(a).square().mean().sqrt().item(),
    "r2": lambda a: r2(a.logits, a.y.double()),
    "mrr": lambda a: (1 / ranks(a.logits)).mean().item(),
    "hits@1": lambda a: hits(a.logits, 1),
    "hits@3": lambda a: hits(a.logits, 3),
    "hits@10": lambda a: hits(a.logits, 10),
}
