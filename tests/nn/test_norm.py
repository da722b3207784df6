"""The layer norm as a compiled kernel: PyTorch's function, gradients and second derivatives."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from accuracy import check_as_exact, with_gradients
from graphs import randn
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf.nn import norm as module
from coopsheaf.nn.norm import apply_norm
from coopsheaf.sheaves.kernels import native, use_kernel

if not native.is_available():
    pytest.skip("coopsheaf-kernels is not installed", allow_module_level=True)


@pytest.fixture(autouse=True)
def compiled() -> Any:
    with use_kernel("native"):
        yield


def layer_norm(k: int, eps: float = 1e-5) -> nn.LayerNorm:
    norm = nn.LayerNorm(k, eps=eps)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


@pytest.mark.parametrize("sizes", [(1, 1), (3, 2), (700, 96), (41, 17), (5, 130), (300, 16)])
def test_it_is_the_layer_norm(sizes: tuple[int, int]) -> None:
    n, k = sizes
    inputs = [randn(n, k, seed=1) * 3 + 5, randn(k, seed=2), randn(k, seed=3)]
    single = [tensor.float() for tensor in inputs]
    composed = partial(module._compose, eps=1e-5)
    exact = with_gradients(composed, [tensor.double() for tensor in single])
    ours = lambda *given: module._Norm.apply(*given, 1e-5)  # noqa: E731
    check_as_exact(with_gradients(ours, single), with_gradients(composed, single), exact)


def test_eps_is_the_modules() -> None:
    norm, x = layer_norm(8, eps=0.5), randn(4, 8).float()
    with torch.no_grad():
        assert_close(apply_norm(norm, x), norm(x))


def test_rows_that_do_not_vary_are_moved_to_the_bias() -> None:
    norm = layer_norm(6)
    assert_close(apply_norm(norm, torch.full((3, 6), 7.0)), norm.bias.expand(3, 6))


def test_derivatives_of_derivatives() -> None:
    norm, x = layer_norm(5), randn(4, 5).float().requires_grad_()

    def second(function: Any) -> Tensor:
        (first,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    assert_close(second(partial(apply_norm, norm)), second(norm), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_do_not_depend_on_threads(threads: int) -> None:
    norm, x = layer_norm(32), randn(3000, 32).float()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        apply_norm(norm, x).square().sum().backward()
        alone = norm.weight.grad
        norm.zero_grad()
        torch.set_num_threads(threads)
        apply_norm(norm, x).square().sum().backward()
    finally:
        torch.set_num_threads(before)
    assert alone is not None
    assert norm.weight.grad is not None
    assert torch.equal(alone, norm.weight.grad)


@pytest.mark.parametrize(
    "norm",
    [
        nn.LayerNorm(4, elementwise_affine=False),
        nn.LayerNorm(4, bias=False),
        nn.BatchNorm1d(4),
        nn.Identity(),
    ],
)
def test_other_norms_are_called_as_they_are(norm: nn.Module) -> None:
    x = randn(6, 4).float()
    assert_close(apply_norm(norm, x), norm(x))


def test_hooks_and_doubles_and_empty_rows_go_the_ordinary_way() -> None:
    norm = layer_norm(4)
    seen: list[Tensor] = []
    handle = norm.register_forward_hook(lambda _, __, out: seen.append(out))
    apply_norm(norm, randn(2, 4).float())
    handle.remove()
    assert len(seen) == 1
    assert apply_norm(layer_norm(4).double(), randn(2, 4)).dtype == torch.float64
    assert apply_norm(norm, torch.empty(0, 4)).shape == (0, 4)
