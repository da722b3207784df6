"""Products in bfloat16 by PyTorch's own operations, where no kernel is compiled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from graphs import randn
from torch.testing import assert_close

from coopsheaf.nn.products import are_halved, linear, use_products
from coopsheaf.sheaves.kernels import use_kernel


@pytest.fixture(autouse=True)
def without_compiled_kernels() -> Iterator[None]:
    with use_kernel("factored"):
        yield


def test_single_is_the_default_and_comes_back() -> None:
    x = randn(3, 4).float()
    assert not are_halved(x)
    with use_products("bf16"):
        assert are_halved(x)
        with use_products("single"):
            assert not are_halved(x)
    assert not are_halved(x)
    with pytest.raises(ValueError, match="`name` must be one of"), use_products("half"):
        pass


def test_only_single_precision_is_halved() -> None:
    with use_products("bf16"):
        x, weight = randn(3, 4), randn(5, 4, seed=1)
        assert torch.equal(linear(x, weight), F.linear(x, weight))
        assert not are_halved(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert not are_halved(x.float())


@pytest.mark.parametrize("shape", [(7, 4), (2, 3, 4), (0, 4)])
def test_factors_are_rounded_and_gradients_too(shape: tuple[int, ...]) -> None:
    x = randn(*shape).float().requires_grad_()
    weight = randn(5, 4, seed=1).float().requires_grad_()
    bias = randn(5, seed=2).float().requires_grad_()
    with use_products("bf16"):
        y = linear(x, weight, bias)
    grad = randn(*shape[:-1], 5, seed=3).float()
    got = torch.autograd.grad(y, [x, weight, bias], grad)
    half_x, half_w, half_g = (t.detach().bfloat16().float() for t in (x, weight, grad))
    rows, rows_x = half_g.flatten(0, -2), half_x.flatten(0, -2)
    wanted = [half_g @ half_w, rows.T @ rows_x, grad.flatten(0, -2).sum(0)]
    assert y.dtype == torch.float32
    assert_close(y, half_x @ half_w.T + bias, rtol=1e-2, atol=2e-2)
    assert_close(list(got), wanted, rtol=1e-2, atol=3e-2)


def test_it_can_be_differentiated_twice() -> None:
    x = randn(6, 4).float().requires_grad_()
    weight = randn(5, 4, seed=1).float()
    with use_products("bf16"):
        y = linear(x, weight).sin()
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    plain = x.detach().requires_grad_()
    (exact,) = torch.autograd.grad(F.linear(plain, weight).sin().sum(), plain, create_graph=True)
    (wanted,) = torch.autograd.grad(exact.sum(), plain)
    assert_close(second, wanted, rtol=3e-2, atol=5e-2)
