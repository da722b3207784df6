"""A linear layer and its activation, in as few passes as can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from coopsheaf.nn import fused
from coopsheaf.nn.products import linear
from coopsheaf.sheaves.kernels import is_fused


def has_hooks(module: nn.Module) -> bool:
    """Whether somebody listens to what happens inside of a module."""
    before = module._forward_pre_hooks or module._backward_pre_hooks
    return bool(before or module._forward_hooks or module._backward_hooks)


def apply_linear(module: Any, x: Tensor, act: Callable[[Tensor], Tensor]) -> Tensor:
    """``act(module(x))``: fused, and in the precision of products, if that is a linear layer.

    Args:
        module: anything; one that is not a plain :class:`torch.nn.Linear` is called as it is.
        x: ``(n, k)``.
        act: the activation.
    """
    if type(module) is not nn.Linear or has_hooks(module):
        return act(module(x))
    code = fused.activation_code(act)
    if code is not None and x.dim() == 2 and is_fused(x, module.weight, module.bias):
        return fused.linear(x, module.weight, module.bias, code)
    return act(linear(x, module.weight, module.bias))
