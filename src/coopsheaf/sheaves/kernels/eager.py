"""When hand-written derivatives may stand in for a composition of PyTorch's operations.

A hand-written derivative saves memory and passes over it, but it is opaque: the transforms of
``torch.func``, forward-mode derivatives and autocast need to look inside. So do compilers where
most of the work is entry by entry; where it is matrix products they get custom operators with the
same derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def is_plain_eager(*tensors: Tensor | None) -> bool:
    """Tensors of one full-precision dtype on the CPU, and nobody who needs to look inside."""
    return not torch.compiler.is_compiling() and is_plain(tensors)


def is_transformed() -> bool:
    """Inside a transform of ``torch.func``, which looks into everything.

    It does not see the derivatives that are registered with custom operators: they, too, must be
    plain compositions there.
    """
    return torch._C._are_functorch_transforms_active()


def is_plain_compiled(*tensors: Tensor | None) -> bool:
    """The same in code that is being compiled to be run here, not exported."""
    compiled = torch.compiler.is_compiling() and not torch.compiler.is_exporting()
    return compiled and is_plain(tensors)


def is_plain(
    tensors: Sequence[Tensor | None],
    device: str = "cpu",
    dtypes: Sequence[torch.dtype] = (torch.float32, torch.float64),
) -> bool:
    """Tensors of one of these dtypes on this kind of device, outside of transforms and autocast."""
    kind, dtype = f"is_{device}", None
    for tensor in tensors:  # a loop of its own: this is asked for every operation
        if tensor is None:
            continue
        if dtype is None:
            dtype = tensor.dtype
        if tensor.dtype != dtype or not getattr(tensor, kind):
            return False
    return (
        dtype in dtypes
        and forward_ad._current_level < 0
        and not is_transformed()
        and not torch.is_autocast_enabled(device)
    )


def differentiable_backward(
    compose: Callable[..., Tensor], inputs: Sequence[Any], needed: Sequence[bool], grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradient of ``compose(*inputs)`` as a function that can be differentiated again.

    For second derivatives: ``compose`` is the plain composition that a hand-written derivative
    stands in for.
    """
    if is_transformed():
        # Gradients of a batch of gradients would come out as zeros.
        raise RuntimeError(
            "torch.func cannot transform a second derivative of what was computed outside of it; "
            "transform the whole function instead, such as torch.func.jacrev(model)"
        )
    # An input may depend on another one: aliases keep the derivatives apart.
    aliases = [v.view_as(v) if isinstance(v, Tensor) else v for v in inputs]
    with torch.enable_grad():
        out = compose(*aliases)
    wanted = [alias for alias, need in zip(aliases, needed, strict=True) if need]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True, allow_unused=True))
    return tuple(next(found) if need else None for need in needed)
