"""Losses and metrics against their definitions."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from graphs import randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from coopsheaf.train.task import Task

NAN = math.nan


def auroc_by_pairs(scores: list[float], labels: list[int]) -> float:
    positive = [s for s, y in zip(scores, labels, strict=True) if y]
    negative = [s for s, y in zip(scores, labels, strict=True) if not y]
    wins = sum((p > q) + 0.5 * (p == q) for p in positive for q in negative)
    return wins / (len(positive) * len(negative))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans()), min_size=2, max_size=20))
def test_auroc_is_the_share_of_ordered_pairs(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = [float(s) for s, _ in pairs], [int(y) for _, y in pairs]
    score = Task("binary", "auroc").score(torch.tensor(scores)[:, None], torch.tensor(labels))
    if len(set(labels)) < 2:
        assert math.isnan(score)
    else:
        assert score == pytest.approx(auroc_by_pairs(scores, labels))


def test_large_logits_are_kept_apart() -> None:
    logits = torch.tensor([[25.0], [24.0], [30.0], [20.0]])
    assert Task("binary", "auroc").score(logits, torch.tensor([1, 0, 1, 0])) == 1.0


def test_accuracy() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 9.0], [1.0, 0.0, 0.0]])
    assert Task("multiclass", "accuracy").score(logits, torch.tensor([0, 1, 2, 1])) == 0.75
    assert (
        Task("binary", "accuracy").score(torch.tensor([[1.0], [-1.0]]), torch.tensor([1, 1])) == 0.5
    )


def test_average_precision_skips_labels_without_both_classes_and_unknown_entries() -> None:
    logits = torch.tensor([[3.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    y = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [NAN, NAN]])
    # Label 0: positives at ranks 1 and 3 of the three known: (1/1 + 2/3) / 2.
    assert Task("multilabel", "ap").score(logits, y) == pytest.approx((1 + 2 / 3) / 2)


def test_mean_absolute_error_ignores_unknown_targets() -> None:
    score = Task("regression", "mae").score(torch.tensor([[1.0], [5.0]]), torch.tensor([2.0, NAN]))
    assert score == 1.0


def test_losses() -> None:
    logits, classes = randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert_close(
        Task("multiclass", "accuracy").loss(logits, classes), F.cross_entropy(logits, classes)
    )
    labels = torch.tensor([0, 1, 1, 0, 1, 0])
    binary = Task("binary", "auroc")
    expected = F.binary_cross_entropy_with_logits(logits[:, 0], labels.double())
    assert_close(binary.loss(logits[:, :1], labels), expected)
    y = torch.tensor([[1.0, NAN, 0.0]]).double()
    expected = F.binary_cross_entropy_with_logits(
        logits[:1, [0, 2]], torch.tensor([[1.0, 0.0]]).double()
    )
    assert_close(Task("multilabel", "ap").loss(logits[:1], y), expected)
    target = torch.tensor([1.0, NAN, 3.0]).double()
    expected = F.l1_loss(logits[[0, 2], 0], target[[0, 2]])
    assert_close(Task("regression", "mae").loss(logits[:3, :1], target), expected)


def test_class_weights_balance_the_classes() -> None:
    y = torch.tensor([0, 0, 0, 1])
    weight = Task("binary", "auroc").class_weight(y)
    assert_close(weight, torch.tensor([4 / 6, 2.0]))
    assert_close(weight[y].mean(), torch.tensor(1.0))
    with pytest.raises(ValueError, match="needs classes; the task is 'regression'"):
        Task("regression", "mae").class_weight(y)


def test_strictly_better_keeps_the_first_of_equals() -> None:
    up, down = Task("binary", "auroc"), Task("regression", "mae")
    assert up.better(0.5, None)
    assert up.better(0.6, 0.5)
    assert not up.better(0.5, 0.5)
    assert not up.better(NAN, None)
    assert down.better(0.4, 0.5)
    assert not down.better(0.5, 0.4)


def test_probabilities() -> None:
    logits = randn(4, 3)
    assert_close(
        Task("multiclass", "accuracy").probabilities(logits).sum(-1), torch.ones(4).double()
    )
    two = Task("binary", "auroc").probabilities(logits[:, :1])
    assert two.shape == (4, 2)
    assert_close(two[:, 1], logits[:, 0].sigmoid())
    assert Task("multilabel", "ap").probabilities(logits).shape == (4, 3)
    with pytest.raises(ValueError, match="no probabilities"):
        Task("regression", "mae").probabilities(logits)


# Three links, each with three non-edges behind it.
LINKS = torch.tensor([[3.0, 1.0, 2.0, 4.0], [0.0, 0.0, 0.0, -1.0], [5.0, -1.0, -2.0, -3.0]])
ASKED = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).expand(3, 4)


def test_ranks_of_links() -> None:
    """The first is second, the second shares the ranks 1, 2 and 3, the third is first."""
    mrr = Task("link", "mrr")
    assert mrr.score(LINKS, ASKED) == pytest.approx((1 / 2 + 1 / 2 + 1) / 3)
    assert mrr.score(torch.zeros(2, 4), ASKED[:2]) == pytest.approx(1 / 2.5)
    assert math.isnan(mrr.score(LINKS[:0], ASKED[:0]))
    assert math.isnan(mrr.score(LINKS[:, :1], ASKED[:, :1]))
    assert math.isnan(mrr.score(torch.full((2, 4), NAN), ASKED[:2]))


def test_areas_of_links_are_over_all_pairs() -> None:
    """Links score 5, 3 and 0; non-edges 4, 2, 1, 0, 0, -1, -1, -2, -3."""
    # Pairs in order: 9 for the 5, 8 for the 3, 4 and two halves for the 0, of 27.
    assert Task("link", "auroc").score(LINKS, ASKED) == pytest.approx((9 + 8 + 4 + 1) / 27)
    # Precision where recall rises: 1 of 1, 2 of 3, and 3 of 8 with all that are 0 or more.
    wanted = (1 + 2 / 3 + 3 / 8) / 3
    assert Task("link", "ap").score(LINKS, ASKED) == pytest.approx(wanted)
    assert math.isnan(Task("link", "auroc").score(LINKS[:, :1], ASKED[:, :1]))


def test_the_loss_of_links_is_over_all_pairs() -> None:
    task = Task("link", "mrr")
    assert_close(task.loss(LINKS, ASKED), F.binary_cross_entropy_with_logits(LINKS, ASKED))
    assert task.mass(ASKED) == 12
    assert_close(task.probabilities(LINKS), LINKS.sigmoid())


def test_metrics_of_links_and_of_nodes_are_kept_apart() -> None:
    with pytest.raises(ValueError, match=r"one of auroc.*for the task 'binary'; got 'mrr'"):
        Task("binary", "mrr")
    with pytest.raises(ValueError, match=r"one of auroc, ap, mrr.*'link'; got 'accuracy'"):
        Task("link", "accuracy")
    with pytest.raises(ValueError, match=r"`metric` must be one of 'auroc'.*got 'auc'.*'auroc'"):
        Task("binary", "auc")
    with pytest.raises(ValueError, match="`class_weights` needs classes; the task is 'link'"):
        Task("link", "mrr").class_weight(ASKED)


def test_the_rarer_of_two_classes_weighs_more_in_the_loss() -> None:
    """One in four is positive: its loss counts three times as much."""
    task, y = Task("binary", "auroc"), torch.tensor([0, 0, 1, 0])
    weight = task.class_weight(y)
    assert_close(weight, torch.tensor([4 / 6, 2.0]))
    logits = randn(4, 1).float()
    each = F.binary_cross_entropy_with_logits(logits[:, 0], y.float(), reduction="none")
    want = (each * torch.tensor([1.0, 1.0, 3.0, 1.0])).mean()
    assert_close(task.loss(logits, y, weight), want)
