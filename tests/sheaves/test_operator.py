"""The algebra of operators, where it is not covered by the laws."""

from __future__ import annotations

import pytest
import torch
from graphs import path, randn, random_flat
from laws import EXACT, check_operator
from torch.testing import assert_close

from coopsheaf import Graph, Sheaf, coboundary, in_laplacian, out_laplacian
from coopsheaf.sheaves.laplacian import GraphOperator
from coopsheaf.sheaves.operator import BlockDiagonal, Complex, DirectSum, Identity

FLAT = random_flat(Graph(path(4)), 2)


def test_sums_products_and_multiples_are_operators() -> None:
    a, b = out_laplacian(FLAT), in_laplacian(FLAT)
    for operator in (a + b, a @ b, 3 * a, a * 0.5, a - b, torch.tensor(2.0).double() * a, a.T @ b):
        check_operator(operator)
    check_operator(Identity(4, 2, dtype=torch.float64))
    assert_close(sum([a, b]).to_dense(), a.to_dense() + b.to_dense(), **EXACT)
    x = randn(4, 2, 3)
    assert_close((a @ b).mv(x), a.mv(b.mv(x)), **EXACT)


def test_complex_operators_are_those_of_complex_numbers() -> None:
    a, b = out_laplacian(FLAT), in_laplacian(FLAT)
    both = Complex(a, b)
    check_operator(both)
    assert both.domain == (4, 4)
    z = torch.complex(randn(4, 2, 3), randn(4, 2, 3, seed=1))
    want = torch.complex(a.to_dense(), b.to_dense()) @ z.flatten(0, 1)
    got = both.mv(torch.cat([z.real, z.imag], dim=1))
    assert_close(torch.complex(got[:, :2], got[:, 2:]).flatten(0, 1), want, **EXACT)
    delta = coboundary(Sheaf(path(4)[:, :3], randn(3, 2, 2, 2)))
    check_operator(Complex(delta, 2 * delta))
    with pytest.raises(ValueError, match="`real` and `imaginary` must have the same shape"):
        Complex(a, Identity(4, 1))


def test_a_factor_can_be_learned() -> None:
    factor = torch.tensor(0.5).double().requires_grad_()
    x = randn(4, 2, 3)
    (factor * out_laplacian(FLAT)).mv(x).sum().backward()
    assert_close(factor.grad, out_laplacian(FLAT).mv(x).sum())


@pytest.mark.parametrize("blocks", [randn(4), randn(4, 2), randn(4, 2, 2)], ids=["n", "nd", "ndd"])
def test_block_diagonals(blocks) -> None:
    operator = BlockDiagonal(blocks, 2 if blocks.dim() == 1 else None)
    check_operator(operator)
    assert operator.domain == (4, 2)
    x = randn(4, 2, 3)
    for i in range(4):
        block = blocks[i] * torch.eye(2).double() if blocks.dim() == 1 else blocks[i]
        block = block.diag() if block.dim() == 1 else block
        assert_close(operator.mv(x)[i], block @ x[i], **EXACT)
    with pytest.raises(ValueError, match="`stalk_dim` must be given"):
        BlockDiagonal(randn(4))


def test_a_direct_sum_acts_on_slices_of_the_stalks() -> None:
    a, b = out_laplacian(FLAT), GraphOperator(Graph(path(4)), randn(4), randn(6))
    total = DirectSum([a, b, a])
    check_operator(total)
    check_operator(DirectSum([a]))
    assert repr(total) == "DirectSum(4x5 -> 4x5)"
    x = randn(4, 5, 3)
    want = torch.cat([a.mv(x[:, :2]), b.mv(x[:, 2:3]), a.mv(x[:, 3:])], dim=1)
    assert_close(total.mv(x), want, **EXACT)
    delta = coboundary(Sheaf(path(4)[:, :3], randn(3, 2, 2, 2)))
    check_operator(DirectSum([delta, delta]))
    for parts in ([], [a, Identity(5, 1)]):
        with pytest.raises(ValueError, match="`parts` must be operators, at least one, on the"):
            DirectSum(parts)


def test_shapes_must_fit() -> None:
    delta = coboundary(Sheaf(torch.tensor([[0, 1], [1, 2]]), randn(2, 2, 2, 2)))
    with pytest.raises(ValueError, match="must have the same shape to be added"):
        delta + delta.T
    with pytest.raises(ValueError, match="must end where the left one begins"):
        delta @ delta
    with pytest.raises(ValueError, match=r"takes a number as factor.*shape \(3,\)"):
        delta * torch.ones(3)
    with pytest.raises(TypeError):
        delta @ "x"  # type: ignore[operator]
    assert repr(delta) == "Coboundary(3x2 -> 2x2)"
