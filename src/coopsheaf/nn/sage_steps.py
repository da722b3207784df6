"""Levels of GraphSAGE by hand, forward and back: few passes, and nothing kept but x and p(x).

Functions of plain tensors, and the same as custom operators for compilers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from coopsheaf.nn.products import multiply
from coopsheaf.sheaves.graph import CSR
from coopsheaf.sheaves.kernels.sparse import neighbour_sums


def by_layer(parameters: Sequence[Tensor], count: int) -> list[Sequence[Tensor]]:
    """The parameters of several layers, layer by layer."""
    size = len(parameters) // count
    return [parameters[k * size : (k + 1) * size] for k in range(count)]


def go_forward(
    x: Tensor,
    into: CSR,
    inverse_degree: Tensor,
    layers: Sequence[Sequence[Tensor]],
    halved: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What the layers make of x, and p(x) if they project.

    One product at a time on rows that lie together: side by side, the layers' products on shared
    inputs would be wider, but all others would jump from row to row and lose more than that.
    """
    count, (n, channels) = len(layers), x.shape[-2:]
    y = x.new_empty(count, n, layers[0][0].shape[0])
    sent = x.new_empty(count, n, channels) if len(layers[0]) > 3 else None
    for k, (left, bias, right, *projection) in enumerate(layers):
        own = told = _part(x, k)
        if sent is not None:
            weight, offset = projection
            told = _add_product(sent[k].copy_(offset), own, weight.T, halved).relu_()
        heard = neighbour_sums(multiply(told, left.T, halved), into)
        torch.mul(heard, inverse_degree, out=y[k]).add_(bias)
        _add_product(y[k], own, right.T, halved)
    return y, sent


def _add_product(out: Tensor, a: Tensor, b: Tensor, halved: bool) -> Tensor:
    return out.add_(multiply(a, b, True)) if halved else out.addmm_(a, b)


def go_back(
    grad: Tensor,
    x: Tensor,
    sent: Tensor | None,
    out_of: CSR,
    inverse_degree: Tensor,
    layers: Sequence[Sequence[Tensor]],
    *,
    for_x: bool,
    halved: bool = False,
) -> tuple[Tensor | None, list[Tensor]]:
    """The gradient of x, if it is asked for, and those of the parameters."""
    grad, gradients = grad.contiguous(), []
    grad_x = torch.empty_like(x, memory_format=torch.contiguous_format) if for_x else None
    for k, (left, _, right, *projection) in enumerate(layers):
        own, own_grad = _part(x, k), grad[k]
        inner, outer = neighbour_sums(own_grad * inverse_degree, out_of), left
        told = own if sent is None else sent[k]
        by_left, by_right = multiply(inner.T, told, halved), multiply(own_grad.T, own, halved)
        gradients += [by_left, own_grad.sum(0), by_right]
        if projection:
            inner, outer = multiply(inner, left, halved), projection[0]
            torch.ops.aten.threshold_backward.grad_input(inner, told, 0, grad_input=inner)
            gradients += [multiply(inner.T, own, halved), inner.sum(0)]
        if grad_x is not None:
            part = _part(grad_x, k)
            if x.dim() == 2 and k > 0:  # all layers saw the same x
                _add_product(part, inner, outer, halved)
            elif halved:
                part.copy_(multiply(inner, outer, True))
            else:
                torch.mm(inner, outer, out=part)
            _add_product(part, own_grad, right, halved)
    return grad_x, gradients


def _part(x: Tensor, k: int) -> Tensor:
    return x if x.dim() == 2 else x[k]


# The same for compilers, which make slower products of the plain composition. The arrays are those
# of the edges by target, of the edges by source, and the inverse degrees.


@torch.library.custom_op("coopsheaf::sage_convs", mutates_args=())
def convs_operator(
    x: Tensor, arrays: Sequence[Tensor], parameters: Sequence[Tensor], count: int
) -> tuple[Tensor, Tensor]:
    y, sent = go_forward(x, CSR(*arrays[:3]), arrays[6], by_layer(parameters, count))
    return y, x.new_empty(0) if sent is None else sent


@torch.library.custom_op("coopsheaf::sage_convs_backward", mutates_args=())
def convs_backward_operator(
    grad: Tensor,
    x: Tensor,
    sent: Tensor,
    arrays: Sequence[Tensor],
    parameters: Sequence[Tensor],
    count: int,
    for_x: bool,
) -> list[Tensor]:
    layers = by_layer(parameters, count)
    told = sent if len(layers[0]) > 3 else None
    spread = CSR(*arrays[3:6]), arrays[6]
    grad_x, gradients = go_back(grad, x, told, *spread, layers, for_x=for_x)
    return gradients if grad_x is None else [*gradients, grad_x]


@convs_operator.register_fake
def _(
    x: Tensor, arrays: Sequence[Tensor], parameters: Sequence[Tensor], count: int
) -> tuple[Tensor, Tensor]:
    layers, (n, channels) = by_layer(parameters, count), x.shape[-2:]
    sent = (count, n, channels) if len(layers[0]) > 3 else (0,)
    return x.new_empty(count, n, layers[0][0].shape[0]), x.new_empty(sent)


@convs_backward_operator.register_fake
def _(grad: Tensor, x: Tensor, *others: Any) -> list[Tensor]:
    _, _, parameters, _, for_x = others
    alike = [*parameters, x] if for_x else parameters
    return [torch.empty_like(p, memory_format=torch.contiguous_format) for p in alike]


def _save_convs(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, arrays, parameters, ctx.count = inputs
    ctx.save_for_backward(x, output[1], *arrays, *parameters)


def _differentiate_convs(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Any, ...]:
    x, sent, *rest = ctx.saved_tensors
    arrays, parameters, for_x = rest[:7], rest[7:], ctx.needs_input_grad[0]
    found = convs_backward_operator(grad, x, sent, arrays, parameters, ctx.count, for_x)
    return found[-1] if for_x else None, [None] * 7, found[: len(parameters)], None


convs_operator.register_autograd(_differentiate_convs, setup_context=_save_convs)
