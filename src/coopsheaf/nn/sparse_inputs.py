"""Input features that are mostly zero: linear layers that look at the others alone.

Words of a page, keywords of an actor and one-hot columns give matrices of thousands of columns with
a handful of entries per row. Where a whole graph is trained on, the same matrix comes back in every
epoch: it is looked at once (:func:`note_zeros`), and networks that ask for it
(:func:`take_inputs`) get it as a list of its entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.linear import has_hooks
from coopsheaf.sheaves.graph import CSR
from coopsheaf.sheaves.kernels.eager import is_plain_eager
from coopsheaf.sheaves.kernels.sparse import neighbour_sums

LEAST_ENTRIES = 1 << 19  # of a matrix, zeros and all: products of smaller ones cost nothing
LARGEST_SHARE = 1 / 16  # of entries that are not zero: dense products do more of them in a second


@dataclass(frozen=True)
class SparseInputs:
    """A matrix X of n rows by the entries that are not zero. ``X @ W`` is what it is for.

    Args:
        by_row: the entries of every row; ``other`` are columns, ``edge`` places in ``values``.
        by_column: the entries of every column; ``other`` are rows.
        values: ``(k,)``.
    """

    by_row: CSR
    by_column: CSR
    values: Tensor

    @classmethod
    def of(cls, x: Tensor) -> SparseInputs:
        """The entries of a matrix ``(n, c)``."""
        row, column = x.nonzero(as_tuple=True)
        places = torch.arange(row.numel(), device=x.device)
        order = column.argsort(stable=True)
        by_row = CSR(_pointers(row, x.shape[0]), column, places)
        by_column = CSR(_pointers(column, x.shape[1]), row[order], order)
        return cls(by_row, by_column, x[row, column].detach())

    @property
    def shape(self) -> tuple[int, int]:
        return self.by_row.ptr.numel() - 1, self.by_column.ptr.numel() - 1

    def __matmul__(self, matrix: Tensor) -> Tensor:
        """X W, ``(n, h)``, for W ``(c, h)``."""
        return _Product.apply(matrix, self.values, self.by_row, self.by_column)

    def drop(self, p: float) -> SparseInputs:
        """Dropout of X: of the entries, since zeros stay what they are."""
        return replace(self, values=dropout(self.values, p))

    def normalize(self) -> SparseInputs:
        """Rows divided by their lengths, as ``torch.nn.functional.normalize`` does it."""
        rows = self._rows()
        square = self.values.new_zeros(self.shape[0]).index_add(0, rows, self.values.square())
        return replace(self, values=self.values / square.sqrt().clamp(min=1e-12)[rows])

    def to_dense(self) -> Tensor:
        """X, ``(n, c)``."""
        out = self.values.new_zeros(self.shape)
        return out.index_put((self._rows(), self.by_row.other), self.values)

    def _rows(self) -> Tensor:
        """The row of every entry, ``(k,)``."""
        nodes = torch.arange(self.shape[0], device=self.values.device)
        return torch.repeat_interleave(nodes, self.by_row.ptr.diff())


def _pointers(numbers: Tensor, size: int) -> Tensor:
    counts = torch.bincount(numbers, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


class _Product(torch.autograd.Function):
    """X W. Linear in W, and its derivative is the product with the transpose, to any order."""

    @staticmethod
    def forward(matrix: Tensor, values: Tensor, rows: CSR, columns: CSR) -> Tensor:
        return neighbour_sums(matrix, rows, values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, CSR, CSR], output: Tensor) -> None:
        _, values, ctx.rows, ctx.columns = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (values,) = ctx.saved_tensors
        return _Product.apply(grad, values, ctx.columns, ctx.rows), None, None, None


# What is known of tensors, as long as they live; and their version, since they may be written to.
_KNOWN = WeakTensorKeyDictionary()


def note_zeros(x: Tensor) -> None:
    """Look at features that will come back in every step; those with few entries are remembered.

    Args:
        x: ``(n, c)``. Nothing is done to it, and nothing is kept when it is gone.
    """
    if x.device.type != "cpu" or x.dim() != 2 or x.numel() < LEAST_ENTRIES or x.is_inference():
        return
    if int(x.count_nonzero()) <= LARGEST_SHARE * x.numel():
        _KNOWN[x] = (x._version, SparseInputs.of(x))


def take_inputs(x: Tensor, p: float = 0.0, training: bool = False) -> Tensor | SparseInputs:
    """``dropout(x)``, by its entries where it is known to have few, and nobody looks inside.

    Args:
        x: ``(n, c)``.
        p: dropout probability.
        training: without it nothing is dropped.
    """
    found = _find(x)
    if found is None:
        return F.dropout(x, p, training)
    return found.drop(p) if training and p > 0 else found


def _find(x: Tensor) -> SparseInputs | None:
    if not is_plain_eager(x) or x.requires_grad or x.is_inference():
        return None
    version, found = _KNOWN.get(x, (None, None))
    return found if version == x._version else None


def apply_to_inputs(module: nn.Module, x: Tensor | SparseInputs) -> Tensor:
    """A linear layer of inputs: ``module(x)``.

    Args:
        module: with a ``weight`` ``(out, c)`` and a ``bias``, which may be ``None``.
        x: ``(n, c)``.
    """
    if isinstance(x, Tensor):
        return module(x)
    if has_hooks(module):
        return module(x.to_dense())
    weight: Any = module.weight
    out = x @ weight.mT
    return out if module.bias is None else out + module.bias
