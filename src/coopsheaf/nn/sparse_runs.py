r"""Input features that are mostly zero, in many runs at once.

Where many runs share a pass, overhead is paid once and the product of the features with the first
weights is most of what is left:

.. math:: Y_r = \operatorname{drop}_r(X)\, W_r^\top, \qquad
          \partial W_r^\top = \operatorname{drop}_r(X)^\top\, \partial Y_r .

Both are sums over the entries of X, by row and by column, and dropout has to look at those alone
(:class:`~coopsheaf.nn.sparse_inputs.SparseInputs`). Networks need not ask for it here: what they
are given is a tensor whose dropout and whose product with a weight do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.sparse_inputs import SparseInputs
from coopsheaf.sheaves.graph import CSR
from coopsheaf.sheaves.kernels.runs import active_runs, over_runs, stack_shared
from coopsheaf.sheaves.kernels.sparse import sum_bags

LARGEST_SHARE = 1 / 8  # of entries that are not zero
LEAST_COLUMNS = 32


def as_run_inputs(x: Tensor) -> Tensor:
    """x ``(n, k)`` by its entries, if that pays, or as it is."""
    if x.dim() != 2 or x.shape[1] < LEAST_COLUMNS or x.device.type != "cpu":
        return x
    few = int(x.count_nonzero()) <= LARGEST_SHARE * x.numel()
    return RunInputs.of(x, SideBySide(SparseInputs.of(x))) if few else x


class SideBySide:
    """The entries of a matrix as often as there are runs; fewer are the first ones of more.

    Args:
        entries: of one run.
    """

    def __init__(self, entries: SparseInputs) -> None:
        self.entries = entries
        self._known: dict[tuple[str, int], tuple[int, Tensor, Tensor]] = {}

    def by_row(self, count: int, step: int) -> tuple[Tensor, Tensor]:
        """Bounds of the rows of all runs, and columns, of which each run has ``step``."""
        return self._repeat("row", self.entries.by_row, count, step)

    def by_column(self, count: int) -> tuple[Tensor, Tensor]:
        """Bounds of the columns of all runs, and rows."""
        return self._repeat("column", self.entries.by_column, count, self.entries.shape[0])

    def _repeat(self, name: str, csr: CSR, count: int, step: int) -> tuple[Tensor, Tensor]:
        lists, entries = csr.ptr.numel() - 1, csr.other.numel()
        made, bounds, other = self._known.get((name, step), (0, csr.ptr, csr.other))
        if made < count:
            runs = torch.arange(count).unsqueeze(1)
            bounds = (csr.ptr[:-1] + runs * entries).flatten()
            bounds = torch.cat([bounds, bounds.new_tensor([count * entries])])
            other = (csr.other + runs * step).flatten()
            self._known[name, step] = count, bounds, other
        return bounds[: count * lists + 1], other[: count * entries]


class RunInputs(Tensor):
    """An ``(n, k)`` matrix that is known by its entries, as networks see it in a pass of many runs.

    Dropout gives another one, with values of its own in every run, and a linear layer multiplies
    it. Anything else that is done to it is done to the matrix itself.
    """

    dense: Tensor  # (n, k)
    lists: SideBySide
    kept: Tensor | None  # (e,) in every run: what dropout has made of the values

    @staticmethod
    def of(dense: Tensor, lists: SideBySide, kept: Tensor | None = None) -> RunInputs:
        shell = dense.new_zeros(1).expand(dense.shape)  # says how large it is, and no more
        made = shell.as_subclass(RunInputs)
        made.dense, made.lists, made.kept = dense, lists, kept
        return made

    @property
    def numbers(self) -> Tensor:
        """The entries, row by row, ``(e,)``."""
        return self.lists.entries.values if self.kept is None else self.kept

    def densify(self) -> Tensor:
        """The matrix itself, in every run."""
        if self.kept is None:
            return self.dense
        rows, columns = self.dense.nonzero(as_tuple=True)

        def fill(count: int, shared: list[bool], kept: Tensor) -> Tensor:
            out = kept.new_zeros(count, *self.dense.shape)
            out[:, rows, columns] = kept
            return out

        filled: Tensor = over_runs(fill, self.kept)
        return filled

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in _ABOUT:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if active_runs() is not None and args and isinstance(args[0], RunInputs):
            if func is F.dropout:
                return drop_entries(*args, **kwargs)
            if func is F.linear:
                return multiply_entries(*args, **kwargs)
        return func(*_dense(args), **{key: _dense(value) for key, value in kwargs.items()})


def _dense(value: Any) -> Any:
    """Matrices themselves in place of what stands for them."""
    if isinstance(value, RunInputs):
        return value.densify()
    return type(value)(map(_dense, value)) if type(value) in (list, tuple) else value


# What is asked about a matrix without looking at its numbers.
_PROPERTIES = ("shape", "dtype", "device", "requires_grad", "is_cpu", "is_cuda", "ndim", "layout")
_ABOUT: set[Any] = {getattr(Tensor, name).__get__ for name in _PROPERTIES} | {
    Tensor.dim,
    Tensor.size,
    Tensor.numel,
    Tensor.is_floating_point,
    Tensor.is_inference,
}


def drop_entries(
    x: RunInputs, p: float = 0.5, training: bool = True, inplace: bool = False
) -> RunInputs:
    """Dropout of the entries: what is zero stays zero."""
    if not training or p == 0.0:
        return x
    return RunInputs.of(x.dense, x.lists, dropout(x.numbers, p))


def multiply_entries(x: RunInputs, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b in every run, ``(n, o)``."""
    lists = x.lists

    def apply(count: int, shared: list[bool], *parts: Tensor) -> Tensor:
        values, weight = stack_shared(count, shared, parts)
        return _Product.apply(values, weight, lists)

    out: Tensor = over_runs(apply, x.numbers, weight)
    return out if bias is None else out + bias


class _Product(torch.autograd.Function):
    """drop_r(X) W_rᵀ of R runs: values ``(R, e)``, weights ``(R, o, k)``; no gradient of values."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, lists: SideBySide) -> Tensor:
        ctx.lists = lists
        ctx.save_for_backward(values)
        table, step = _table(weight)
        bounds, columns = lists.by_row(len(weight), step)
        out = sum_bags(table, bounds, columns, values.flatten())
        return out.view(len(weight), -1, weight.shape[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        (values,), entries = ctx.saved_tensors, ctx.lists.entries
        bounds, rows = ctx.lists.by_column(len(grad))
        turned = values[:, entries.by_column.edge].flatten()
        found = sum_bags(grad.flatten(0, 1), bounds, rows, turned)
        return None, found.view(len(grad), -1, grad.shape[2]).mT, None


def _table(weight: Tensor) -> tuple[Tensor, int]:
    """The columns of R matrices ``(R, o, k)`` as rows of one table, and how many each run has.

    Without a copy where weights are kept as W_rᵀ and rows of o numbers lie at multiples of o, as
    they do in a stack of networks: the rows between two weights are never looked at.
    """
    turned = weight.mT  # (R, k, o)
    count, k, o = turned.shape
    run, row, number = turned.stride()
    if number == 1 and row == o and run % o == 0 and run >= k * o:
        step = run // o
        return turned.as_strided(((count - 1) * step + k, o), (o, 1)), step
    return turned.reshape(count * k, o), k
