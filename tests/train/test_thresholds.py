"""Thresholds that validation chooses, by rules whose answers can be counted."""

from __future__ import annotations

import pytest
import torch

from coopsheaf.train.config import TrainConfig
from coopsheaf.train.curves import find_cuts
from coopsheaf.train.thresholds import (
    AtPrecision,
    BestF1,
    Cheapest,
    Cuts,
    Youden,
    find_threshold,
    parse_rule,
)

#          yes   yes   no    yes   no    no   yes   no   no   no
SCORES = [0.95, 0.90, 0.80, 0.70, 0.60, 0.50, 0.40, 0.3, 0.2, 0.1]
LABELS = [1, 1, 0, 1, 0, 0, 1, 0, 0, 0]


def choose(rule: object, scores: list[float] = SCORES, labels: list[int] = LABELS) -> tuple[float, str]:  # fmt: skip
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(1))
    p, y = torch.tensor(scores).double()[order], torch.tensor(labels)[order]
    return find_threshold(rule, Cuts(*find_cuts(p, y)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "rule", "threshold"),
    [
        # F1 of the first 2, 4 and 7: 4/6, 6/8 and 8/11.
        ("f1", BestF1(), 0.65),
        # TP/4 - FP/6 of the first 2, 4 and 7: 1/2, 7/12 and 1/2.
        ("youden", Youden(), 0.65),
        ("precision=0.75", AtPrecision(0.75), 0.65),
        ("precision=0.9", AtPrecision(0.9), 0.85),
        # Two misses cost as much as ... : 10 a miss pays for three false alarms more.
        ("cost=10:1", Cheapest(10, 1), 0.35),
        ("cost=1:1", Cheapest(1, 1), 0.85),
        ("COST=1:10", Cheapest(1, 10), 0.85),
    ],
)
def test_rules(text: str, rule: object, threshold: float) -> None:
    assert parse_rule(text) == rule or type(parse_rule(text)) is type(rule)
    assert choose(rule) == (pytest.approx(threshold), "")


def test_equal_scores_are_not_told_apart() -> None:
    """The cut that would be best runs through a tie."""
    found, _ = choose(BestF1(), [0.9, 0.8, 0.8, 0.1], [1, 1, 0, 0])
    assert found == pytest.approx(0.45)


def test_a_precision_that_is_not_reached_is_said() -> None:
    scores, labels = [0.9, 0.8, 0.7, 0.6], [0, 1, 1, 0]
    found, note = choose(AtPrecision(0.9), scores, labels)
    assert found == pytest.approx(0.65)
    assert "a precision of 0.9 is reached nowhere on validation" in note
    assert "0.667" in note


def test_alarms_that_cost_more_than_they_are_worth() -> None:
    found, note = choose(Cheapest(1, 10), [0.9, 0.8, 0.2], [0, 1, 0])
    assert found == pytest.approx(0.95)
    assert "cheapest never to raise an alarm" in note


def test_a_threshold_is_never_0_or_1() -> None:
    assert 0 < choose(BestF1(), [0.0, 0.0], [1, 0])[0] < 1
    assert 0 < choose(Cheapest(1, 10), [1.0, 1.0], [1, 0])[0] < 1


def test_numbers_are_what_they_are() -> None:
    assert parse_rule(0.3) == parse_rule("0.3") == 0.3


@pytest.mark.parametrize(
    "text", ["f2", "0", "1", "1.5", "nan", "precision", "precision=2", "cost=10", "cost=1:0",
             "cost=-1:1", "cost=nan:1", "recall=0.9", "", 0.0, 2.0],
)  # fmt: skip
def test_what_is_no_rule(text: str | float) -> None:
    with pytest.raises(ValueError, match=r"`threshold` must be f1, youden, .*; got "):
        TrainConfig(threshold=text)
