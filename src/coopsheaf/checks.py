"""Checks of arguments: each error names the argument, the rule and the value it got."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def check_choice(argument: str, value: str, choices: Mapping[str, T]) -> T:
    """Look ``value`` up in ``choices``; the error lists what there is."""
    if not isinstance(value, str) or value not in choices:
        names = ", ".join(repr(name) for name in choices)
        raise ValueError(f"`{argument}` must be one of {names}; got {value!r}")
    return choices[value]


def check_int(argument: str, value: int, *, minimum: int) -> int:
    """A whole number (not a bool) of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ValueError(f"`{argument}` must be an integer of at least {minimum}; got {value!r}")
    return value


def check_probability(argument: str, value: float) -> float:
    """A number in [0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise ValueError(f"`{argument}` must be a number in [0, 1); got {value!r}")
    return float(value)


def check_tensor(argument: str, value: object) -> Tensor:
    """A tensor, not an array or a list."""
    if not isinstance(value, Tensor):
        raise ValueError(
            f"`{argument}` must be a torch.Tensor; got {type(value).__name__} "
            "(torch.as_tensor converts arrays and lists)"
        )
    return value


def check_floating(argument: str, value: object) -> Tensor:
    """A tensor of real floating point numbers."""
    tensor = check_tensor(argument, value)
    if not tensor.is_floating_point():
        raise ValueError(
            f"`{argument}` must have a floating point dtype; got {str(tensor.dtype)!r}"
        )
    return tensor


def check_shape(argument: str, value: object, rule: str, shape: tuple[int | None, ...]) -> Tensor:
    """A floating point tensor whose shape fits ``shape`` (``None`` fits any size).

    ``rule`` is the shape in words, such as ``"(n, d, d) with n = 5"``.
    """
    tensor = check_floating(argument, value)
    fits = tensor.dim() == len(shape) and all(
        want is None or got == want for got, want in zip(tensor.shape, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"`{argument}` must have shape {rule}; got {tuple(tensor.shape)}")
    return tensor


def check_same(argument: str, value: Tensor, other_argument: str, other: Tensor) -> None:
    """Two tensors that meet in one product have one dtype and one device."""
    if value.dtype != other.dtype:
        raise ValueError(
            f"`{argument}` and `{other_argument}` must have the same dtype; "
            f"got {value.dtype} and {other.dtype}"
        )
    if value.device != other.device:
        raise ValueError(
            f"`{argument}` and `{other_argument}` must be on the same device; "
            f"got {value.device} and {other.device}"
        )


def check_edge_weight(edge_weight: object, num_edges: int, like: Tensor) -> Tensor:
    """One non-negative, finite weight per edge, of the same dtype and device as ``like``."""
    weight = check_shape("edge_weight", edge_weight, f"(m,) with m = {num_edges}", (num_edges,))
    check_same("edge_weight", weight, "maps", like)
    # Reading values would break a compiled graph; whoever compiles has run eagerly before.
    if not torch.compiler.is_compiling() and weight.numel():
        smallest, largest = weight.detach().aminmax()
        if not (smallest >= 0 and largest < torch.inf):
            raise ValueError(
                "`edge_weight` must be finite and not negative (put signs into the maps); "
                f"got values from {smallest.item():g} to {largest.item():g}"
            )
    return weight
