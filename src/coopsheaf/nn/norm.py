"""The layer norm in two passes, one there and one back."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.nn.linear import has_hooks
from coopsheaf.sheaves.kernels import is_fused
from coopsheaf.sheaves.kernels.eager import differentiable_backward
from coopsheaf.sheaves.kernels.native import call, needs_gradient


def apply_norm(module: nn.Module, x: Tensor) -> Tensor:
    """``module(x)``: compiled, if that is a layer norm of the rows of x ``(n, k)``.

    PyTorch's needs a microsecond for every few rows, however short they are; with many short rows
    that is more than what reading and writing them takes.
    """
    if type(module) is not nn.LayerNorm or has_hooks(module):
        return module(x)
    weight, bias = module.weight, module.bias
    rows = x.dim() == 2 and module.normalized_shape == x.shape[1:] and x.numel() > 0
    if not rows or weight is None or bias is None or not is_fused(x, weight, bias):
        return module(x)
    inputs = x.contiguous(), weight.contiguous(), bias.contiguous(), module.eps
    return _Norm.apply(*inputs) if needs_gradient(x, weight, bias) else _norm(*inputs)


def _norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    y = torch.empty_like(x)
    call("norm", *x.shape, x, weight, bias, eps, y)
    return y


class _Norm(torch.autograd.Function):
    """Keeps x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.eps = eps
        return _norm(x, weight, bias, eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs = (x, weight, bias, ctx.eps)
            return differentiable_backward(_compose, inputs, ctx.needs_input_grad, grad)
        grad_x, found = torch.empty_like(x), x.new_empty(2, x.shape[1])
        call("norm_back", *x.shape, grad.contiguous(), x, weight, ctx.eps, grad_x, found)
        return grad_x, *found, None


def _compose(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[1:], weight, bias, eps)
