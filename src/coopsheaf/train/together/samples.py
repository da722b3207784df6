"""What many runs lose and score, each on samples of its own, in a few operations for all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.train.task import Task


class Losses:
    r"""The mean losses of R runs on some nodes of each,

    .. math:: \ell_r = \sum_i s_{ri}\, \ell(z_{r i}, y_{r i}), \qquad \sum_i s_{ri} = 1,

    the same as :meth:`~coopsheaf.train.task.Task.loss`, or
    :func:`~coopsheaf.train.sample_weights.weighted_loss` where samples have weights.

    Args:
        task: of all runs.
        nodes: of each run, ``(k,)``.
        targets: theirs, as the task has them.
        num_nodes: of the graph.
        class_weights: of each run, or none of any.
        sample_weights: of each run, ``(k,)``, or none of any.
    """

    def __init__(
        self,
        task: Task,
        nodes: Sequence[Tensor],
        targets: Sequence[Tensor],
        num_nodes: int,
        class_weights: Sequence[Tensor] | None = None,
        sample_weights: Sequence[Tensor] | None = None,
    ) -> None:
        self.task, self.count = task, len(nodes)
        places, answers, shares, runs = [], [], [], []
        for run, (index, y) in enumerate(zip(nodes, targets, strict=True)):
            share = _shares(
                task,
                y,
                None if class_weights is None else class_weights[run],
                None if sample_weights is None else sample_weights[run],
            )
            place = index + run * num_nodes
            if task.kind in ("multilabel", "regression"):  # entries, not rows: some are not known
                width = math.prod(y.shape[1:])
                place = place[:, None] * width + torch.arange(width)
                known = ~torch.isnan(y).reshape(place.shape)
                place, y, share = place[known], y.reshape(place.shape)[known], share[known]
            places.append(place)
            answers.append(y)
            shares.append(share)
            runs.append(torch.full((len(place),), run))
        self.place, self.y = torch.cat(places), torch.cat(answers)
        self.share, self.run = torch.cat(shares), torch.cat(runs)

    def __call__(self, logits: Tensor) -> Tensor:
        """Of outputs ``(R, n, out)``: ``(R,)``."""
        kind = self.task.kind
        if kind == "multiclass":
            each = F.cross_entropy(logits.flatten(0, 1)[self.place], self.y, reduction="none")
        else:
            chosen = logits.flatten()[self.place]
            distance = F.l1_loss if kind == "regression" else F.binary_cross_entropy_with_logits
            each = distance(chosen, self.y.to(chosen.dtype), reduction="none")
        share = self.share.to(each.dtype)
        return each.new_zeros(self.count).index_add(0, self.run, share * each)


def _shares(
    task: Task, y: Tensor, class_weight: Tensor | None, sample_weight: Tensor | None
) -> Tensor:
    """By what the loss of each sample is multiplied, ``(k,)``, or ``(k, out)`` of entries."""
    weight = torch.ones(len(y), dtype=torch.float64)
    if sample_weight is not None:
        weight = sample_weight.double()
    if task.kind == "multiclass":
        weight = weight if class_weight is None else weight * class_weight.double()[y]
        return weight / weight.sum()
    if task.kind == "binary":
        share = weight / weight.sum()
        if class_weight is None:
            return share
        return torch.where(y == 1, share * (class_weight[1] / class_weight[0]).double(), share)
    known = (~torch.isnan(y)).reshape(len(y), -1)
    spread = weight[:, None] * known
    return spread / spread.sum()


class Scores:
    """The metric of R runs on several parts of the split of each.

    Args:
        task: of all runs.
        nodes: of each part, of each run, ``(k,)``.
        targets: theirs.
        num_nodes: of the graph.
    """

    def __init__(
        self,
        task: Task,
        nodes: Sequence[Sequence[Tensor]],
        targets: Sequence[Sequence[Tensor]],
        num_nodes: int,
    ) -> None:
        self.task, self.nodes, self.targets = task, nodes, targets
        self.shape = parts, runs = len(nodes), len(nodes[0])
        self.at_once = task.metric == "accuracy" and task.kind in ("binary", "multiclass")
        if self.at_once:
            cells = [(part, run) for part in range(parts) for run in range(runs)]
            sizes = torch.tensor([len(nodes[part][run]) for part, run in cells])
            self.cell = torch.repeat_interleave(torch.arange(len(cells)), sizes)
            self.size = sizes.double()
            self.place = torch.cat([nodes[part][run] + run * num_nodes for part, run in cells])
            self.y = torch.cat([targets[part][run] for part, run in cells])

    def __call__(self, logits: Tensor) -> list[list[float]]:
        """Of outputs ``(R, n, out)``: for each run those of its parts."""
        parts, runs = self.shape
        if not self.at_once:
            return [
                [
                    self.task.score(logits[run][self.nodes[part][run]], self.targets[part][run])
                    for part in range(parts)
                ]
                for run in range(runs)
            ]
        predicted = self.task.classes(logits.detach().flatten(0, 1).double())[self.place]
        right = (predicted == self.y).double()
        total = torch.zeros_like(self.size).index_add(0, self.cell, right)
        found: list[list[float]] = (total / self.size).view(self.shape).T.tolist()
        return found
