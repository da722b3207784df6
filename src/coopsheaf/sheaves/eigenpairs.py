r"""The smallest eigenvalues of a large symmetric operator, from products alone.

Subspace iteration with Chebyshev filters (Zhou, Saad, Tiago & Chelikowsky, 2006). A block of p > k
vectors is multiplied by a polynomial in the operator that stays within [-1, 1] on the unwanted part
[a, b] of the spectrum and grows as fast as any polynomial can below it; the eigenvectors of the
operator on the span of the block (Rayleigh and Ritz) are the next block. Vectors are treated as a
block, so that an eigenvalue is found as often as it occurs, and memory is a few blocks: O(n d p).

We differ from the published method in where [a, b] begins. There a is the largest Ritz value of the
block. If the wanted eigenvalue occurs more often than the block has vectors (a graph with many
components), a tends to that eigenvalue and the filter to one that does nothing. So a is kept away
from the smallest Ritz value, at first far away; the degree doubles, and a comes closer, whenever a
step gains less than a digit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.operator import Operator

FIRST_DEGREE, LAST_DEGREE = 16, 4096
GAIN = 10.0  # what a step has to divide the residuals by
LANCZOS_STEPS = 12


class Eigenpairs(NamedTuple):
    """Eigenvalues, increasing, and their eigenvectors as features."""

    values: Tensor  # (k,)
    features: Tensor  # (n, d, k), orthonormal


def smallest_eigenpairs(
    operator: Operator,
    k: int,
    *,
    tolerance: float | None = None,
    max_products: int = 50_000,
    seed: int = 0,
) -> Eigenpairs:
    r"""The k smallest eigenvalues of a symmetric operator and their eigenvectors.

    Needs nothing but products. Each pair fulfils :math:`\|A v - \lambda v\| \le t \|A\|` for the
    tolerance t, so that an eigenvalue is off by no more than that, and usually by far less.
    Eigenvalues have derivatives with respect to whatever the operator is made of,
    :math:`d\lambda = v^\top dA\, v`; eigenvectors have none.

    The closer λ_k and its successors are, compared with the whole spectrum, the longer it takes:
    on a path of n nodes the number of products grows like n.

    Args:
        operator: symmetric, on nodes; the Laplacian of an undirected sheaf is.
        k: how many.
        tolerance: by default :math:`\epsilon^{3/4}` of the operator's numbers (2e-12 in double
            precision).
        max_products: give up after so many products with a block.
        seed: of the block that is begun with.
    """
    n, d = _check_symmetric(operator)
    if check_int("k", k, minimum=1) > n * d:
        raise ValueError(f"`k` must be at most the size of the operator, {n * d}; got {k}")
    numbers = find_numbers(operator)
    dtype = torch.get_default_dtype() if numbers is None else numbers.dtype
    device = None if numbers is None else numbers.device
    if dtype in (torch.bfloat16, torch.float16):
        raise ValueError(f"`operator` must have numbers of single or double precision; got {dtype}")
    if tolerance is None:
        tolerance = torch.finfo(dtype).eps ** 0.75
    draw = torch.Generator().manual_seed(seed)
    width = min(k + max(8, k // 2), n * d)  # more vectors than wanted: the last ones are slow
    block = torch.randn(n * d, width, dtype=dtype, generator=draw).to(device)
    with torch.no_grad():
        features = _iterate(operator, block, k, tolerance, max_products).view(n, d, k)
    values = (features * operator.mv(features)).sum(dim=(0, 1))
    return Eigenpairs(values, features)


def _iterate(
    operator: Operator, block: Tensor, k: int, tolerance: float, max_products: int
) -> Tensor:
    """The k wanted vectors, ``(nd, k)``, of a block ``(nd, p)`` after as many steps as it takes."""
    top = _largest(operator, block[:, 0])
    growth = 0.7 * math.log(1 / torch.finfo(block.dtype).eps)  # more would drown small components
    degree, products, last = FIRST_DEGREE, 0, math.inf
    while True:
        block = torch.linalg.qr(block).Q
        image = _apply(operator, block)
        values, rotation = torch.linalg.eigh(block.T @ image)
        block = block @ rotation
        wanted = image @ rotation[:, :k] - block[:, :k] * values[:k]
        size = max(abs(top), abs(values[0].item()))
        residual = torch.linalg.vector_norm(wanted, dim=0).max().item()
        if residual <= tolerance * size or block.shape[0] == block.shape[1]:
            return block[:, :k]
        if products >= max_products:
            raise ValueError(
                f"`max_products` must be larger, or `tolerance`: after {products} products the "
                f"residual is {residual / size:.1e} of the operator's norm, not {tolerance:.1e}"
            )
        if residual > last / GAIN:
            degree = min(2 * degree, LAST_DEGREE)
        last = residual
        low, width = values[0].item(), top - values[0].item()
        start = max((values[-1].item() - low) / width, (growth / (4 * degree)) ** 2)
        start = min(start, 0.9)  # relative to the whole spectrum
        steps = min(degree, math.ceil(growth / (2 * math.sqrt(start))))
        block = _filter(operator, block, low, low + start * width, top, steps)
        products += steps + 1


def _filter(
    operator: Operator, x: Tensor, low: float, start: float, top: float, degree: int
) -> Tensor:
    """T_m((A - c) / e) x: the Chebyshev polynomial of [start, top], scaled to 1 at ``low``."""
    radius, centre = (top - start) / 2, (top + start) / 2
    scale = first = radius / (low - centre)
    before, now = x, (_apply(operator, x) - centre * x) * (scale / radius)
    for _ in range(degree - 1):
        following = 1 / (2 / first - scale)
        image = _apply(operator, now) - centre * now
        before, now = now, image * (2 * following / radius) - before * (scale * following)
        scale = following
    return now


def _largest(operator: Operator, start: Tensor) -> float:
    """An upper bound of the spectrum: a few Lanczos steps, and what is left over."""
    now, before = start / torch.linalg.vector_norm(start), torch.zeros_like(start)
    diagonal, beside, rest = [], [], 0.0
    for _ in range(min(LANCZOS_STEPS, start.numel())):
        image = _apply(operator, now[:, None])[:, 0] - rest * before
        diagonal.append(torch.dot(image, now).item())
        image = image - diagonal[-1] * now
        rest = torch.linalg.vector_norm(image).item()
        beside.append(rest)
        if rest <= 1e-6 * abs(diagonal[0]):
            break
        before, now = now, image / rest
    matrix = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    inner = torch.tensor(beside[:-1], dtype=torch.float64)
    matrix += torch.diag(inner, 1) + torch.diag(inner, -1)
    bound = torch.linalg.eigvalsh(matrix)[-1].item() + rest
    return bound + 0.01 * abs(bound)  # a Ritz value is never above the spectrum, so neither is it


def _apply(operator: Operator, x: Tensor) -> Tensor:
    """The operator on vectors, ``(nd, p)``."""
    return operator.mv(x.view(*operator.domain, -1)).reshape(x.shape)


def _check_symmetric(operator: Operator) -> tuple[int, int]:
    """The size (n, d) of a symmetric operator; others are refused."""
    if not isinstance(operator, Operator):
        raise ValueError(f"`operator` must be an Operator; got {type(operator).__name__}")
    if operator.domain != operator.codomain:
        raise ValueError(f"`operator` must be square to have a spectrum; got {operator}")
    if not looks_symmetric(operator):
        raise ValueError(
            "`operator` must be symmetric: only then are products enough for its smallest "
            "eigenvalues; got one that differs from its transpose (A.T @ A is symmetric; its "
            "eigenvalues are the squared singular values of A)"
        )
    return operator.domain


def looks_symmetric(operator: Operator) -> bool:
    """Whether a square operator and its transpose do the same to four random vectors."""
    numbers = find_numbers(operator)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(*operator.domain, 4, generator=draw)
    x = x if numbers is None else x.to(numbers)
    with torch.no_grad():
        one, other = operator.mv(x), operator.T.mv(x)
    if not one.numel():
        return True
    # Sums over neighbours come in another order: a multiple of the rounding is allowed.
    return bool((one - other).abs().max() <= 256 * torch.finfo(x.dtype).eps * one.abs().max())


def find_numbers(operator: Operator) -> Tensor | None:
    """Some tensor that an operator is made of, for dtype and device; ``None`` if there is none."""
    for part in vars(operator).values():
        for item in part if isinstance(part, tuple | list) else (part,):
            if isinstance(item, Tensor) and item.is_floating_point() and item.dim() > 0:
                return item
            found = find_numbers(item) if isinstance(item, Operator) else None
            if found is not None:
                return found
    return None
