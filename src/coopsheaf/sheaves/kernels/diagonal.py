"""Products with the block diagonal, and its inverse square root.

A block diagonal comes in one of two forms: ``(n,)``, a multiple of the identity per node (what
conformal maps give), or ``(n, d, d)``, a symmetric block per node.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from coopsheaf.sheaves.kernels.eager import differentiable_backward, is_transformed
from coopsheaf.sheaves.kernels.runs import active_runs, by_node

_ORDER = 3  # derivatives of the plain composition that are exact


def apply_diagonal(diagonal: Tensor, x: Tensor) -> Tensor:
    """D x for x of shape ``(n, d, h)``."""
    return diagonal[:, None, None] * x if diagonal.dim() == 1 else diagonal.to(x.dtype) @ x


def inverse_sqrt(diagonal: Tensor) -> Tensor:
    r"""The (pseudo-)inverse square root :math:`D^{-1/2}` of positive semi-definite blocks.

    Directions in which a block vanishes stay zero, in the value and in the gradient. The gradient
    is finite and exact where eigenvalues coincide, as they do for every conformal map and for the
    identity: with :math:`D = U \operatorname{diag}(r^2) U^\top`, the derivative of the root in
    the eigenbasis multiplies entry (a, b) by the divided difference

    .. math:: \frac{r_a^{-1} - r_b^{-1}}{r_a^2 - r_b^2} = \frac{-1}{r_a r_b (r_a + r_b)},

    whose right-hand side needs no limit and suffers no cancellation. (Going back through ``eigh``
    or ``svd`` instead divides by zero there.) Of higher derivatives the second and third are exact
    where no direction of a block vanishes while another does not; there they are refused, and wrong
    inside ``torch.func``, which cannot look at values.

    Args:
        diagonal: ``(n,)`` or ``(n, d, d)``.

    Returns:
        The same shape.
    """
    if diagonal.dim() == 1:
        return _masked_rsqrt(diagonal, diagonal > _floor(diagonal.dtype))
    if active_runs() is not None:
        roots: Tensor = by_node(inverse_sqrt, diagonal)
        return roots
    # LAPACK knows no half precision; what counts as zero is still up to the dtype given.
    half = diagonal.dtype in (torch.bfloat16, torch.float16)
    work = diagonal.float() if half else diagonal
    return _root_dual(work, torch.finfo(diagonal.dtype).eps).to(diagonal.dtype)


def _root_dual(blocks: Tensor, eps: float) -> Tensor:
    """The root, with forward-mode derivatives, which a custom operator would drop."""
    if is_transformed():
        return _compose_root(blocks, eps)
    if forward_ad._current_level < 0:
        return _inverse_sqrt(blocks, eps)[0]
    blocks, tangent = forward_ad.unpack_dual(blocks)
    root, inverse_root, vectors = _inverse_sqrt(blocks, eps)
    if tangent is None:
        return root
    return forward_ad.make_dual(root, _derivative(tangent, inverse_root, vectors))


def _floor(dtype: torch.dtype) -> float:
    """The smallest number whose power -3/2, which the gradient has, is still finite."""
    return torch.finfo(dtype).tiny ** (2 / 3)


def _masked_rsqrt(values: Tensor, positive: Tensor) -> Tensor:
    safe = torch.where(positive, values, 1.0)  # keeps 0 · ∞ out of the gradient
    return torch.where(positive, safe.rsqrt(), 0.0)


def compose_inverse_sqrt(blocks: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """The root, the root's eigenvalues ``(n, d)`` and its eigenvectors."""
    inverse_root, vectors = _decompose(blocks, eps)
    root = (vectors * inverse_root.unsqueeze(-2)) @ vectors.mT
    return root, inverse_root, vectors.contiguous()


@torch.library.custom_op("coopsheaf::inverse_sqrt", mutates_args=())
def _inverse_sqrt(blocks: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    with torch.autocast(blocks.device.type, enabled=False):
        return compose_inverse_sqrt(blocks, eps)


def _decompose(blocks: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The eigenvalues ``(n, d)`` of the root and its eigenvectors ``(n, d, d)``."""
    values, vectors = torch.linalg.eigh(blocks)
    cutoff = values.amax(-1, keepdim=True) * blocks.shape[-1] * eps
    return _masked_rsqrt(values, values > cutoff.clamp(min=_floor(values.dtype))), vectors


def _compose_root(blocks: Tensor, eps: float) -> Tensor:
    """The root with ordinary operations, exact with its first three derivatives.

    In the eigenbasis at hand, which is taken as constant, W = D^{-1/2} solves W E W = I for E = D
    there. From W = diag(1/r), the solution, a simplified Newton step, :math:`W_{ab} \\gets W_{ab} -
    (W E W - I)_{ab} / (r_a + r_b)`, changes no value and makes one derivative more exact.
    """
    with torch.autocast(blocks.device.type, enabled=False):
        a, vectors = _decompose(blocks.detach(), eps)
        inner = vectors.mT @ ((blocks + blocks.mT) / 2) @ vectors
        rows, cols = a.unsqueeze(-1), a.unsqueeze(-2)
        both, one = (rows > 0) & (cols > 0), (rows > 0) ^ (cols > 0)
        step = torch.where(both, rows * cols / torch.where(both, rows + cols, 1.0), 0.0)
        root, unit = torch.diag_embed(a), torch.diag_embed((a > 0).to(a.dtype))
        for _ in range(_ORDER):
            root = root - step * (root @ inner @ root - unit)
        # Against a vanishing direction the divided difference is r⁻¹ / r².
        root = root + torch.where(one, (rows + cols) ** 3, 0.0) * inner
        return vectors @ root @ vectors.mT


@_inverse_sqrt.register_fake
def _(blocks: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    root = torch.empty_like(blocks, memory_format=torch.contiguous_format)
    return root, blocks.new_empty(blocks.shape[:-1]), torch.empty_like(root)


def _save_root(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(inputs[0], *output[1:])
    ctx.eps = inputs[1]


def _root_backward(ctx: Any, grad: Tensor, *others: Tensor) -> tuple[Tensor | None, None]:
    blocks, inverse_root, vectors = ctx.saved_tensors
    if not torch.is_grad_enabled():
        return _derivative(grad, inverse_root, vectors), None
    # What is computed above does not depend on the blocks as far as autograd can see: a second
    # derivative would be wrong without a word.
    kept = inverse_root > 0
    if bool((kept.any(-1) & ~kept.all(-1)).any()):
        raise RuntimeError(
            "second derivatives through the inverse square root of a singular d x d block are not "
            "implemented; those of invertible blocks, of zeros and of conformal maps are"
        )
    inputs = (blocks, ctx.eps)
    return differentiable_backward(_compose_root, inputs, (True, False), grad)[0], None


def _derivative(direction: Tensor, inverse_root: Tensor, vectors: Tensor) -> Tensor:
    """The derivative of the root in a direction; a symmetric map, so its own adjoint."""
    device = direction.device.type
    known = torch.amp.is_autocast_available(device)
    with torch.autocast(device, enabled=False) if known else nullcontext():
        a, b = inverse_root.unsqueeze(-1), inverse_root.unsqueeze(-2)
        both, one = (a > 0) & (b > 0), (a > 0) ^ (b > 0)
        product, total = a * b, torch.where(both, a + b, 1.0)
        # -1 / (r_a r_b (r_a + r_b)) with r = 1 / inverse_root; against a vanishing direction
        # the difference is r⁻¹ / r²; between two vanishing directions we take 0.
        factor = torch.where(both, -product * (product / total), 0.0)
        factor = torch.where(one, (a + b) ** 3, factor)
        inner = vectors.mT @ ((direction + direction.mT) / 2).to(vectors.dtype) @ vectors
        return vectors @ (factor * inner) @ vectors.mT


_inverse_sqrt.register_autograd(_root_backward, setup_context=_save_root)
