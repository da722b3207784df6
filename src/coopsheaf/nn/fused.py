r"""Layers as compiled kernels: the products of a block of rows, and what is done to it after.

Every function here equals a composition of PyTorch's operations, named beside it, and is called
only where :func:`coopsheaf.sheaves.kernels.is_fused` says so. Second derivatives go through the
composition. Products are in bfloat16 inside :func:`coopsheaf.nn.products.use_products`.

Dropout masks come from a counter-based generator: whether an entry is kept depends on one seed,
drawn from PyTorch's generator, and on the entry's place. So masks are the same for any number of
threads and are not kept: on the way back they are drawn again, or are part of the slope of an
activation, which is kept in place of what it was applied to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.nn.products import are_halved
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.eager import differentiable_backward
from coopsheaf.sheaves.kernels.library import addresses
from coopsheaf.sheaves.kernels.native import call, edge_lists, needs_gradient

IDENTITY, RELU, GELU = 0, 1, 2
_COMPOSED: dict[int, Callable[[Tensor], Tensor]] = {
    IDENTITY: lambda x: x,
    RELU: F.relu,
    GELU: F.gelu,
}
VALUES = 1 << 16  # of a mask's 16 bits


def activation_code(act: Any) -> int | None:
    """The number of an activation that kernels know; ``None`` for others."""
    if act is F.relu or type(act) is nn.ReLU:
        return RELU
    if act is F.gelu or (type(act) is nn.GELU and act.approximate == "none"):
        return GELU
    return IDENTITY if type(act) is nn.Identity else None


def draw_seed() -> int:
    """A seed for one mask, from PyTorch's generator."""
    return int(torch.empty((), dtype=torch.int64).random_())


def dropped_share(p: float) -> int:
    """p in multiples of 2⁻¹⁶."""
    return min(round(p * VALUES), VALUES - 1)


def draw_factors(like: Tensor, seed: int, dropped: int) -> Tensor:
    """What dropout multiplies entries by: 0, or 1 over the share that is kept."""
    ones, out = torch.ones_like(like), torch.empty_like(like)
    call("drop", ones.numel(), ones, seed, dropped, out)
    return out


# ---- dropout


def drop(x: Tensor, p: float) -> Tensor:
    """:func:`coopsheaf.nn.dropout.dropout` in training."""
    return _Drop.apply(x, draw_seed(), dropped_share(p))


class _Drop(torch.autograd.Function):
    """Linear in x, so it is its own derivative, to any order."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, seed: int, dropped: int) -> Tensor:
        ctx.mask = seed, dropped
        x = x.contiguous()
        out = torch.empty_like(x)
        call("drop", x.numel(), x, seed, dropped, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Drop.apply(grad, *ctx.mask), None, None


# ---- a linear layer


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, act: int = IDENTITY) -> Tensor:
    """σ(x Wᵀ + b), from ``(n, k)`` to ``(n, o)``."""
    inputs = (x.contiguous(), weight.contiguous(), bias, act, are_halved(x))
    if needs_gradient(x, weight, bias):
        return _Linear.apply(*inputs)
    return _linear(*inputs, keep=False)[0]


def _linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, act: int, halved: bool, *, keep: bool
) -> tuple[Tensor, Tensor]:
    """The output and, if it is to be kept, the activation's slope."""
    (n, k), o = x.shape, weight.shape[0]
    slope = x.new_empty(n, o)
    out = torch.empty_like(slope) if keep and act != IDENTITY else slope
    call("linear", n, k, o, x, weight, bias, act, halved, slope, out)
    return out, slope


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, act: int, halved: bool) -> Any:
        out, slope = _linear(x, weight, bias, act, halved, keep=True)
        ctx.save_for_backward(x, weight, bias, slope if act != IDENTITY else None)
        ctx.act, ctx.halved = act, halved
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, weight, bias, slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, weight, bias, ctx.act, ctx.halved)
            return differentiable_backward(_compose_linear, inputs, ctx.needs_input_grad, grad)
        (n, k), o = x.shape, weight.shape[0]
        grad_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        grad_weight = torch.empty_like(weight)
        grad_bias = None if bias is None else torch.empty_like(bias)
        found = grad_x, grad_weight, grad_bias
        grad = grad.contiguous()
        call("linear_back", n, k, o, grad, x, weight, ctx.act, ctx.halved, slope, *found)
        return *found, None, None


def _compose_linear(x: Tensor, weight: Tensor, bias: Tensor | None, act: int, _: bool) -> Tensor:
    return _COMPOSED[act](F.linear(x, weight, bias))


# ---- several MLPs of one input


def mlps(x: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """V_m relu(W_m x + b_m) + c_m of MLPs of the same sizes, ``(count, n, o)``.

    ``parameters`` are W, b, V, c of each, one after the other.
    """
    x, given = x.contiguous(), [p.contiguous() for p in parameters]
    if needs_gradient(x, *given):
        return _MLPs.apply(x, are_halved(x), *given)
    return _mlps(x, are_halved(x), given)[0]


def _mlp_sizes(x: Tensor, parameters: Sequence[Tensor]) -> tuple[int, ...]:
    (n, k), m, o = x.shape, parameters[0].shape[0], parameters[2].shape[0]
    return n, k, m, o, len(parameters) // 4


def _mlps(x: Tensor, halved: bool, parameters: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    sizes = n, _, m, o, count = _mlp_sizes(x, parameters)
    hidden, out = x.new_empty(n, count * m), x.new_empty(count, n, o)
    call("mlps", *sizes, x, addresses(list(parameters)), halved, hidden, out)
    return out, hidden


class _MLPs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, halved: bool, *parameters: Tensor) -> Tensor:
        out, hidden = _mlps(x, halved, parameters)
        ctx.save_for_backward(x, hidden, *parameters)
        ctx.halved = halved
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, hidden, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, ctx.halved, *parameters)
            return differentiable_backward(_compose_mlps, inputs, ctx.needs_input_grad, grad)
        sizes, given = _mlp_sizes(x, parameters), addresses(parameters)
        grad_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        found = x.new_empty(sum(p.numel() for p in parameters))
        grad = grad.contiguous()
        call("mlps_back", *sizes, grad, x, hidden, given, ctx.halved, grad_x, found)
        return grad_x, None, *_apart(found, parameters)


def _compose_mlps(x: Tensor, _: bool, *parameters: Tensor) -> Tensor:
    outs = []
    for k in range(0, len(parameters), 4):
        weight, bias, last, offset = parameters[k : k + 4]
        outs.append(F.linear(F.relu(F.linear(x, weight, bias)), last, offset))
    return torch.stack(outs)


def _apart(numbers: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """One row of numbers as tensors of these shapes."""
    parts = numbers.split([tensor.numel() for tensor in like])
    return [part.view(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


# ---- a level of GraphSAGE


def sage_level(
    x: Tensor,
    graph: Graph,
    inverse_degree: Tensor,
    count: int,
    parameters: Sequence[Tensor],
    act: int = IDENTITY,
    p: float = 0.0,
) -> Tensor:
    """Dropout and activation of :func:`coopsheaf.nn.sage.apply_convs`, ``(count, n, o)``."""
    x, given = x.contiguous(), [parameter.contiguous() for parameter in parameters]
    mask = (draw_seed(), dropped_share(p)) if p > 0.0 else (0, 0)
    level = _Level(graph, inverse_degree, count, act, mask, are_halved(x))
    if needs_gradient(x, *given):
        return _SageLevel.apply(x, level, *given)
    return level.forward(x, given, keep=False)[0]


class _Level:
    """What a level knows beside its input and its parameters."""

    def __init__(
        self,
        graph: Graph,
        inverse_degree: Tensor,
        count: int,
        act: int,
        mask: tuple[int, int],
        halved: bool,
    ) -> None:
        self.graph, self.inverse_degree, self.count = graph, inverse_degree, count
        self.act, self.mask, self.halved = act, mask, halved

    def sizes(self, x: Tensor, parameters: Sequence[Tensor]) -> tuple[int, ...]:
        n, k = x.shape[-2:]
        projects = len(parameters) // self.count == 5
        return n, k, parameters[0].shape[0], self.count, x.dim() == 2, projects

    def forward(
        self, x: Tensor, parameters: Sequence[Tensor], *, keep: bool
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The output, the slope of activation and dropout if it is to be kept, and p(x)."""
        sizes = n, k, o, count, _, projects = self.sizes(x, parameters)
        sent = x.new_empty(count, n, k) if projects else None
        told, slope = x.new_empty(n, o), x.new_empty(count, n, o)
        out = torch.empty_like(slope) if keep and self.act != IDENTITY else slope
        edges = *edge_lists(self.graph.by_target), self.inverse_degree
        how = (self.act, *self.mask, self.halved)
        call("sage", *sizes, x, *edges, addresses(list(parameters)), *how, sent, told, slope, out)
        return out, slope, sent

    def backward(
        self,
        grad: Tensor,
        x: Tensor,
        sent: Tensor | None,
        slope: Tensor | None,
        parameters: Sequence[Tensor],
        *,
        for_x: bool,
    ) -> tuple[Tensor | None, list[Tensor]]:
        sizes = n, _, o, *_ = self.sizes(x, parameters)
        inner, spread = x.new_empty(n, o), x.new_empty(n, o)
        grad_x = torch.empty_like(x) if for_x else None
        found = x.new_empty(sum(p.numel() for p in parameters))
        edges = *edge_lists(self.graph.by_source), self.inverse_degree
        given, how = addresses(list(parameters)), (self.act, *self.mask, self.halved)
        scratch = inner, spread, grad_x, found
        slope = grad if slope is None else slope  # not looked at
        call("sage_back", *sizes, grad, x, sent, slope, *edges, given, *how, *scratch)
        return grad_x, _apart(found, parameters)


class _SageLevel(torch.autograd.Function):
    """Keeps x, p(x) and the slope of activation and dropout."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, level: _Level, *parameters: Tensor) -> Tensor:
        out, slope, sent = level.forward(x, parameters, keep=True)
        ctx.level = level
        ctx.save_for_backward(x, sent, None if level.act == IDENTITY else slope, *parameters)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, sent, slope, *parameters = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, ctx.level, *parameters)
            return differentiable_backward(_compose_level, inputs, ctx.needs_input_grad, grad)
        for_x, grad = ctx.needs_input_grad[0], grad.contiguous()
        grad_x, found = ctx.level.backward(grad, x, sent, slope, parameters, for_x=for_x)
        return grad_x, None, *found


def _compose_level(x: Tensor, level: _Level, *parameters: Tensor) -> Tensor:
    from coopsheaf.nn.sage import compose_convs

    y = _COMPOSED[level.act](compose_convs(x, level.graph, level.count, *parameters))
    return y * draw_factors(y.detach(), *level.mask) if level.mask[1] else y


# ---- the weights W₁, W₂ of a layer


def mix(x: Tensor, left: Tensor | None, right: Tensor) -> Tensor:
    """W₁ x_i W₂ᵀ for every node; x ``(n, d, h)``, W₁ ``(d, d)``, W₂ ``(h, h)``."""
    inputs = x.contiguous(), left, right.contiguous(), are_halved(x)
    return _Mix.apply(*inputs) if needs_gradient(x, left, right) else _mix(*inputs)


def _mix(x: Tensor, left: Tensor | None, right: Tensor, halved: bool) -> Tensor:
    y = torch.empty_like(x)
    call("mix", *x.shape, x, left, right, halved, y)
    return y


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, left: Tensor | None, right: Tensor, halved: bool) -> Tensor:
        left = None if left is None else left.contiguous()
        ctx.save_for_backward(x, left, right)
        ctx.halved = halved
        return _mix(x, left, right, halved)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, left, right = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, left, right, ctx.halved)
            return differentiable_backward(_compose_mix, inputs, ctx.needs_input_grad, grad)
        found = [None if part is None else torch.empty_like(part) for part in (x, left, right)]
        grad = grad.contiguous()
        call("mix_back", *x.shape, grad, x, left, right, ctx.halved, *found)
        return *found, None


def _compose_mix(x: Tensor, left: Tensor | None, right: Tensor, _: bool) -> Tensor:
    return F.linear(x if left is None else left @ x, right)


# ---- the end of a layer


def update(x: Tensor, y: Tensor, epsilon: Tensor, act: int, p: float) -> Tensor:
    """(1 + tanh ε) ⊙ x - σ(dropout(y)); x, y ``(n, d, h)``, ε ``(d, 1)``."""
    mask = (draw_seed(), dropped_share(p)) if p > 0.0 else (0, 0)
    inputs = x.contiguous(), y.contiguous(), epsilon.contiguous(), act, mask
    return _Update.apply(*inputs) if needs_gradient(x, y, epsilon) else _update(*inputs)


def _update(x: Tensor, y: Tensor, epsilon: Tensor, act: int, mask: tuple[int, int]) -> Tensor:
    out = torch.empty_like(x)
    call("update", *x.shape, x, y, epsilon, act, *mask, out)
    return out


class _Update(torch.autograd.Function):
    """Keeps x and y."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, epsilon: Tensor, act: int, mask: tuple[int, int]
    ) -> Tensor:
        ctx.save_for_backward(x, y, epsilon)
        ctx.act, ctx.mask = act, mask
        return _update(x, y, epsilon, act, mask)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, y, epsilon = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, y, epsilon, ctx.act, ctx.mask)
            return differentiable_backward(_compose_update, inputs, ctx.needs_input_grad, grad)
        found = [torch.empty_like(part) for part in (x, y, epsilon)]
        grad = grad.contiguous()
        call("update_back", *x.shape, grad, x, y, epsilon, ctx.act, *ctx.mask, *found)
        return *found, None, None


def _compose_update(
    x: Tensor, y: Tensor, epsilon: Tensor, act: int, mask: tuple[int, int]
) -> Tensor:
    y = y * draw_factors(y.detach(), *mask) if mask[1] else y
    return (1 + torch.tanh(epsilon)) * x - _COMPOSED[act](y)
