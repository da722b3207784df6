"""The loss where samples do not count the same."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.train.task import Task


def weighted_loss(
    task: Task, logits: Tensor, y: Tensor, class_weight: Tensor | None, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """The mean loss Σ w_i c_i ℓ_i / Σ w_i c_i, and what it was divided by.

    With equal weights it is :meth:`~coopsheaf.train.task.Task.loss`. For two classes that of the
    positive samples is multiplied by c_1 / c_0 and the sum divided by Σ w_i, as there.

    Args:
        task: classes or numbers.
        logits: ``(n, out)``.
        y: ``(n,)``, or ``(n, k)`` numbers, NaN where unknown.
        class_weight: ``(classes,)``, c.
        weight: ``(n,)``, w; not negative, and some positive.
    """
    if task.kind == "multiclass":
        each = F.cross_entropy(logits, y, weight=class_weight, reduction="none")
        share = weight if class_weight is None else weight * class_weight[y]
        mass = share.sum()
        return (weight * each).sum() / mass, mass  # c is in each already
    if task.kind == "binary":
        ratio = None if class_weight is None else class_weight[1] / class_weight[0]
        each = F.binary_cross_entropy_with_logits(
            logits.squeeze(-1), y.to(logits.dtype), pos_weight=ratio, reduction="none"
        )
        mass = weight.sum()
        return (weight * each).sum() / mass, mass
    if task.kind == "link":
        raise ValueError("`sample_weight` needs classes or numbers; the task is 'link'")
    known = ~torch.isnan(y)
    logits, target = logits.reshape(y.shape), torch.where(known, y, 0.0).to(logits.dtype)
    distance = F.l1_loss if task.kind == "regression" else F.binary_cross_entropy_with_logits
    each = torch.where(known, distance(logits, target, reduction="none"), 0.0)
    spread = weight.reshape(-1, *(1 for _ in y.shape[1:])) * known  # (n,) or (n, k)
    mass = spread.sum()
    return (spread * each).sum() / mass, mass
