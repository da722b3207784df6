"""Products with the block diagonal, and its inverse square root.

A block diagonal comes in one of two forms: ``(n,)``, a multiple of the identity per node (what
conformal maps give), or ``(n, d, d)``, a symmetric block per node.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def apply_diagonal(diagonal: Tensor, x: Tensor) -> Tensor:
    """D x for x of shape ``(n, d, h)``."""
    return diagonal[:, None, None] * x if diagonal.dim() == 1 else diagonal @ x


def inverse_sqrt(diagonal: Tensor) -> Tensor:
    r"""The (pseudo-)inverse square root :math:`D^{-1/2}` of positive semi-definite blocks.

    Directions in which a block vanishes stay zero, in the value and in the gradient. The gradient
    is finite and exact where eigenvalues coincide, as they do for every conformal map and for the
    identity: with :math:`D = U \operatorname{diag}(r^2) U^\top`, the derivative of the root in
    the eigenbasis multiplies entry (a, b) by the divided difference

    .. math:: \frac{r_a^{-1} - r_b^{-1}}{r_a^2 - r_b^2} = \frac{-1}{r_a r_b (r_a + r_b)},

    whose right-hand side needs no limit and suffers no cancellation. (Going back through ``eigh``
    or ``svd`` instead divides by zero there.)

    Args:
        diagonal: ``(n,)`` or ``(n, d, d)``.

    Returns:
        The same shape.
    """
    if diagonal.dim() == 1:
        positive = diagonal > _tolerance(diagonal)
        safe = torch.where(positive, diagonal, 1.0)  # keeps 0 · ∞ out of the gradient
        return torch.where(positive, safe.rsqrt(), 0.0)
    # LAPACK knows no half precision.
    work = diagonal.float() if diagonal.dtype in (torch.bfloat16, torch.float16) else diagonal
    return _InverseSqrt.apply(work).to(diagonal.dtype)


def _tolerance(scale: Tensor) -> float:
    return torch.finfo(scale.dtype).tiny


class _InverseSqrt(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, blocks: Tensor) -> Tensor:
        values, vectors = torch.linalg.eigh(blocks)  # (n, d), (n, d, d)
        d = blocks.shape[-1]
        cutoff = values.amax(-1, keepdim=True) * d * torch.finfo(values.dtype).eps
        positive = values > cutoff.clamp(min=_tolerance(values))
        inverse_root = torch.where(positive, torch.where(positive, values, 1.0).rsqrt(), 0.0)
        ctx.save_for_backward(inverse_root, vectors)
        return (vectors * inverse_root.unsqueeze(-2)) @ vectors.mT

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        inverse_root, vectors = ctx.saved_tensors
        a, b = inverse_root.unsqueeze(-1), inverse_root.unsqueeze(-2)
        both = (a > 0) & (b > 0)
        one = (a > 0) ^ (b > 0)
        total = torch.where(both, a + b, 1.0)
        # -1 / (r_a r_b (r_a + r_b)) with r = 1 / inverse_root; against a vanishing direction the
        # difference is r⁻¹ / r²; between two vanishing directions we take 0.
        factor = torch.where(both, -((a * b) ** 2) / total, 0.0)
        factor = torch.where(one, (a + b) ** 3, factor)
        inner = vectors.mT @ ((grad + grad.mT) / 2) @ vectors
        return vectors @ (factor * inner) @ vectors.mT
