"""Layers of many runs as compiled kernels: those of :mod:`coopsheaf.nn.fused`, run after run.

A run alone has one node in autograd's graph for each layer, and so have all runs together here:
what is left of a layer is R calls of a kernel, each on what fits into the cache. Parameters are
stacked, ``(R, ...)``, and have to lie together within a run only. Every function is called inside
of :func:`coopsheaf.sheaves.kernels.runs.over_runs` and only where
:func:`coopsheaf.sheaves.kernels.is_fused_together` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import torch
from torch import Tensor

from coopsheaf.nn.fused import dropped_share
from coopsheaf.sheaves.kernels.library import address_array
from coopsheaf.sheaves.kernels.native import call_each
from coopsheaf.sheaves.kernels.runs import active_runs, over_runs, stack_shared

Column = Iterable[int | None]


def places(stacked: Tensor | None, count: int) -> Column:
    """Where what belongs to each run begins; each must lie together."""
    if stacked is None:
        return repeat(None, count)
    step = stacked.stride(0) * stacked.element_size()
    if step == 0:  # all runs have the same
        return repeat(stacked.data_ptr(), count)
    return range(first := stacked.data_ptr(), first + count * step, step)


def same(*numbers: int) -> tuple[Column, ...]:
    """Numbers that are the same in every run."""
    return tuple(map(repeat, numbers))


def as_rows(stacked: Tensor) -> Tensor:
    """The tensor, or a copy, so that what belongs to a run lies together."""
    return stacked if stacked[0].is_contiguous() else stacked.contiguous()


# ---- dropout


def drop(x: Tensor, seeds: Sequence[int], dropped: int) -> Tensor:
    """:func:`coopsheaf.nn.fused.drop` of ``(R, ...)``, in each run with the mask of its seed."""
    return _Drop.apply(as_rows(x), seeds, dropped)


class _Drop(torch.autograd.Function):
    """Linear in x, so it is its own derivative, to any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, seeds: Sequence[int], dropped: int) -> Tensor:
        ctx.mask = seeds, dropped
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        runs = len(seeds)
        size, share = same(out.numel() // runs, dropped)
        call_each("drop", size, places(x, runs), seeds, share, places(out, runs))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return drop(grad, *ctx.mask), None, None


# ---- several MLPs of one input


def mlps_in_runs(x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """:func:`coopsheaf.nn.fused.mlps` in every run; for what vmap has reached."""

    def apply(count: int, shared: list[bool], *parts: Tensor) -> Tensor:
        x, *parameters = stack_shared(count, shared, parts)
        return mlps(x, parameters)

    out: Tensor = over_runs(apply, x, *parameters)
    return out


def mlps(x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """:func:`coopsheaf.nn.fused.mlps` of ``(R, n, k)``: ``(R, count, n, o)``."""
    return _MLPs.apply(as_rows(x), *map(as_rows, parameters))


def _sizes(x: Tensor, parameters: Sequence[Tensor]) -> tuple[int, ...]:
    (_, n, k), m, o = x.shape, parameters[0].shape[1], parameters[2].shape[1]
    return n, k, m, o, len(parameters) // 4


def _arrays(parameters: Sequence[Tensor], count: int) -> list[Any]:
    """For each run the addresses of its parameters."""
    columns = [places(parameter, count) for parameter in parameters]
    return [address_array(row) for row in zip(*columns, strict=True)]


class _MLPs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, *parameters: Tensor) -> Tensor:
        runs, (n, k, m, o, count) = len(x), _sizes(x, parameters)
        hidden, out = x.new_empty(runs, n, count * m), x.new_empty(runs, count, n, o)
        seen, inner, made = (places(part, runs) for part in (x, hidden, out))
        given, (*sizes, halved) = _arrays(parameters, runs), same(n, k, m, o, count, 0)
        call_each("mlps", *sizes, seen, given, halved, inner, made)
        ctx.save_for_backward(x, hidden, *parameters)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, hidden, *parameters = ctx.saved_tensors
        runs, sizes, grad = len(x), _sizes(x, parameters), as_rows(grad)
        counts = [parameter[0].numel() for parameter in parameters]
        grad_x, found = torch.empty_like(x), x.new_empty(runs, sum(counts))
        back = [places(part, runs) for part in (grad, x, hidden)]
        into = [places(part, runs) for part in (grad_x, found)]
        given, halved = _arrays(parameters, runs), repeat(0)
        call_each("mlps_back", *same(*sizes), *back, given, halved, *into)
        parts = zip(found.split(counts, dim=1), parameters, strict=True)
        return grad_x, *(part.unflatten(1, p.shape[1:]) for part, p in parts)


# ---- the weights W₁, W₂ of a layer


def mix_in_runs(x: Tensor, left: Tensor | None, right: Tensor) -> Tensor:
    """:func:`coopsheaf.nn.fused.mix` in every run; for what vmap has reached."""

    def apply(count: int, shared: list[bool], *parts: Tensor) -> Tensor:
        x, *lefts, right = stack_shared(count, shared, parts)
        return mix(x, lefts[0] if lefts else None, right)

    given = (x, right) if left is None else (x, left, right)
    out: Tensor = over_runs(apply, *given)
    return out


def mix(x: Tensor, left: Tensor | None, right: Tensor) -> Tensor:
    """:func:`coopsheaf.nn.fused.mix` of ``(R, n, d, h)``."""
    return _Mix.apply(as_rows(x), None if left is None else as_rows(left), as_rows(right))


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, left: Tensor | None, right: Tensor) -> Tensor:
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        *given, made = (places(part, len(x)) for part in (x, left, right, out))
        call_each("mix", *same(*x.shape[1:]), *given, repeat(0), made)
        ctx.save_for_backward(x, left, right)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        parts = x, left, right = ctx.saved_tensors
        grad = as_rows(grad)
        found = [None if part is None else _fresh(part) for part in parts]
        given = [places(part, len(x)) for part in (grad, x, left, right)]
        into = [places(part, len(x)) for part in found]
        call_each("mix_back", *same(*x.shape[1:]), *given, repeat(0), *into)
        return tuple(found)


# ---- the end of a layer


def update_in_runs(x: Tensor, y: Tensor, epsilon: Tensor, act: int, p: float) -> Tensor:
    """(1 + tanh ε) ⊙ x - σ(dropout(y)) in every run; for what vmap has reached."""
    runs = active_runs()
    assert runs is not None

    def apply(count: int, shared: list[bool], *parts: Tensor) -> Tensor:
        seeds = runs.draw_seeds() if p > 0.0 else [0] * count
        x, y, epsilon = stack_shared(count, shared, parts)
        return update(x, y, epsilon, act, seeds, dropped_share(p) if p > 0.0 else 0)

    out: Tensor = over_runs(apply, x, y, epsilon)
    return out


def update(
    x: Tensor, y: Tensor, epsilon: Tensor, act: int, seeds: Sequence[int], dropped: int
) -> Tensor:
    """:func:`coopsheaf.nn.fused.update` of ``(R, n, d, h)``, in each run with its seed's mask."""
    return _Update.apply(as_rows(x), as_rows(y), as_rows(epsilon), act, seeds, dropped)


class _Update(torch.autograd.Function):
    """Keeps x and y."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        y: Tensor,
        epsilon: Tensor,
        act: int,
        seeds: Sequence[int],
        dropped: int,
    ) -> Tensor:
        out = _fresh(x)
        *given, made = (places(part, len(x)) for part in (x, y, epsilon, out))
        how = repeat(act), seeds, repeat(dropped)
        call_each("update", *same(*x.shape[1:]), *given, *how, made)
        ctx.save_for_backward(x, y, epsilon)
        ctx.how = act, seeds, dropped
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        parts = x, *_ = ctx.saved_tensors
        act, seeds, dropped = ctx.how
        grad, found = as_rows(grad), [_fresh(part) for part in parts]
        given = [places(part, len(x)) for part in (grad, *parts)]
        into = [places(part, len(x)) for part in found]
        how = repeat(act), seeds, repeat(dropped)
        call_each("update_back", *same(*x.shape[1:]), *given, *how, *into)
        return *found, None, None, None


def _fresh(like: Tensor) -> Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)
