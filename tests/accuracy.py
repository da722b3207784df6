"""How exact single precision is, measured against double."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def check_as_exact(
    got: Sequence[Tensor], plain: Sequence[Tensor], exact: Sequence[Tensor], factor: float = 4.0
) -> None:
    """What was computed in single precision errs little more than plain operations do there.

    Args:
        got: what is tested.
        plain: the same by ordinary operations in single precision.
        exact: the same in double precision.
        factor: how much more it may err.
    """
    assert len(got) == len(plain) == len(exact)
    for ours, theirs, true in zip(got, plain, exact, strict=True):
        assert ours.shape == true.shape
        assert ours.dtype == torch.float32
        if true.numel() == 0:
            continue
        scale = true.abs().max()
        allowed = factor * (theirs - true).abs().max() + 2e-6 * scale + 1e-12
        assert (ours - true).abs().max() <= allowed


def with_gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """The value of a function of tensors, and the gradients of a weighted sum of it."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    weight = torch.linspace(-1, 1, value.numel(), dtype=value.dtype).view_as(value)
    found = torch.autograd.grad(value, leaves, weight, materialize_grads=True)
    return [value.detach(), *found]
