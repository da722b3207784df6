r"""From outputs to probabilities that can be trusted, and to decisions; both fitted on validation.

**Probabilities.** A network that was trained with class weights w estimates odds that are too high
for rare classes: the minimum of the weighted loss is at logits :math:`z_k + \log w_k`, where z are
those of the true probabilities. No temperature undoes a shift, so

.. math:: z' = a z + b

with a > 0, which keeps the order. Of two classes a and b minimise the log loss on validation (Platt
scaling, with his targets (P + 1)/(P + 2) and 1/(N + 2), which keep a finite where validation is
separated perfectly). Of several classes :math:`z' = a (z - \log w)`, and a alone, the inverse of
the temperature, is fitted: a shift for each of many classes would fit noise. Of labels, which have
no weights, z' = a z.

**Decisions.** Of two classes the second, if its probability is above a threshold, which one of the
rules of :mod:`~coopsheaf.train.thresholds` has chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.train.config import TrainConfig
from coopsheaf.train.curves import find_cuts
from coopsheaf.train.metrics import known
from coopsheaf.train.task import Task
from coopsheaf.train.thresholds import Cuts, find_threshold, parse_rule

CALIBRATED = ("binary", "multiclass", "multilabel")  # kinds of task that have probabilities
STEEPEST = 100.0  # of a, and its inverse: beyond it there is nothing left to tell apart


@dataclass(frozen=True)
class Decision:
    """How the outputs of a run become probabilities and classes; by default as they are.

    Args:
        scale: a, positive.
        shift: b, one number per output; empty for none.
        threshold: the probability above which the second of two classes is predicted.
        rule: what has chosen the threshold, as the user named it; empty if nobody did.
        notes: what there is to say of it, one line each.
    """

    scale: float = 1.0
    shift: tuple[float, ...] = ()
    threshold: float = 0.5
    rule: str = ""
    notes: tuple[str, ...] = ()

    @property
    def calibrated(self) -> bool:
        return self.scale != 1.0 or any(self.shift)

    def adjust(self, logits: Tensor) -> Tensor:
        """``(n, out)`` logits whose probabilities can be trusted."""
        if not self.calibrated:
            return logits
        shift = torch.tensor(self.shift or (0.0,), dtype=logits.dtype, device=logits.device)
        return self.scale * logits + shift

    def to_plain(self) -> dict[str, Any]:
        """As ``run.json`` holds it; :func:`read_decision` reads it back."""
        plain = asdict(self)
        return plain | {"shift": list(self.shift), "notes": list(self.notes)}


def read_decision(plain: dict[str, Any] | None) -> Decision:
    """What :meth:`Decision.to_plain` gave; runs of earlier versions have none."""
    if plain is None:
        return Decision()
    lists = {name: tuple(plain.get(name, ())) for name in ("shift", "notes")}
    return Decision(plain["scale"], threshold=plain["threshold"], rule=plain["rule"], **lists)


def wants_calibration(config: TrainConfig) -> bool:
    """By default where class weights are used, which is where it is needed."""
    return config.class_weights if config.calibrate is None else config.calibrate


def decide(
    task: Task, config: TrainConfig, logits: Tensor, y: Tensor, weight: Tensor | None
) -> Decision:
    """What validation says about probabilities and the threshold.

    Args:
        task: the kind of task.
        config: whether to calibrate, and how to choose a threshold.
        logits, y: outputs and targets of validation.
        weight: those of the classes in training, if there were any.
    """
    logits, notes = logits.detach().double(), list[str]()
    scale, shift = 1.0, tuple[float, ...]()
    if wants_calibration(config):
        if task.kind != "multilabel" and len(y.unique()) < 2:
            notes.append("probabilities are not calibrated: validation has one class only")
        else:
            scale, shift = fit_calibration(task, logits, y, weight)
    threshold, rule = 0.5, ""
    if config.threshold is not None:
        chosen, rule = parse_rule(config.threshold), str(config.threshold)
        if isinstance(chosen, float):
            threshold = chosen
        else:
            p = Decision(scale, shift).adjust(logits)[:, 0].sigmoid()
            threshold, note = find_threshold(chosen, Cuts(*find_cuts(p, y)))
            notes += [note] if note else []
    return Decision(scale, shift, threshold, rule, tuple(notes))


def fit_calibration(
    task: Task, logits: Tensor, y: Tensor, weight: Tensor | None = None
) -> tuple[float, tuple[float, ...]]:
    """a and b of the equations above.

    Args:
        task: the kind of task.
        logits: ``(n, out)`` in double precision.
        y: targets, of two classes at least.
        weight: ``(classes,)`` of training.
    """
    if task.kind == "binary":
        positive = y.sum().double()
        ends = torch.stack([1 / (len(y) - positive + 2), (positive + 1) / (positive + 2)])
        targets, z = ends[y], logits[:, 0]
        a, b = _minimise(lambda a, b: F.binary_cross_entropy_with_logits(a * z + b, targets))
        return a, (b,)
    if task.kind == "multiclass":
        shift = torch.zeros(logits.shape[1]).double()
        if weight is not None:
            shift[: len(weight)] = weight.double().cpu().log()
        z = logits - shift.to(logits.device)
        a, _ = _minimise(lambda a, b: F.cross_entropy(a * z, y))
        return a, tuple((-a * shift).tolist()) if weight is not None else ()
    z, labels = known(logits, y.double())
    return _minimise(lambda a, b: F.binary_cross_entropy_with_logits(a * z, labels))[0], ()


def _minimise(loss: Callable[[Tensor, Tensor], Tensor]) -> tuple[float, float]:
    """The a > 0 and b with the lowest loss, which is convex in both; from 1 and 0."""
    log_a, b = (torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(2))
    bound = math.log(STEEPEST)
    search = torch.optim.LBFGS(
        [log_a, b], max_iter=200, tolerance_grad=1e-10, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        search.zero_grad()
        value = loss(log_a.clamp(-bound, bound).exp(), b)
        (value + 0 * b).backward()  # also where b is not asked for
        return value

    with torch.enable_grad():
        search.step(closure)
    a = math.exp(min(max(log_a.item(), -bound), bound))
    return (a, b.item()) if math.isfinite(b.item()) else (1.0, 0.0)
