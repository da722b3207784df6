"""Spectra, harmonic spaces and energies of operators on small graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.sheaves.laplacian import sheaf_laplacian
from coopsheaf.sheaves.operator import Operator
from coopsheaf.sheaves.sheaf import Sheaf

# Everything here is dense: eight thousand rows take half a gigabyte and about a minute.
MAX_SIZE = 8192


def spectrum(operator: Operator) -> Tensor:
    """All eigenvalues, ``(nd,)``, by increasing real part.

    Real if the operator's matrix is symmetric (undirected sheaf Laplacians), complex otherwise.
    """
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


def _small_dense(operator: Operator) -> Tensor:
    if not isinstance(operator, Operator):
        raise ValueError(f"`operator` must be an Operator; got {type(operator).__name__}")
    (cells, d), (rows, e) = operator.domain, operator.codomain
    if max(cells * d, rows * e) > MAX_SIZE:
        raise ValueError(
            f"`operator` must have at most {MAX_SIZE} rows and columns to be made dense; "
            f"got {rows * e} x {cells * d}"
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
