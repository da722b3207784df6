"""The precision of matrix products: single, or bfloat16 with sums in single precision.

Products are most of the work of a CSNN, and the one part that bears a rounding of its factors:
maps, operators, sums over neighbours, norms and the optimiser stay in single precision. This is not
autocast, which would switch hand-written derivatives off; a training run with ``precision="bf16"``
on the CPU computes inside :func:`use_products`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.sheaves.kernels.eager import differentiable_backward, is_plain_eager

PRODUCTS = {
    "single": "as they are",
    "bf16": "factors rounded to bfloat16, sums in single precision",
}

_active = "single"


@contextmanager
def use_products(name: str) -> Iterator[None]:
    """Multiply in this precision, for the whole process, inside a ``with`` block.

    It holds for the learners of maps, for W₂ and for the encoder of a :class:`~coopsheaf.CSNN` in
    single precision on the CPU, not for compiled code. Gradients are multiplied as the values
    were, wherever ``backward`` is called.

    Args:
        name: ``"single"`` or ``"bf16"``.
    """
    global _active
    check_choice("name", name, PRODUCTS)
    before, _active = _active, name
    try:
        yield
    finally:
        _active = before


def are_halved(*tensors: Tensor | None) -> bool:
    """Whether products of these tensors are taken in bfloat16."""
    if _active == "single":
        return False
    given = [tensor for tensor in tensors if tensor is not None]
    return given[0].dtype == torch.float32 and is_plain_eager(*given)


def multiply(a: Tensor, b: Tensor, halved: bool) -> Tensor:
    """A B without a derivative of its own, for those who write theirs."""
    return torch.mm(a.bfloat16(), b.bfloat16()).float() if halved else a @ b


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b, from ``(..., k)`` to ``(..., o)``."""
    if not are_halved(x, weight, bias):
        return F.linear(x, weight, bias)
    y = _HalvedProduct.apply(x.flatten(0, -2), weight)
    y = y if bias is None else y + bias
    return y.unflatten(0, x.shape[:-1])


class _HalvedProduct(torch.autograd.Function):
    """x Wᵀ and both its derivatives as products in bfloat16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return multiply(x, weight.T, True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            return differentiable_backward(F.linear, (x, weight), ctx.needs_input_grad, grad)
        grad_x = multiply(grad, weight, True) if ctx.needs_input_grad[0] else None
        grad_weight = multiply(grad.T, x, True) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight
