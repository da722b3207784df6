"""Spectra, harmonic spaces and energies of operators."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.coboundaries import coboundary
from coopsheaf.sheaves.eigenpairs import looks_symmetric, smallest_eigenpairs
from coopsheaf.sheaves.laplacian import sheaf_laplacian
from coopsheaf.sheaves.operator import Operator
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
