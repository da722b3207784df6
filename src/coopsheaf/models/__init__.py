"""Whole networks: encoder, layers, readout; and the registry of models by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coopsheaf.models.csnn import CSNN

__all__ = ["CSNN"]


def __getattr__(name: str) -> Any:
    # Loaded when used: the registry is read by programs that need no PyTorch.
    if name == "CSNN":
        from coopsheaf.models.csnn import CSNN

        return CSNN
    raise AttributeError(f"module 'coopsheaf.models' has no attribute {name!r}")
