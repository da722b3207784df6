"""Spectra, harmonic spaces and energies of operators."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.coboundaries import coboundary
from coopsheaf.sheaves.eigenpairs import looks_symmetric, smallest_eigenpairs
from coopsheaf.sheaves.laplacian import sheaf_laplacian
from coopsheaf.sheaves.operator import Complex, Operator
from coopsheaf.sheaves.polynomials import check_square
from coopsheaf.sheaves.sheaf import Sheaf

# As a dense matrix eight thousand rows take half a gigabyte and about a minute.
MAX_SIZE = 8192
# Up to here a dense matrix is quicker than products, however few eigenvalues are wanted.
QUICK_SIZE = 512


def spectrum(operator: Operator, k: int | None = None) -> Tensor:
    """Eigenvalues, ``(nd,)`` or the first ``(k,)``, by increasing real part.

    Real if the operator's matrix is symmetric (undirected sheaf Laplacians), complex otherwise. All
    of them need a dense matrix, of at most 8192 rows. The first k of a symmetric operator do not:
    they come from products alone, on graphs of any size
    (:func:`~coopsheaf.sheaves.smallest_eigenpairs`, which also gives the eigenvectors).

    Args:
        operator: on nodes.
        k: how many of the smallest; all by default.
    """
    if k is None:
        return _whole_spectrum(operator)
    rows, columns = _shape(operator)
    if check_int("k", k, minimum=1) > rows:
        raise ValueError(f"`k` must be at most the size of the operator, {rows}; got {k}")
    dense = rows <= QUICK_SIZE or rows != columns
    if dense or (rows <= MAX_SIZE and not looks_symmetric(operator)):
        return _whole_spectrum(operator)[:k]
    return smallest_eigenpairs(operator, k).values


def _whole_spectrum(operator: Operator) -> Tensor:
    matrix = _small_dense(operator)
    if _is_symmetric(matrix):
        return torch.linalg.eigvalsh(matrix)
    values = torch.linalg.eigvals(matrix)
    return values[values.real.argsort()]


def numerical_radius(operator: Operator, *, angles: int = 16, tolerance: float = 1e-4) -> float:
    r"""An upper bound of the numerical radius :math:`w(A) = \max_x |x^* A x| / x^* x`, close to it.

    What the norm is for one product, this is for powers: :math:`w(A^k) \le w(A)^k` (Berger), so
    that :math:`\|A^k\| \le 2\, w(A)^k` and, for a polynomial, :math:`\|p(A)\| \le |c_0| + 2
    \sum_{k \ge 1} |c_k|\, w(A)^k`. Eigenvalues promise nothing of the kind where an operator is not
    normal, and :math:`\|A\|^k` may be much larger: :math:`\tfrac12 \|A\| \le w(A) \le \|A\|`,
    and w(A) = ‖A‖ where it is normal.

    The numerical range is convex, and reaches as far in the direction :math:`e^{-i\theta}` as the
    largest eigenvalue of the Hermitian :math:`\tfrac12 (e^{i\theta} A + e^{-i\theta} A^\top)`.
    Below the real axis it is as above, so that half a turn of θ is enough. No point is further than
    half a step of θ from a direction that was looked at: the largest value, divided by
    :math:`\cos(\pi / 2K)` for K steps, is a bound. Symmetric operators need θ = 0 and π alone.

    Args:
        operator: A, real, from nodes to nodes.
        angles: K; the bound is at most :math:`1 / \cos(\pi / 2K)` times too large: 0.5 % for 16.
        tolerance: of the eigenvalues of operators with more than 512 rows, which are found by
            products, as a share of the norm; it is added.
    """
    check_square(operator)
    check_int("angles", angles, minimum=2)
    if not tolerance > 0:
        raise ValueError(f"`tolerance` must be positive; got {tolerance}")
    if _shape(operator)[0] == 0:
        return 0.0
    symmetric = looks_symmetric(operator)
    turns = [0.0, math.pi] if symmetric else [math.pi * k / angles for k in range(angles + 1)]
    with torch.no_grad():
        reach = max(_reaches(operator, turns, tolerance))
    return reach if symmetric else reach / math.cos(math.pi / (2 * angles))


def _reaches(operator: Operator, turns: list[float], tolerance: float) -> list[float]:
    """The largest eigenvalue of the Hermitian part, after each turn."""
    if _shape(operator)[0] <= QUICK_SIZE:
        matrix = operator.to_dense()
        even, odd = (matrix + matrix.T) / 2, (matrix - matrix.T) / 2
        parts = (torch.complex(math.cos(t) * even, math.sin(t) * odd) for t in turns)
        return [float(torch.linalg.eigvalsh(part)[-1]) for part in parts]
    mean, half, found = (operator + operator.T) * 0.5, (operator - operator.T) * 0.5, []
    for t in turns:
        # The smallest of the negative: what is missing of the largest is less than is added.
        part = Complex(mean * -math.cos(t), half * -math.sin(t))
        value = -float(smallest_eigenpairs(part, 1, tolerance=tolerance).values[0])
        found.append(value)
    return [value + tolerance * max(map(abs, found)) for value in found]


def harmonic_space(operator: Operator, *, tolerance: float | None = None) -> Tensor:
    """An orthonormal basis of the kernel, ``(n, d, k)``: k features that the operator annuls.

    For the Laplacian of an undirected sheaf these are its global sections.

    Args:
        operator: any operator on nodes.
        tolerance: singular values below this times the largest count as zero; by default the
            size of the matrix times the precision of its numbers.
    """
    matrix = _small_dense(operator)
    cells, d = operator.domain
    _, values, right = torch.linalg.svd(matrix)
    if tolerance is None:
        tolerance = max(matrix.shape) * torch.finfo(matrix.dtype).eps
    largest = values.max() if values.numel() else values.new_zeros(())
    rank = int((values > tolerance * largest).sum())
    return right[rank:].T.reshape(cells, d, matrix.shape[1] - rank)


class Cohomology(NamedTuple):
    """Orthonormal bases of both cohomology spaces of a sheaf on a graph."""

    sections: Tensor  # (n, d, k0): H⁰, the global sections, ker δ
    obstructions: Tensor  # (m, e, k1): H¹, what no features of nodes explain, (im δ)^⊥ = ker δᵀ


def cohomology(sheaf: Sheaf, *, tolerance: float | None = None) -> Cohomology:
    r"""H⁰ and H¹ of an undirected sheaf, from its coboundary :math:`\delta`.

    H¹ is what is left of features of edges modulo :math:`\operatorname{im} \delta`; it is given by
    those that are orthogonal to the image. For stalks of dimension d at n nodes and e at m edges,
    :math:`k_0 - k_1 = n d - m e`. For the constant sheaf of dimension 1, k₀ counts the
    components of the graph and k₁ its independent cycles.

    Args:
        sheaf: an undirected sheaf, small enough for a dense matrix.
        tolerance: as for :func:`harmonic_space`.
    """
    delta = coboundary(sheaf)
    return Cohomology(
        harmonic_space(delta, tolerance=tolerance), harmonic_space(delta.T, tolerance=tolerance)
    )


def dirichlet_energy(sheaf: Sheaf, x: Tensor, normalization: str | None = None) -> Tensor:
    r"""The Dirichlet energy :math:`\langle x, L x \rangle = \|\delta x\|^2`, summed over channels.

    How much neighbours disagree about x where their maps let them meet. Not limited in size.

    Args:
        sheaf: an undirected sheaf.
        x: ``(n, d, h)``.
        normalization: of L: ``None``, ``"augmented"`` or ``"plain"``.

    Returns:
        A scalar.
    """
    return (x * sheaf_laplacian(sheaf, normalization).mv(x)).sum()


def _shape(operator: Operator) -> tuple[int, int]:
    """Rows and columns of an operator's matrix."""
    if not isinstance(operator, Operator):
        raise ValueError(f"`operator` must be an Operator; got {type(operator).__name__}")
    (cells, d), (rows, e) = operator.domain, operator.codomain
    return rows * e, cells * d


def _small_dense(operator: Operator) -> Tensor:
    rows, columns = _shape(operator)
    if max(rows, columns) > MAX_SIZE:
        raise ValueError(
            f"`operator` must have at most {MAX_SIZE} rows and columns to be made dense; "
            f"got {rows} x {columns}"
        )
    matrix = operator.to_dense()
    # LAPACK knows no half precision.
    return matrix.float() if matrix.dtype in (torch.bfloat16, torch.float16) else matrix


def _is_symmetric(matrix: Tensor) -> bool:
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`operator` must be square to have a spectrum; got {tuple(matrix.shape)}")
    scale = matrix.detach().abs().amax() if matrix.numel() else 0.0
    eps = torch.finfo(matrix.dtype).eps
    return bool(((matrix - matrix.T).detach().abs() <= 16 * eps * scale).all())
