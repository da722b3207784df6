"""Tensors of a fit's state: a file that does not fit is refused now, not in the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # of Adam and AdamW; plain descent keeps none


def check_same_shapes(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Two state dicts of one network."""
    for name in {**wanted, **found}:
        if name not in found or name not in wanted or found[name].shape != wanted[name].shape:
            raise ValueError(f"the best parameters must be those of the network; {name} is not")


def check_moments(
    moments: Mapping[int, Mapping[str, Tensor]], parameters: Sequence[Tensor]
) -> None:
    """What the optimiser keeps of each parameter that it has moved."""
    for index, values in moments.items():
        if not 0 <= index < len(parameters) or values.keys() != MOMENTS:
            raise ValueError(f"the optimiser must keep {sorted(MOMENTS)} of parameters; {index}")
        for name, value in values.items():
            shape = torch.Size() if name == "step" else parameters[index].shape
            if value.shape != shape or not value.is_floating_point():
                raise ValueError(f"{name} of parameter {index} must have shape {tuple(shape)}")
