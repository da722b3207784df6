"""The loss of samples that count differently."""

from __future__ import annotations

import pytest
import torch
from graphs import generator

from coopsheaf.train.sample_weights import weighted_loss
from coopsheaf.train.task import Task

DOUBLE = torch.float64


def outputs(kind: str) -> tuple[torch.Tensor, torch.Tensor]:
    rng = generator(0)
    logits = torch.randn(6, 3 if kind == "multiclass" else 1, generator=rng, dtype=DOUBLE)
    if kind == "regression":
        return logits, torch.randn(6, generator=rng, dtype=DOUBLE)
    return logits, torch.tensor([0, 1, 0, 1, 1, 0])


METRICS = {"binary": "auroc", "multiclass": "accuracy", "regression": "mae"}


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("classes", [False, True])
def test_whole_weights_are_repetitions(kind: str, classes: bool) -> None:
    if kind == "regression" and classes:
        pytest.skip("no classes")
    task, (logits, y) = Task(kind, METRICS[kind]), outputs(kind)
    share = torch.tensor([0.5, 2.0, 1.0], dtype=DOUBLE)[: 3 if kind == "multiclass" else 2] if classes else None  # fmt: skip
    count = torch.tensor([2, 1, 0, 3, 1, 1])
    found, mass = weighted_loss(task, logits, y, share, count.to(DOUBLE))
    again = count.repeat_interleave(count), logits.repeat_interleave(count, 0), y.repeat_interleave(count)  # fmt: skip
    torch.testing.assert_close(found, task.loss(again[1], again[2], share))
    assert float(mass) == pytest.approx(float(task.mass(again[2], share)))


def test_gaps_of_several_targets_count_nothing() -> None:
    y = torch.tensor([[1.0, torch.nan], [2.0, 4.0]], dtype=DOUBLE)
    found, mass = weighted_loss(Task("regression", "mae"), torch.zeros(2, 2, dtype=DOUBLE), y, None, torch.tensor([3.0, 1.0], dtype=DOUBLE))  # fmt: skip
    assert float(found) == pytest.approx((3 * 1 + 2 + 4) / 5)
    assert float(mass) == 5
