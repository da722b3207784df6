"""Products with one small matrix per node."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coopsheaf.sheaves.kernels.eager import differentiable_backward, is_plain_eager

# Below this many multiplications per node PyTorch multiplies batches of matrices entry by entry.
_SMALL = 400
# Up to this stalk dimension compilers see products of matrices written out.
_WRITTEN_OUT = 5


def multiply_stalks(matrix: Tensor, x: Tensor) -> Tensor:
    """W x with one matrix ``(d, d)`` for all nodes; x ``(n, d, h)``."""
    if is_plain_eager(matrix, x):
        return _MultiplyStalks.apply(matrix, x)
    return compose_product(matrix.expand(x.shape[0], -1, -1), x)


def compose_product(maps: Tensor, x: Tensor) -> Tensor:
    """F x with ordinary operations: maps ``(n, d, d)``, x ``(n, d, h)``."""
    d = x.shape[1]
    compiled = torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    if not (compiled and x.device.type == "cpu" and 0 < d <= _WRITTEN_OUT):
        return maps @ x
    # Compilers turn it into one loop over the channels, with what stands before and after.
    rows = [sum(maps[:, i, k, None] * x[:, k] for k in range(d)) for i in range(d)]
    return torch.stack(rows, dim=1)  # type: ignore[arg-type]


class _MultiplyStalks(torch.autograd.Function):
    """``matrix @ x`` would turn x round, multiply by one tall matrix and turn it back."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(matrix, x)
        return stalk_product(matrix.expand(x.shape[0], -1, -1), x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        matrix, x = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate again
            inputs, needed = (matrix, x), ctx.needs_input_grad
            return differentiable_backward(torch.matmul, inputs, needed, grad)
        grad_matrix = grad_x = None
        if ctx.needs_input_grad[0]:
            grad_matrix = torch.bmm(grad, x.mT).sum(0)
        if ctx.needs_input_grad[1]:
            grad_x = stalk_product(matrix.mT.expand(x.shape[0], -1, -1), grad)
        return grad_matrix, grad_x


# What follows has no derivative of its own.


def stalk_product(maps: Tensor, x: Tensor) -> Tensor:
    """F x: maps ``(n, d, d)``, x ``(n, d, h)``."""
    if not _is_small(x):
        return torch.bmm(maps, x)
    d, out = x.shape[1], torch.empty_like(x, memory_format=torch.contiguous_format)
    for i in range(d):
        row = out[:, i]
        torch.mul(maps[:, i, 0, None], x[:, 0], out=row)
        for k in range(1, d):
            row.addcmul_(maps[:, i, k, None], x[:, k])
    return out


def subtract_stalk_product(y: Tensor, maps: Tensor, x: Tensor) -> Tensor:
    """y - F x, written into y."""
    if not _is_small(x):
        return y.baddbmm_(maps, x, alpha=-1)
    d = x.shape[1]
    for i in range(d):
        row = y[:, i]
        for k in range(d):
            row.addcmul_(maps[:, i, k, None], x[:, k], value=-1)
    return y


def _is_small(x: Tensor) -> bool:
    _, d, h = x.shape
    return 0 < d * d * h < _SMALL


def identity_like(x: Tensor, d: int) -> Tensor:
    """The identity with d rows, made where ``x`` is: a copy from the host would have to wait."""
    return torch.eye(d, dtype=x.dtype, device=x.device)
