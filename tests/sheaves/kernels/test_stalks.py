"""Products with one small matrix per node: those of matmul, values and gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from graphs import randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf.sheaves.kernels import stalks
from coopsheaf.sheaves.kernels.stalks import (
    compose_product,
    multiply_stalks,
    stalk_product,
    subtract_stalk_product,
)

N = 5
# (d, h): every stalk dimension that is written out for compilers and two beyond, with few channels
# (entry by entry) and with many (by batches of matrices); the two on either side of the border.
SIZES = [(d, h) for d in range(1, 8) for h in (1, 3, 450)] + [(2, 99), (2, 100), (4, 24), (4, 25)]
EACH_SIZE = pytest.mark.parametrize(("d", "h"), SIZES)
EMPTY = [(0, 2, 3), (4, 0, 3), (4, 2, 0), (0, 2, 450), (0, 0, 0)]


def close(got: Tensor, want: Tensor) -> None:
    assert_close(got, want, rtol=1e-12, atol=1e-12)


def turned(tensor: Tensor) -> Tensor:
    """The same numbers, lying in memory in the opposite order of dimensions."""
    order = tuple(reversed(range(tensor.dim())))
    view = tensor.permute(order).contiguous().permute(order)
    assert torch.equal(view, tensor)
    assert tensor.numel() < 2 or not view.is_contiguous() or min(tensor.shape) == 1
    return view


def spread(tensor: Tensor) -> Tensor:
    """The same numbers with others between them."""
    wide = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1]), torch.nan, dtype=tensor.dtype)
    wide[..., ::2] = tensor
    return wide[..., ::2]


def gradients(function: Callable[..., Tensor], *leaves: Tensor) -> list[Tensor]:
    """The value, and the gradients of a sum whose weights are different everywhere."""
    leaves = tuple(leaf.detach().requires_grad_() for leaf in leaves)
    y = function(*leaves)
    return [y, *torch.autograd.grad((y * randn(*y.shape, seed=9)).sum(), leaves)]


def test_both_ways_to_multiply_are_tested() -> None:
    small = [stalks._is_small(randn(N, d, h)) for d, h in SIZES]
    assert 0 < sum(small) < len(small)
    border = [stalks._is_small(randn(1, *size)) for size in ((2, 99), (2, 100), (4, 24), (4, 25))]
    assert border == [True, False, True, False]


@EACH_SIZE
@pytest.mark.parametrize("lay", [Tensor.contiguous, turned, spread], ids=lambda lay: lay.__name__)
def test_products_are_those_of_matmul(d: int, h: int, lay: Callable[[Tensor], Tensor]) -> None:
    maps, x, y = randn(N, d, d), randn(N, d, h, seed=1), randn(N, d, h, seed=2)
    got = stalk_product(lay(maps), lay(x))
    close(got, maps @ x)
    assert got.is_contiguous()
    close(stalk_product(lay(maps).mT, lay(x)), maps.mT @ x)
    close(subtract_stalk_product(lay(y).clone(), lay(maps), lay(x)), y - maps @ x)


@EACH_SIZE
def test_a_difference_is_written_into_its_first_argument(d: int, h: int) -> None:
    y, maps, x = randn(N, d, h), randn(N, d, d, seed=1), randn(N, d, h, seed=2)
    want = y - maps @ x
    copies = maps.clone(), x.clone()
    assert subtract_stalk_product(y, maps, x) is y
    close(y, want)
    assert torch.equal(maps, copies[0])
    assert torch.equal(x, copies[1])


@EACH_SIZE
def test_one_matrix_for_all_nodes_spreads(d: int, h: int) -> None:
    """An expanded matrix has a stride of zero: read, never written."""
    matrix, x, y = randn(d, d), randn(N, d, h, seed=1), randn(N, d, h, seed=2)
    every = matrix.expand(N, -1, -1)
    close(stalk_product(every, x), matrix @ x)
    close(stalk_product(every.mT, x), matrix.T @ x)
    close(subtract_stalk_product(y.clone(), every, x), y - matrix @ x)
    close(compose_product(every, x), matrix @ x)


@EACH_SIZE
@pytest.mark.parametrize("lay", [Tensor.contiguous, turned, spread], ids=lambda lay: lay.__name__)
def test_gradients_are_those_of_matmul(d: int, h: int, lay: Callable[[Tensor], Tensor]) -> None:
    """The matrix is not symmetric: a transposed gradient would show."""
    matrix, x = randn(d, d), randn(N, d, h, seed=1)
    want = gradients(torch.matmul, matrix, x)
    for got, expected in zip(
        gradients(lambda matrix, x: multiply_stalks(lay(matrix), lay(x)), matrix, x),
        want,
        strict=True,
    ):
        close(got, expected)


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_only_what_is_asked_for_is_differentiated(wanted: tuple[bool, bool]) -> None:
    matrix, x = randn(3, 3).requires_grad_(wanted[0]), randn(N, 3, 4).requires_grad_(wanted[1])
    leaf = matrix if wanted[0] else x
    (got,) = torch.autograd.grad(multiply_stalks(matrix, x).square().sum(), leaf)
    (want,) = torch.autograd.grad((matrix @ x).square().sum(), leaf)
    close(got, want)


@pytest.mark.parametrize("shape", EMPTY, ids=str)
def test_nothing_is_multiplied_to_nothing(shape: tuple[int, int, int]) -> None:
    n, d, _ = shape
    maps, x = randn(n, d, d), randn(*shape)
    assert stalk_product(maps, x).shape == shape
    assert subtract_stalk_product(x.clone(), maps, x).shape == shape
    value, for_matrix, for_x = gradients(multiply_stalks, randn(d, d), x)
    assert value.shape == for_x.shape == shape
    assert torch.equal(for_matrix, torch.zeros(d, d).double())


@pytest.mark.parametrize(("d", "h"), [(1, 2), (2, 3), (3, 60), (6, 2), (6, 20)])
def test_second_derivatives_are_those_of_matmul(d: int, h: int) -> None:
    results = []
    for product in (multiply_stalks, torch.matmul):
        matrix, x = randn(d, d).requires_grad_(), randn(N, d, h, seed=1).requires_grad_()
        first = torch.autograd.grad(product(matrix, x).pow(3).sum(), (matrix, x), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (matrix, x))
        results.append([*first, *second])
    for got, want in zip(*results, strict=True):
        assert_close(got, want, rtol=1e-10, atol=1e-8)


def test_finite_differences_agree() -> None:
    inputs = randn(2, 2).requires_grad_(), randn(3, 2, 2, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(multiply_stalks, inputs)
    assert torch.autograd.gradgradcheck(multiply_stalks, inputs)


def test_a_matrix_that_depends_on_what_it_multiplies() -> None:
    """The second derivatives of the two arguments are kept apart, and both are there."""

    def through(product: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        x = randn(N, 2, 3).requires_grad_()
        y = product(x[0, :, :2].tanh(), x)
        (first,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    assert_close(through(multiply_stalks), through(torch.matmul), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", range(1, 8))
def test_transforms_and_forward_mode_look_inside(d: int) -> None:
    matrix, x, tangent = randn(d, d), randn(N, d, 3, seed=1), randn(N, d, 3, seed=2)
    value, along = torch.func.jvp(lambda x: multiply_stalks(matrix, x), (x,), (tangent,))
    close(value, matrix @ x)
    close(along, matrix @ tangent)
    got = torch.func.grad(lambda matrix: multiply_stalks(matrix, x).square().sum())(matrix)
    close(got, torch.func.grad(lambda matrix: (matrix @ x).square().sum())(matrix))
    matrices = randn(3, d, d, seed=4)
    close(torch.func.vmap(multiply_stalks, (0, None))(matrices, x), matrices[:, None] @ x)


@pytest.mark.parametrize("d", range(1, 8))
def test_compilers_see_small_products_written_out(d: int) -> None:
    """Up to five rows as one loop over the channels, beyond as a product of matrices."""
    torch.compiler.reset()
    calls: list[str] = []

    def look(graph: torch.fx.GraphModule, inputs: object) -> Callable[..., object]:
        calls.extend(str(node.target) for node in graph.graph.nodes if node.op != "placeholder")
        return graph.forward

    matrix, x = randn(d, d), randn(N, d, 3, seed=1)
    compiled = torch.compile(multiply_stalks, backend=look, fullgraph=True)
    close(compiled(matrix, x), matrix @ x)
    assert any("matmul" in call for call in calls) == (d > 5)
    maps = randn(N, d, d, seed=2)  # one for each node: rows must not be taken for columns
    close(torch.compile(compose_product, backend="eager", fullgraph=True)(maps, x), maps @ x)


@pytest.mark.parametrize("d", [2, 5, 6])
def test_compiled_gradients_are_those_of_matmul(d: int) -> None:
    torch.compiler.reset()
    compiled = torch.compile(multiply_stalks, backend="aot_eager", fullgraph=True)
    matrix, x = randn(d, d), randn(N, d, 3, seed=1)
    for got, want in zip(
        gradients(compiled, matrix, x), gradients(torch.matmul, matrix, x), strict=True
    ):
        close(got, want)


def test_half_precision_goes_by_matmul() -> None:
    matrix, x = randn(3, 3).bfloat16(), randn(N, 3, 4).bfloat16()
    assert torch.equal(multiply_stalks(matrix, x), matrix.expand(N, -1, -1) @ x)
