"""A level of several GraphSAGE stacks: mean, bias, activation and dropout in one launch.

The products with weight matrices are PyTorch's; everything between them is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.eager import differentiable_backward
from coopsheaf.sheaves.kernels.on_cuda import programs
from coopsheaf.sheaves.kernels.on_cuda.launch import ENTRIES, blocks, columns, options
from coopsheaf.sheaves.kernels.on_cuda.products import neighbour_sums

_VALUES = 1 << 32  # of the random bits that decide over an entry


class Level(NamedTuple):
    """What a level is, its numbers aside."""

    graph: Graph
    inverse_degree: Tensor  # (n, 1)
    act: str  # "none", "relu" or "gelu"
    p: float
    compose: Callable[..., Tensor]  # the layers with ordinary operations, of x and parameters


class Dropout(NamedTuple):
    """Dropout of one pass: an entry is dropped if its random bits are below the threshold."""

    seed: int
    threshold: int
    factor: float


def draw_dropout(p: float) -> Dropout:
    """A seed from PyTorch's generator of the CPU: nobody waits for the device."""
    if p == 0.0:
        return Dropout(0, 0, 1.0)
    threshold = min(round(p * _VALUES), _VALUES - 1)
    seed = int(torch.empty((), dtype=torch.int64, device="cpu").random_())
    return Dropout(seed, threshold, _VALUES / (_VALUES - threshold))


class SageLevel(torch.autograd.Function):
    """dropout(act(W_l mean p(x_j) + b + W_r x_i)) for layers that do not widen.

    Kept for the way back are x, p(x) and what the activation saw; masks are drawn again.
    """

    @staticmethod
    def forward(ctx: Any, level: Level, x: Tensor, *parameters: Tensor) -> Tensor:
        left, bias, right, *projection = parameters
        dropped = draw_dropout(level.p)
        sent = _project(x, *projection) if projection else None
        told = torch.matmul(x if sent is None else sent, left.mT)
        z, y = _hear(level, told, torch.matmul(x, right.mT), bias, dropped)
        ctx.level, ctx.dropped = level, dropped
        ctx.save_for_backward(x, sent, z, *parameters)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, sent, z, *parameters = ctx.saved_tensors
        level, dropped, needed = ctx.level, ctx.dropped, ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # somebody will differentiate again
            factors = draw_factors(grad, dropped) if level.p else None

            def compose(x: Tensor, *parameters: Tensor) -> Tensor:
                return end(level.compose(x, *parameters), level.act, factors)

            return None, *differentiable_backward(compose, (x, *parameters), needed, grad)
        left, _, right, *projection = parameters
        grad = _differentiate_ending(level, grad.contiguous(), z, dropped)
        scale = level.inverse_degree.view(-1)
        inner, outer = neighbour_sums(grad, level.graph.by_source, scale=scale), left
        seen = x if sent is None else sent
        found = [torch.matmul(inner.mT, seen), grad.sum(1), torch.matmul(grad.mT, x)]
        if sent is not None:
            inner, outer = torch.matmul(inner, left), projection[0]
            _differentiate_relu(inner, sent)
            found += [torch.matmul(inner.mT, x), inner.sum(1)]
        grad_x = None
        if needed[0]:
            grad_x = torch.matmul(inner, outer).baddbmm_(grad, right)
            grad_x = grad_x.sum(0) if x.dim() == 2 else grad_x
        return None, grad_x, *found


def end(z: Tensor, act: str, factors: Tensor | None) -> Tensor:
    """act(z) times the factors of dropout, with ordinary operations."""
    if act != "none":
        z = torch.relu(z) if act == "relu" else torch.nn.functional.gelu(z)
    return z if factors is None else z * factors


def draw_factors(like: Tensor, dropped: Dropout) -> Tensor:
    """What dropout multiplied each entry by."""
    out = torch.empty_like(like, memory_format=torch.contiguous_format)
    if out.numel():
        grid = (blocks(out.numel(), ENTRIES),)
        programs.draw_factors[grid](out, out.numel(), *dropped, ENTRIES=ENTRIES, **options(ENTRIES))
    return out


def _project(x: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
    """relu(W x + b'), ``(layers, n, in)``."""
    out = torch.matmul(x, weight.mT)
    if out.numel():
        grid, (_, n, width) = (blocks(out.numel(), ENTRIES),), out.shape
        programs.add_bias_relu[grid](
            out,
            offset.contiguous(),
            out.numel(),
            n,
            width,
            ENTRIES=ENTRIES,
            **options(ENTRIES),
        )
    return out


def _hear(
    level: Level, told: Tensor, own: Tensor, bias: Tensor, dropped: Dropout
) -> tuple[Tensor | None, Tensor]:
    """What the activation sees, if there is one, and the output, ``(layers, n, out)``."""
    y = torch.empty_like(own)
    z = None if level.act == "none" else torch.empty_like(own)
    if y.numel():
        (layers, n, width), csr = y.shape, level.graph.by_target
        block = columns(width)
        programs.hear_neighbours[(n, blocks(width, block), layers)](
            told,
            own,
            bias.contiguous(),
            level.inverse_degree,
            y if z is None else z,
            y,
            csr.ptr,
            csr.other,
            n,
            width,
            *dropped,
            ACT=level.act,
            DROP=level.p > 0,
            COLUMNS=block,
            **options(block),
        )
    return z, y


def _differentiate_ending(level: Level, grad: Tensor, z: Tensor | None, dropped: Dropout) -> Tensor:
    if (z is None and level.p == 0) or grad.numel() == 0:
        return grad
    out = torch.empty_like(grad)
    programs.differentiate_ending[(blocks(grad.numel(), ENTRIES),)](
        grad,
        grad if z is None else z,
        out,
        grad.numel(),
        *dropped,
        ACT=level.act,
        DROP=level.p > 0,
        ENTRIES=ENTRIES,
        **options(ENTRIES),
    )
    return out


def _differentiate_relu(grad: Tensor, y: Tensor) -> None:
    if grad.numel():
        grid = (blocks(grad.numel(), ENTRIES),)
        programs.differentiate_relu[grid](
            grad, y, grad.numel(), ENTRIES=ENTRIES, **options(ENTRIES)
        )
