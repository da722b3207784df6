"""The inverse square root of blocks: value, gradient, and the places where others divide by 0."""

from __future__ import annotations

import pytest
import torch
from graphs import randn, random_orthogonal
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from coopsheaf.sheaves.kernels.diagonal import inverse_sqrt


def blocks_with(values: Tensor, seed: int = 0) -> Tensor:
    basis = random_orthogonal(values.shape[0], values.shape[1], seed)
    return (basis * values.unsqueeze(-2)) @ basis.mT


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(0, 99))
def test_it_is_the_inverse_of_the_root(d: int, seed: int) -> None:
    a = randn(4, d, d, seed=seed)
    blocks = a.mT @ a + 0.1 * torch.eye(d, dtype=torch.float64)
    root = inverse_sqrt(blocks)
    eye = torch.eye(d, dtype=torch.float64).expand(4, d, d)
    assert_close(root @ blocks @ root, eye, rtol=0, atol=1e-9)
    assert_close(root, root.mT, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0, 5.0], [3.0, 3.0, 3.0], [2.0, 2.0, 1.0], [1.0, 1.0 + 1e-9, 4.0]],
    ids=["distinct", "all-equal", "two-equal", "nearly-equal"],
)
def test_gradient_is_exact_also_where_eigenvalues_coincide(values: list[float]) -> None:
    blocks = blocks_with(torch.tensor([values], dtype=torch.float64)).requires_grad_()

    def root(b: Tensor) -> Tensor:  # gradcheck moves entries one by one: stay symmetric
        return inverse_sqrt((b + b.mT) / 2)

    assert torch.autograd.gradcheck(root, (blocks,), atol=1e-6)


def test_eigh_alone_would_fail_there() -> None:
    """The reason for the custom derivative."""
    blocks = torch.eye(3, dtype=torch.float64)[None].requires_grad_()
    values, vectors = torch.linalg.eigh(blocks)
    naive = (vectors * values.rsqrt().unsqueeze(-2)) @ vectors.mT
    (gradient,) = torch.autograd.grad(naive.square().sum(), blocks)
    assert not torch.isfinite(gradient).all()
    (ours,) = torch.autograd.grad(inverse_sqrt(blocks).square().sum(), blocks)
    assert_close(ours, -torch.eye(3, dtype=torch.float64)[None], rtol=0, atol=1e-12)


def test_pseudo_inverse_of_singular_blocks() -> None:
    blocks = blocks_with(torch.tensor([[0.0, 4.0, 9.0], [0.0, 0.0, 0.0]], dtype=torch.float64))
    root = inverse_sqrt(blocks)
    expected = torch.linalg.pinv(blocks[0])
    assert_close(root[0] @ root[0], expected, rtol=0, atol=1e-10)
    assert_close(root[1], torch.zeros(3, 3, dtype=torch.float64), rtol=0, atol=0)


def test_gradient_along_blocks_of_the_same_rank() -> None:
    """D = AᵀA with A of rank 1 keeps its rank when A's entries move."""
    row = randn(1, 1, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: inverse_sqrt(a.mT @ a), (row,), atol=1e-6)


def test_scalars_are_one_by_one_blocks() -> None:
    scalars = torch.tensor([0.0, 0.25, 4.0], dtype=torch.float64).requires_grad_()
    as_blocks = inverse_sqrt(scalars[:, None, None])[:, 0, 0]
    assert_close(inverse_sqrt(scalars), as_blocks, rtol=0, atol=1e-12)
    assert_close(inverse_sqrt(scalars), torch.tensor([0.0, 2.0, 0.5]).double())
    (a,) = torch.autograd.grad(inverse_sqrt(scalars).sum(), scalars)
    (b,) = torch.autograd.grad(as_blocks.sum(), scalars)
    assert_close(a, b, rtol=0, atol=1e-12)
    assert_close(a, torch.tensor([0.0, -4.0, -1 / 16]).double())


def test_half_precision() -> None:
    blocks = blocks_with(torch.tensor([[1.0, 4.0]], dtype=torch.float64)).bfloat16()
    assert inverse_sqrt(blocks).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", ["scalars", "blocks"])
def test_gradients_are_finite_at_every_magnitude(dtype: torch.dtype, form: str) -> None:
    exponents = torch.arange(-300 if dtype == torch.float64 else -37, 30, dtype=torch.float64)
    values = (10**exponents).to(dtype).requires_grad_()
    eye = torch.eye(2, dtype=dtype)
    diagonal = values if form == "scalars" else values[:, None, None] * eye
    (gradient,) = torch.autograd.grad(inverse_sqrt(diagonal).sum(), values)
    assert torch.isfinite(gradient).all()


def test_rank_in_half_precision_is_that_of_the_numbers_given() -> None:
    rows = randn(50, 1, 3)
    blocks = (rows.mT @ rows).bfloat16()
    values = torch.linalg.eigvalsh(inverse_sqrt(blocks).double())
    assert ((values.abs() > 0.05 * values.amax(-1, keepdim=True)).sum(-1) == 1).all()


def test_second_and_third_derivatives_of_blocks() -> None:
    """Also where eigenvalues coincide, and where a block is zero."""
    values = torch.tensor([[1.0, 4.0], [2.0, 2.0], [1.0, 1.0]], dtype=torch.float64)
    blocks = blocks_with(values).detach().requires_grad_()

    def root(blocks: Tensor) -> Tensor:
        return inverse_sqrt((blocks + blocks.mT) / 2)

    def slope(blocks: Tensor) -> Tensor:
        return torch.autograd.grad(root(blocks).pow(3).sum(), blocks, create_graph=True)[0]

    assert torch.autograd.gradgradcheck(root, (blocks,))
    assert torch.autograd.gradgradcheck(slope, (blocks,))
    scalars = torch.tensor([1.0, 2.0], dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradgradcheck(inverse_sqrt, (scalars,))
    nothing = torch.zeros(1, 2, 2, dtype=torch.float64).requires_grad_()
    assert (slope(nothing) == 0).all()


def test_second_derivatives_of_singular_blocks_are_refused_rather_than_wrong() -> None:
    blocks = torch.diag(torch.tensor([1.0, 0.0]).double())[None].requires_grad_()
    with pytest.raises(RuntimeError, match=r"second derivatives .* are not implemented"):
        torch.autograd.grad(inverse_sqrt(blocks).sum(), blocks, create_graph=True)


def test_transforms_see_the_same_root() -> None:
    values = torch.tensor([[1.0, 4.0], [2.0, 2.0], [3.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    blocks = blocks_with(values).detach()
    weights = randn(*blocks.shape, seed=5)
    leaf = blocks.clone().requires_grad_()
    (want,) = torch.autograd.grad((inverse_sqrt(leaf) * weights).sum(), leaf)
    got = torch.func.grad(lambda b: (inverse_sqrt(b) * weights).sum())(blocks)
    assert_close(got, want, rtol=0, atol=1e-12)


def test_autocast_does_not_reach_the_root() -> None:
    blocks = blocks_with(torch.tensor([[1.0, 4.0]], dtype=torch.float64)).float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        root = inverse_sqrt(blocks)
        (gradient,) = torch.autograd.grad(root.sum(), blocks)
    assert root.dtype == gradient.dtype == torch.float32
    assert_close(root, inverse_sqrt(blocks), rtol=0, atol=0)


def test_it_compiles_and_has_forward_derivatives() -> None:
    blocks = blocks_with(torch.tensor([[1.0, 4.0], [2.0, 2.0]], dtype=torch.float64))
    blocks, weights = blocks.requires_grad_(), randn(2, 2, 2, seed=5)
    (want,) = torch.autograd.grad((inverse_sqrt(blocks) * weights).sum(), blocks)
    compiled = torch.compile(inverse_sqrt, backend="aot_eager", fullgraph=True)
    (got,) = torch.autograd.grad((compiled(blocks) * weights).sum(), blocks)
    assert_close(got, want, rtol=0, atol=1e-12)
    step = randn(2, 2, 2, seed=6)
    step = step + step.mT
    _, tangent = torch.func.jvp(inverse_sqrt, (blocks.detach(),), (step,))
    assert_close((tangent * weights).sum(), (want * step).sum(), rtol=0, atol=1e-12)
