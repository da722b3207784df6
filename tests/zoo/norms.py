"""Batch norms whose statistics are not those of the start, and what they compute."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def shake_norms(model: nn.Module, seed: int = 0) -> nn.Module:
    """Draw statistics and weights of all batch norms inside."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            for name in ("weight", "bias", "running_mean", "running_var"):
                part = getattr(module, name)
                drawn = torch.rand(part.shape, generator=generator, dtype=part.dtype)
                with torch.no_grad():
                    part.copy_(drawn + 0.5)
    return model


def normed(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    """What a batch norm makes of rows in evaluation."""
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return (x - norm.running_mean) * scale + norm.bias
