r"""Where to say yes: rules that choose a threshold, as users name them. Imports no PyTorch.

A rule sees all cuts that validation can tell apart: TP and FP if the k highest scores are taken for
yes, from the highest score down. It picks one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

FORMS = "f1, youden, precision=0.9, cost=10:1 or a number between 0 and 1"


class Cuts(NamedTuple):
    """What validation says of every cut, ``(m,)`` each.

    Args:
        scores: the lowest score on the side of yes, falling.
        hits: true positives TP.
        alarms: false positives FP.
    """

    scores: Tensor
    hits: Tensor
    alarms: Tensor


class Picked(NamedTuple):
    """The number of a cut, -1 for "never yes"; and what there is to say of it."""

    cut: int
    note: str = ""


class Rule(ABC):
    """Chooses a threshold by looking at validation."""

    @abstractmethod
    def pick(self, cuts: Cuts) -> Picked: ...


class BestF1(Rule):
    """The largest F1 = 2 TP / (TP + FP + P)."""

    def pick(self, cuts: Cuts) -> Picked:
        f1 = 2 * cuts.hits / (cuts.hits + cuts.alarms + cuts.hits[-1])
        return Picked(int(f1.argmax()))


class Youden(Rule):
    """The largest TP/P - FP/N: as far above chance as it goes."""

    def pick(self, cuts: Cuts) -> Picked:
        above = cuts.hits / cuts.hits[-1] - cuts.alarms / cuts.alarms[-1]
        return Picked(int(above.argmax()))


@dataclass(frozen=True)
class AtPrecision(Rule):
    """As many hits as possible while so many of the alarms are right."""

    precision: float

    def pick(self, cuts: Cuts) -> Picked:
        reached = cuts.hits / (cuts.hits + cuts.alarms).double()
        enough = reached >= self.precision - 1e-12
        if enough.any():
            return Picked(int((cuts.hits * enough).argmax()))
        best = int(reached.argmax())
        return Picked(
            best,
            f"a precision of {self.precision:g} is reached nowhere on validation; the threshold is "
            f"that of the highest there is, {float(reached[best]):.3f}",
        )


@dataclass(frozen=True)
class Cheapest(Rule):
    """The lowest cost: so much for each miss, so much for each false alarm."""

    miss: float
    alarm: float

    def pick(self, cuts: Cuts) -> Picked:
        saved = self.miss * cuts.hits - self.alarm * cuts.alarms
        best = int(saved.argmax())
        if float(saved[best]) > 0:
            return Picked(best)
        return Picked(-1, "on validation it is cheapest never to raise an alarm")


def parse_rule(text: float | str) -> Rule | float:
    """The rule that a user names, or the threshold itself."""
    try:
        return _parse(str(text).strip().lower())
    except ValueError:
        raise ValueError(f"`threshold` must be {FORMS}; got {text!r}") from None


def _parse(text: str) -> Rule | float:
    name, equals, value = text.partition("=")
    if not equals:
        return {"f1": BestF1(), "youden": Youden()}.get(name) or _between(text)
    if name == "precision":
        return AtPrecision(_between(value))
    miss, _, alarm = value.partition(":")
    if name != "cost" or not 0 < float(miss) < 1e12 or not 0 < float(alarm) < 1e12:
        raise ValueError
    return Cheapest(float(miss), float(alarm))


def _between(text: str) -> float:
    if not 0 < (value := float(text)) < 1:
        raise ValueError
    return value


def find_threshold(rule: Rule, cuts: Cuts) -> tuple[float, str]:
    """A threshold between two probabilities that validation has, and what there is to say of it."""
    cut, note = rule.pick(cuts)
    above = 1.0 if cut < 0 else float(cuts.scores[cut])
    below = 0.0 if cut == len(cuts.scores) - 1 else float(cuts.scores[cut + 1])
    # Never quite 0 or 1, whose logits are endless.
    return min(max((above + below) / 2, 1e-12), 1 - 1e-12), note
