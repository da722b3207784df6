"""Dropout from random bits: the law of F.dropout, and what must not depend on how it is drawn."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from coopsheaf.nn.dropout import dropout
from coopsheaf.sheaves.kernels import KERNELS, use_kernel

SIZE = 1_000_000


def kept(p: float, *shape: int, seed: int = 0) -> Tensor:
    """A mask as zeros and ones."""
    torch.manual_seed(seed)
    return (dropout(torch.ones(shape), p) != 0).double()


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5, 0.9])
def test_the_rate_is_p(p: float) -> None:
    """Within four standard deviations of a binomial count."""
    mask = kept(p, SIZE)
    assert abs(mask.mean() - (1 - p)) < 4 * math.sqrt(p * (1 - p) / SIZE)


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5, 0.9, 1 / 3])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(p: float) -> None:
    """One factor for all kept entries: one over the true probability, a multiple of 2⁻¹⁶."""
    torch.manual_seed(0)
    values = dropout(torch.ones(1000, dtype=torch.float64), p).unique()
    assert values[0] == 0
    assert values.numel() == 2
    probability = 1 / values[1].item()
    assert abs(probability - (1 - p)) <= 2**-17
    assert probability * 2**16 == pytest.approx(round(probability * 2**16), abs=1e-9)


def test_the_mean_over_many_masks_is_the_input() -> None:
    torch.manual_seed(0)
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    mean = dropout(x.expand(200_000, 3), 0.2).mean(0)
    assert_close(mean, x, rtol=4 * math.sqrt(0.25 / 200_000), atol=0)


@pytest.mark.parametrize("p", [0.2, 0.5])
@pytest.mark.parametrize("gap", [1, 2, 3, 4, 5, 8, 32, 128])
def test_neighbouring_entries_are_independent(p: float, gap: int) -> None:
    """Four entries share a word of 64 bits."""
    mask = (kept(p, SIZE) - (1 - p)) / math.sqrt(p * (1 - p))
    correlation = (mask[gap:] * mask[:-gap]).mean()
    assert abs(correlation) < 4.5 / math.sqrt(SIZE - gap)


def test_all_patterns_within_a_word_come_as_often_as_they_should() -> None:
    """χ² over the 16 patterns of four entries; 37.7 is its 99.9 % quantile for 15 degrees."""
    p = 0.2
    words = kept(p, SIZE // 4, 4)
    counts = torch.bincount((words @ torch.tensor([8.0, 4, 2, 1]).double()).long(), minlength=16)
    ones = torch.tensor([bin(k).count("1") for k in range(16)])
    expected = SIZE // 4 * (1 - p) ** ones * p ** (4 - ones)
    assert ((counts - expected) ** 2 / expected).sum() < 37.7


def test_one_call_after_another_draws_anew_and_the_seed_draws_again() -> None:
    torch.manual_seed(3)
    a, b = dropout(torch.ones(SIZE), 0.5), dropout(torch.ones(SIZE), 0.5)
    torch.manual_seed(3)
    again = dropout(torch.ones(SIZE), 0.5)
    assert torch.equal(again, a)
    assert abs(((a - 1) * (b - 1)).mean()) < 4.5 / math.sqrt(SIZE)
    assert not torch.equal(a, b)


def test_the_number_of_threads_does_not_matter() -> None:
    before, masks = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            masks.append(kept(0.2, SIZE))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*masks)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 7), (0, 4), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_dtype(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.ones(shape, dtype=dtype)
    y = dropout(x, 0.5)
    assert y.shape == x.shape
    assert y.dtype == dtype
    assert ((y == 0) | (y == 2)).all()


def test_layout_does_not_matter() -> None:
    x = torch.randn(6, 5)
    torch.manual_seed(0)
    expected = dropout(x, 0.5)
    torch.manual_seed(0)
    assert torch.equal(dropout(x.T.contiguous().T, 0.5), expected)


def test_evaluation_and_probability_zero_do_nothing() -> None:
    x = torch.randn(5)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0) is x


def test_derivatives_of_any_order_and_mode() -> None:
    x = torch.randn(4, 3, dtype=torch.float64).requires_grad_()

    def squared(x: Tensor) -> Tensor:
        torch.manual_seed(0)  # the same mask every time
        return dropout(x, 0.3).square()

    assert torch.autograd.gradcheck(squared, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(squared, x)


def test_compiled_code_draws_the_same_masks_and_a_new_one_each_time() -> None:
    torch.compiler.reset()
    x = torch.ones(1000, requires_grad=True)

    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        return dropout(x, 0.2), dropout(x, 0.2)

    compiled = torch.compile(twice, backend="aot_eager", fullgraph=True)
    torch.manual_seed(0)
    expected = twice(x)
    torch.manual_seed(0)
    got = compiled(x)
    assert_close(got, expected)
    assert not torch.equal(got[0], got[1])
    assert not torch.equal(compiled(x)[0], got[0])
    (gradient,) = torch.autograd.grad(got[0].sum(), x)
    assert_close(gradient, got[0].detach())  # the mask of the way there


def test_transforms_and_exported_programs_have_f_dropout() -> None:
    gradient = torch.func.grad(lambda x: dropout(x, 0.2).sum())(torch.ones(1000))
    assert set(gradient.unique().tolist()) == {0.0, 1.25}


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name in ("factored", "native")])
def test_what_is_kept_for_the_way_back_is_at_most_one_byte_per_entry(kernel: str) -> None:
    saved: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with use_kernel(kernel), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        dropout(torch.randn(100, requires_grad=True), 0.2)
    kept = sum(tensor.untyped_storage().nbytes() for tensor in saved)
    assert kept == {"factored": 100, "native": 0}[kernel]
