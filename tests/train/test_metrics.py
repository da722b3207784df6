"""Metrics against torchmetrics, against numbers worked out by hand, and where they end."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torchmetrics.functional import mean_squared_error, r2_score
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_calibration_error,
    binary_f1_score,
    binary_recall_at_fixed_precision,
    multiclass_accuracy,
    multiclass_auroc,
    multiclass_average_precision,
    multiclass_calibration_error,
    multiclass_f1_score,
    multilabel_f1_score,
)

from coopsheaf.data.metrics import METRICS, metrics_of
from coopsheaf.train.metrics import confusion, log1m_exp
from coopsheaf.train.task import Task

NAN = math.nan


def draw(kind: str, n: int = 200, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits that know something of their targets, among which no two are alike."""
    rng = torch.Generator().manual_seed(seed)
    if kind == "binary":
        y = (torch.rand(n, generator=rng) < 0.2).long()
        return (torch.randn(n, generator=rng) + 1.5 * y - 1)[:, None].double(), y
    if kind == "multiclass":
        y = torch.randint(0, 4, (n,), generator=rng)
        logits = torch.randn(n, 4, generator=rng).double()
        return logits + 1.2 * torch.nn.functional.one_hot(y, 4), y
    if kind == "multilabel":
        y = (torch.rand(n, 3, generator=rng) < 0.4).double()
        return torch.randn(n, 3, generator=rng).double() + y, y
    y = torch.randn(n, generator=rng).double()
    return (y + 0.5 * torch.randn(n, generator=rng))[:, None].double(), y


def test_of_two_classes() -> None:
    logits, y = draw("binary")
    found = Task("binary", "auroc").summary(logits, y)
    p = logits[:, 0].sigmoid()
    recall, _ = binary_recall_at_fixed_precision(p, y, 0.9)
    want = {
        "auroc": binary_auroc(p, y),
        "f1": binary_f1_score(p, y),
        "recall@p90": recall,
        "balanced_accuracy": multiclass_accuracy((p > 0.5).long(), y, 2, average="macro"),
        "macro_f1": multiclass_f1_score((p > 0.5).long(), y, 2, average="macro"),
        "ece": mean_gap(p, y),
        "brier": (p - y).square().mean(),
        "log_loss": -torch.where(y == 1, p, 1 - p).log().mean(),
    }
    assert 0 < float(recall) < 1
    for name, value in want.items():
        assert found[name] == pytest.approx(float(value), rel=1e-5), name
    assert set(found) == set(metrics_of("binary"))


def mean_gap(p: Tensor, y: Tensor) -> float:
    """The calibration error of two classes, bin by bin."""
    total = 0.0
    for k in range(15):
        here = (p * 15).floor().clamp(max=14) == k
        total += abs(float(p[here].sum() - y[here].sum()))
    return total / len(p)


def test_the_calibration_error_by_hand_and_where_it_agrees_with_torchmetrics() -> None:
    """0.9 is right in one of two cases, 0.1 in all: (2 · 0.4 + 2 · 0.1) / 4."""
    logits = torch.tensor([0.9, 0.9, 0.1, 0.1]).double().logit()[:, None]
    found = Task("binary", "ece").score(logits, torch.tensor([1, 0, 0, 0]))
    assert found == pytest.approx((2 * 0.4 + 2 * 0.1) / 4)
    # torchmetrics takes the probability of the predicted class of two; of the positive one alone
    # both are the same.
    logits, y = draw("binary")
    positive = logits[:, 0].sigmoid() > 0.5
    theirs = binary_calibration_error(logits[positive, 0].sigmoid(), y[positive], n_bins=15)
    ours = Task("binary", "ece").score(logits[positive], y[positive])
    assert ours == pytest.approx(float(theirs), rel=1e-5)


def test_of_several_classes() -> None:
    logits, y = draw("multiclass")
    found = Task("multiclass", "accuracy").summary(logits, y)
    p = logits.softmax(-1)
    want = {
        "accuracy": multiclass_accuracy(p, y, 4, average="micro"),
        "balanced_accuracy": multiclass_accuracy(p, y, 4, average="macro"),
        "macro_f1": multiclass_f1_score(p, y, 4, average="macro"),
        "auroc": multiclass_auroc(p, y, 4),
        "ap": multiclass_average_precision(p, y, 4),
        "ece": multiclass_calibration_error(p, y, 4, n_bins=15),
        "log_loss": -p[torch.arange(200), y].log().mean(),
        "brier": (p - torch.eye(4)[y]).square().sum(1).mean(),
    }
    for name, value in want.items():
        assert found[name] == pytest.approx(float(value), rel=1e-5), name
    assert set(found) == set(want)


def test_of_labels_where_they_are_known() -> None:
    logits, y = draw("multilabel")
    found = Task("multilabel", "ap").summary(logits, y)
    whole = multilabel_f1_score(logits.sigmoid(), y.long(), 3, average="macro")
    assert found["macro_f1"] == pytest.approx(float(whole), rel=1e-5)
    assert found["brier"] == pytest.approx(float((logits.sigmoid() - y).square().mean()))
    # What is not known does not count: one label of a row more, and nothing moves.
    wider = torch.cat([logits, 50 * torch.ones(1, 3)]), torch.cat([y, torch.full((1, 3), NAN)])
    assert Task("multilabel", "ap").summary(*wider) == pytest.approx(found)


def test_of_numbers() -> None:
    outputs, y = draw("regression")
    found = Task("regression", "mae").summary(outputs, y)
    assert found["rmse"] == pytest.approx(
        float(mean_squared_error(outputs[:, 0], y, squared=False))
    )
    assert found["r2"] == pytest.approx(float(r2_score(outputs[:, 0], y)))
    # Several targets, of which one does not vary and one is not known everywhere.
    several = torch.stack([y, torch.ones_like(y), y], dim=1)
    several[5, 2] = NAN
    doubled = torch.cat([outputs, outputs, outputs], dim=1)
    there = torch.arange(len(y)) != 5
    second = float(r2_score(outputs[there, 0], y[there]))
    want = (found["r2"] + second) / 2
    assert Task("regression", "r2").score(doubled, several) == pytest.approx(want)


def test_hits_of_links() -> None:
    """Ranks 2, 2 (the mean of 1, 2 and 3) and 1."""
    logits = torch.tensor([[3.0, 1.0, 4.0], [0.0, 0.0, 0.0], [5.0, -1.0, -2.0]])
    y = torch.tensor([[1.0, 0.0, 0.0]]).expand(3, 3)
    found = Task("link", "hits@1").summary(logits, y)
    assert found["hits@1"] == pytest.approx(1 / 3)
    assert found["hits@3"] == 1.0
    assert found["mrr"] == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert math.isnan(Task("link", "hits@1").score(torch.full((2, 3), NAN), y[:2]))


ONE_CLASS = {"auroc", "ap", "balanced_accuracy", "f1", "macro_f1", "recall@p90"}


def test_with_one_class_alone() -> None:
    """Whatever weighs classes against each other is not defined; what looks at rows is."""
    found = Task("binary", "auroc").summary(torch.zeros(3, 1), torch.zeros(3).long())
    assert {name for name, value in found.items() if value != value} == ONE_CLASS
    found = Task("multiclass", "accuracy").summary(torch.zeros(3, 4), torch.ones(3).long())
    assert {name for name, value in found.items() if value != value} == ONE_CLASS & set(found)
    found = Task("regression", "mae").summary(torch.zeros(3, 1), torch.ones(3))
    assert {name for name, value in found.items() if value != value} == {"r2"}


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
def test_outputs_that_are_no_numbers_have_no_trustworthy_score(kind: str) -> None:
    logits, y = draw(kind)
    found = Task(kind, metrics_of(kind)[0]).summary(torch.full_like(logits, NAN), y)
    lower = [name for name in found if not METRICS[name].higher]
    assert lower
    assert all(math.isnan(found[name]) for name in lower)


def test_the_precision_of_nine_in_ten_is_enough() -> None:
    """0.9 as a float is more than nine tenths: nine right alarms of ten must still do."""
    logits = torch.arange(20, 0, -1).double()[:, None]
    y = torch.tensor([1] * 5 + [0] + [1] * 4 + [0] * 10)
    assert Task("binary", "recall@p90").score(logits, y) == 1.0
    y = torch.tensor([0] + [1] * 4 + [0] * 15)
    assert Task("binary", "recall@p90").score(logits, y) == 0.0


def test_a_threshold_moves_decisions_alone() -> None:
    logits, y = draw("binary")
    task = Task("binary", "auroc")
    low, high = (task.summary(logits, y, threshold=t) for t in (0.2, 0.8))
    assert low["f1"] != high["f1"]
    assert low["auroc"] == high["auroc"]
    assert low["ece"] == high["ece"]
    p = logits[:, 0].sigmoid()
    assert torch.equal(task.classes(logits, 0.2), (p > 0.2).long())


def test_confusion_has_a_row_for_every_true_class() -> None:
    counts = confusion(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), 3)
    assert counts.tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 0]]


def test_logarithms_of_what_is_left() -> None:
    x = torch.tensor([-1e-12, -0.1, -0.7, -50.0]).double()
    assert torch.allclose(log1m_exp(x), torch.log(-torch.expm1(x)), rtol=1e-12)
    assert log1m_exp(x)[3] == pytest.approx(-math.exp(-50), rel=1e-12)
