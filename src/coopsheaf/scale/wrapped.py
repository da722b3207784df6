"""The network inside what others put around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


def unwrap(model: nn.Module) -> tuple[nn.Module, Callable[[Tensor], Tensor]]:
    """The network itself, and what its wrappers do to its outputs.

    Wrappers that only pass on (Fabric's, DDP's) have an attribute ``module``; one that changes the
    outputs has ``network`` and a method ``finish``.
    """
    finish: Callable[[Tensor], Tensor] = _nothing
    inner: Any = model
    while True:
        if isinstance(getattr(inner, "module", None), nn.Module):
            inner = inner.module
        elif isinstance(getattr(inner, "network", None), nn.Module) and hasattr(inner, "finish"):
            inner, finish = inner.network, inner.finish
        else:
            return inner, finish


def _nothing(outputs: Tensor) -> Tensor:
    return outputs
