r"""Polynomials of operators, and what bounds an operator from above.

Products alone are needed, K of them for a polynomial of degree K, which reaches K hops as far as
the operator does. Nothing here needs the operator to be symmetric, but what a polynomial does to
features is only read off its values on the spectrum where it is: Chebyshev polynomials stay
within [-1, 1] on an interval, and an operator that is not normal is not held there by its
eigenvalues. For those :func:`norm_bound` bounds the operator itself, from one pass over the edges:
with b at least that, :math:`\|A / b\| \le 1`, and powers do not grow. The numerical radius w, which
:func:`~coopsheaf.sheaves.numerical_radius` bounds at the price of a few eigenvalue problems, is
smaller by up to one half where the operator is not normal, and :math:`\|A^k\| \le 2 w^k`: powers
of A / w stay below 2 however many there are. Both hold; for a few powers of an operator that is
nearly normal the norm is as good, and only the norm is cheap enough for every step of a training.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from coopsheaf.sheaves.laplacian import EdgeMapOperator, GraphOperator, NodeMapOperator, sum_at
from coopsheaf.sheaves.operator import (
    BlockDiagonal,
    Complex,
    DirectSum,
    Identity,
    Multiple,
    Operator,
    Product,
    Sum,
)
from coopsheaf.tensor_checks import check_floating


class Polynomial(Operator):
    r"""Powers of an operator, :math:`\sum_k c_k A^k`, by Horner's rule.

    Args:
        operator: A, from nodes to nodes.
        coefficients: c, ``(K + 1,)``, from the constant term on; may be learned.
    """

    def __init__(self, operator: Operator, coefficients: Tensor) -> None:
        self.operator, self.coefficients = check_square(operator), _check_row(coefficients)

    @property
    def domain(self) -> tuple[int, int]:
        return self.operator.domain

    codomain = domain

    def _mv(self, x: Tensor) -> Tensor:
        *others, last = self.coefficients.to(x.dtype).unbind()
        y = last * x
        for coefficient in reversed(others):
            y = self.operator._mv(y) + coefficient * x
        return y

    def to_dense(self) -> Tensor:
        matrix = self.operator.to_dense()
        eye = torch.eye(matrix.shape[0], dtype=matrix.dtype, device=matrix.device)
        terms = zip(_powers(matrix, eye, len(self.coefficients)), self.coefficients, strict=True)
        return sum((c.to(matrix.dtype) * power for power, c in terms), torch.zeros_like(matrix))

    @property
    def T(self) -> Operator:
        return Polynomial(self.operator.T, self.coefficients)


class Chebyshev(Operator):
    r"""Chebyshev polynomials of an operator, :math:`\sum_k c_k T_k(\hat A)`.

    :math:`\hat A = (2 A - (a + b) I) / (b - a)`, :math:`T_0 = I`, :math:`T_1 = \hat A`,
    :math:`T_{k+1} = 2 \hat A T_k - T_{k-1}`. For a symmetric operator with its spectrum in [a, b],
    :math:`\|T_k(\hat A)\| \le 1`. Normalised Laplacians of undirected sheaves have [0, 2]; of
    others :func:`norm_bound` gives b.

    Args:
        operator: A, from nodes to nodes.
        coefficients: c, ``(K + 1,)``; may be learned.
        interval: (a, b), a < b.
    """

    def __init__(
        self,
        operator: Operator,
        coefficients: Tensor,
        interval: tuple[float | Tensor, float | Tensor] = (0.0, 2.0),
    ) -> None:
        self.operator, self.coefficients = check_square(operator), _check_row(coefficients)
        a, b = interval
        if not bool(a < b):
            raise ValueError(f"`interval` must be (a, b) with a < b; got ({float(a)}, {float(b)})")
        self.interval = a, b

    @property
    def domain(self) -> tuple[int, int]:
        return self.operator.domain

    codomain = domain

    def _hat(self, x: Tensor) -> Tensor:
        a, b = self.interval
        return (2 * self.operator._mv(x) - (a + b) * x) / (b - a)

    def _mv(self, x: Tensor) -> Tensor:
        first, *others = self.coefficients.to(x.dtype).unbind()
        before, now, y = x, x, first * x
        for k, coefficient in enumerate(others):
            after = self._hat(now)
            before, now = now, after if k == 0 else 2 * after - before
            y = y + coefficient * now
        return y

    def to_dense(self) -> Tensor:
        n, d = self.domain
        matrix = self.operator.to_dense()
        eye = torch.eye(n * d, dtype=matrix.dtype, device=matrix.device)
        (a, b), c = self.interval, self.coefficients.to(matrix.dtype)
        hat = (2 * matrix - (a + b) * eye) / (b - a)
        terms = [eye, hat]
        while len(terms) < len(c):
            terms.append(2 * hat @ terms[-1] - terms[-2])
        pairs = zip(terms, c, strict=False)
        return sum((weight * term for term, weight in pairs), torch.zeros_like(matrix))

    @property
    def T(self) -> Operator:
        return Chebyshev(self.operator.T, self.coefficients, self.interval)


def norm_bound(operator: Operator) -> Tensor:
    r"""An upper bound of the operator norm :math:`\|A\|_2`, hence of spectrum and numerical range.

    For blocks :math:`A_{ij}`, :math:`\|A\|_2^2 \le \max_i \sum_j \|A_{ij}\| \cdot
    \max_j \sum_i \|A_{ij}\|` (Schur's test); sums, products and multiples are bounded by
    their parts. One pass over the edges.

    Args:
        operator: a Laplacian, a block diagonal, or what is made of them by ``+``, ``@``, multiples,
            direct sums and complex numbers.

    Returns:
        A scalar, without gradient.
    """
    if isinstance(operator, Sum):
        return norm_bound(operator.a) + norm_bound(operator.b)
    if isinstance(operator, Product):
        return norm_bound(operator.a) * norm_bound(operator.b)
    if isinstance(operator, Multiple):
        factor = torch.as_tensor(operator.factor).detach().abs()
        return factor * norm_bound(operator.a)
    if isinstance(operator, Identity):
        return torch.ones((), dtype=operator.dtype, device=operator.device)
    if isinstance(operator, DirectSum):
        return torch.stack([norm_bound(part) for part in operator.parts]).max()
    if isinstance(operator, Complex):
        return norm_bound(operator.real) + norm_bound(operator.imaginary)
    if isinstance(operator, BlockDiagonal):
        blocks = operator.blocks.detach()
        sizes = _norms(blocks) if blocks.dim() == 3 else blocks.abs()
        return sizes.max() if sizes.numel() else sizes.new_zeros(())
    if isinstance(operator, NodeMapOperator | GraphOperator):
        return _block_bound(operator)
    raise ValueError(
        "`operator` must be a Laplacian, or a sum, product or multiple of them; "
        f"got {type(operator).__name__}"
    )


@torch.no_grad()
def _block_bound(operator: NodeMapOperator | GraphOperator) -> Tensor:
    graph, diagonal = operator.graph, operator.diagonal
    own = diagonal.abs() if diagonal.dim() == 1 else _norms(diagonal)  # (n,)
    if isinstance(operator, GraphOperator):
        edges = own.new_ones(graph.num_edges)
    elif isinstance(operator, EdgeMapOperator):
        edges = _norms(operator.left.mT @ operator.right)
    else:
        edges = _norms(operator.left)[graph.target] * _norms(operator.right)[graph.source]
    if operator.edge_weight is not None:
        edges = edges * operator.edge_weight.abs()
    rows = own + sum_at(graph.target, edges, graph.num_nodes)
    columns = own + sum_at(graph.source, edges, graph.num_nodes)
    if not rows.numel():
        return rows.new_zeros(())
    return (rows.max() * columns.max()).sqrt()


def _norms(matrices: Tensor) -> Tensor:
    """Largest singular values, ``(k, d, d)`` to ``(k,)``."""
    if not matrices.numel():
        return matrices.new_zeros(matrices.shape[0])
    return torch.linalg.matrix_norm(matrices, ord=2)


def heat(operator: Operator, x: Tensor, time: float, *, bound: float | None = None) -> Tensor:
    r"""What diffusion makes of features: :math:`e^{-tA} x`, to the precision of x's numbers.

    The solution at time t of :math:`x' = -A x`, for any operator, symmetric or not: the interval is
    cut into steps of :math:`\|s A\| \le 1`, and each is Taylor's series, whose terms then fall
    like 1/k!. Takes about 18 products per unit of :math:`t \|A\|` in double precision.

    Args:
        operator: A, from nodes to nodes.
        x: ``(n, d, h)``.
        time: t, not negative.
        bound: an upper bound of :math:`\|A\|`; :func:`norm_bound` if not given.
    """
    check_square(operator)
    check_floating("x", x)
    if not (math.isfinite(time) and time >= 0):
        raise ValueError(f"`time` must be a number that is not negative; got {time}")
    size = float(norm_bound(operator)) if bound is None else float(bound)
    steps = max(1, math.ceil(time * size))
    step, enough = time / steps, torch.finfo(x.dtype).eps
    for _ in range(steps):
        term, total, k, share = x, x, 0, 1.0
        while share > enough:  # at least as large as the next term's share of x
            k += 1
            share *= step * size / k
            term = operator.mv(term) * (-step / k)
            total = total + term
        x = total
    return x


def check_square(operator: Operator) -> Operator:
    """Raise unless an operator ends where it begins."""
    if not isinstance(operator, Operator):
        raise ValueError(f"`operator` must be an Operator; got {type(operator).__name__}")
    if operator.domain != operator.codomain:
        raise ValueError(f"`operator` must end where it begins; got {operator}")
    return operator


def _check_row(coefficients: Tensor) -> Tensor:
    check_floating("coefficients", coefficients)
    if coefficients.dim() != 1 or not coefficients.numel():
        raise ValueError(
            "`coefficients` must have shape (K + 1,) with at least one entry; "
            f"got {tuple(coefficients.shape)}"
        )
    return coefficients


def _powers(matrix: Tensor, eye: Tensor, count: int) -> list[Tensor]:
    found = [eye]
    while len(found) < count:
        found.append(matrix @ found[-1])
    return found
