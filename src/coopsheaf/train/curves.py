r"""Areas under curves of binary decisions, one for every threshold that tells scores apart.

Counts are exact; quotients are in the default precision, and so are the areas. Written out here
because a library of metrics takes as long to import as PyTorch itself.
"""

from __future__ import annotations

import torch
from torch import Tensor


def roc_area(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Area under true positives over false positives, ties halved: a trapezoid for each.

    .. math:: \sum_k (f_k - f_{k-1}) \frac{t_k + t_{k-1}}{2}, \qquad
              t_k = \frac{TP_k}{P}, \quad f_k = \frac{FP_k}{N}, \quad t_0 = f_0 = 0

    Args:
        scores: ``(n,)``, larger for the positive.
        labels: ``(n,)`` zeros and ones, both of them there.
    """
    hits, false_alarms = counts(scores, labels)
    origin = hits.new_zeros(1)
    hits, false_alarms = torch.cat([origin, hits]), torch.cat([origin, false_alarms])
    return torch.trapezoid(hits / hits[-1], false_alarms / false_alarms[-1])


def average_precision(scores: Tensor, labels: Tensor) -> Tensor:
    r"""Precision averaged over steps of recall, without interpolation.

    .. math:: \sum_k (t_k - t_{k-1}) \frac{TP_k}{TP_k + FP_k}, \qquad
              t_k = \frac{TP_k}{P}, \quad t_0 = 0

    Args:
        scores: ``(n,)``, larger for the positive.
        labels: ``(n,)`` zeros and ones, at least one of them a one.
    """
    hits, false_alarms = counts(scores, labels)
    precision, recall = hits / (hits + false_alarms), hits / hits[-1]
    # From the lowest threshold on: the order of the sum decides its last bit.
    steps = torch.cat([recall.flip(0), recall.new_zeros(1)]).diff()
    return -(steps * precision.flip(0)).sum()


def recall_at_precision(scores: Tensor, labels: Tensor, precision: float) -> Tensor:
    r"""The largest recall TP/P at a threshold whose precision is at least so high; else 0.

    Args:
        scores: ``(n,)``, larger for the positive.
        labels: ``(n,)`` zeros and ones, at least one of them a one.
        precision: the lowest precision that will do.
    """
    hits, false_alarms = counts(scores, labels)
    # Compared as whole numbers are: 9 of 10 is a precision of 0.9, not a little less.
    enough = hits.double() >= precision * (hits + false_alarms).double() - 1e-9
    return torch.where(enough, hits / hits[-1], 0.0).max()


def counts(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """True and false positives at each distinct score, from the highest down, ``(k,)`` each."""
    return find_cuts(scores, labels)[1:]


def find_cuts(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct scores from the highest down, and the true and false positives that have at
    least as much, ``(k,)`` each."""
    scores, order = scores.sort(descending=True)
    last = scores.new_ones(scores.shape[0], dtype=torch.bool)
    last[:-1] = scores[1:] != scores[:-1]  # where a run of equal scores ends
    place = last.nonzero().squeeze(1)
    hits = labels[order].long().cumsum(0)[place]
    return scores[place], hits, 1 + place - hits
