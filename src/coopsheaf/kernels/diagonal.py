"""Products with the block diagonal, and its inverse square root.

A block diagonal comes in one of two forms: ``(n,)``, a multiple of the identity per node (what
conformal maps give), or ``(n, d, d)``, a symmetric block per node.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
        return _masked_rsqrt(diagonal, diagonal > _floor(diagonal.dtype))
    # LAPACK knows no half precision; what counts as zero is still up to the dtype given.
    half = diagonal.dtype in (torch.bfloat16, torch.float16)
    work = diagonal.float() if half else diagonal
    return _InverseSqrt.apply(work, torch.finfo(diagonal.dtype).eps).to(diagonal.dtype)


def _floor(dtype: torch.dtype) -> float:
    """The smallest number whose power -3/2, which the gradient has, is still finite."""
    return torch.finfo(dtype).tiny ** (2 / 3)


def _masked_rsqrt(values: Tensor, positive: Tensor) -> Tensor:
    safe = torch.where(positive, values, 1.0)  # keeps 0 · ∞ out of the gradient
    return torch.where(positive, safe.rsqrt(), 0.0)


class _InverseSqrt(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, blocks: Tensor, eps: float) -> Tensor:
        with torch.autocast(blocks.device.type, enabled=False):
            values, vectors = torch.linalg.eigh(blocks)  # (n, d), (n, d, d)
            cutoff = values.amax(-1, keepdim=True) * blocks.shape[-1] * eps
            positive = values > cutoff.clamp(min=_floor(values.dtype))
            inverse_root = _masked_rsqrt(values, positive)
            ctx.save_for_backward(inverse_root, vectors)
            return (vectors * inverse_root.unsqueeze(-2)) @ vectors.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        if torch.is_grad_enabled():
            # What is computed below does not depend on the blocks as far as autograd can see: a
            # second derivative would be wrong without a word.
            raise RuntimeError(
                "second derivatives through the inverse square root of d x d blocks are not "
                "implemented; conformal maps, which need none, have them"
            )
        inverse_root, vectors = ctx.saved_tensors
        with torch.autocast(grad.device.type, enabled=False):
            a, b = inverse_root.unsqueeze(-1), inverse_root.unsqueeze(-2)
            both, one = (a > 0) & (b > 0), (a > 0) ^ (b > 0)
            product, total = a * b, torch.where(both, a + b, 1.0)
            # -1 / (r_a r_b (r_a + r_b)) with r = 1 / inverse_root; against a vanishing direction
            # the difference is r⁻¹ / r²; between two vanishing directions we take 0.
            factor = torch.where(both, -product * (product / total), 0.0)
            factor = torch.where(one, (a + b) ** 3, factor)
            inner = vectors.mT @ ((grad + grad.mT) / 2).to(vectors.dtype) @ vectors
            return vectors @ (factor * inner) @ vectors.mT, None
