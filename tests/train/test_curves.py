"""Areas under curves: the numbers of torchmetrics, which records were made with, bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from graphs import generator
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc, binary_average_precision

from coopsheaf.train.curves import average_precision, roc_area

PAIRS = [(roc_area, binary_auroc), (average_precision, binary_average_precision)]


@pytest.mark.parametrize(("own", "known"), PAIRS, ids=["auroc", "ap"])
@pytest.mark.parametrize("levels", [2, 7, 1000, None])
@pytest.mark.parametrize("n", [2, 3, 50, 4097])
def test_the_same_bits_as_torchmetrics(
    own: Callable[..., Tensor], known: Callable[..., Tensor], levels: int | None, n: int
) -> None:
    for seed in range(5):
        rng = generator(seed)
        scores = torch.rand(n, generator=rng, dtype=torch.float64)
        if levels is not None:  # ties
            scores = (scores * levels).floor() / levels
        labels = (torch.rand(n, generator=rng) < 0.3).long()
        labels[0], labels[1] = 0, 1
        got, want = own(scores, labels), known(scores, labels)
        assert got.dtype == want.dtype
        assert torch.equal(got, want)


def test_perfect_and_worst_orders() -> None:
    labels = torch.tensor([0, 0, 1, 1])
    rising, falling = torch.arange(4.0), -torch.arange(4.0)
    assert roc_area(rising, labels) == 1.0
    assert roc_area(falling, labels) == 0.0
    assert average_precision(rising, labels) == 1.0
    assert average_precision(falling, labels) == pytest.approx((1 / 3 + 2 / 4) / 2)
