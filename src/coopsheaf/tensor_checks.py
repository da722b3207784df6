"""Checks of tensors: each error names the argument, the rule and the value it got."""

from __future__ import annotations

import torch
from torch import Tensor

from coopsheaf.checks import check_int


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


def check_edge_numbers(
    edge_weight: object, num_edges: int, other_argument: str, other: Tensor
) -> Tensor:
    """One number of any sign per edge, of the dtype and on the device of ``other``."""
    weight = check_shape("edge_weight", edge_weight, f"(m,) with m = {num_edges}", (num_edges,))
    if torch.is_autocast_enabled(other.device.type):
        weight = weight.to(other.dtype)  # inside a network autocast has changed that of x
    check_same("edge_weight", weight, other_argument, other)
    return weight


def check_edge_weight(
    edge_weight: object, num_edges: int, other_argument: str, other: Tensor
) -> Tensor:
    """One finite weight per edge, not negative, of the dtype and on the device of ``other``."""
    weight = check_edge_numbers(edge_weight, num_edges, other_argument, other)
    if _readable(weight):
        smallest, largest = (value.item() for value in weight.detach().aminmax())
        if not (smallest >= 0 and largest < float("inf")):
            raise ValueError(
                "`edge_weight` must be finite and not negative (put signs into the maps); "
                f"got values from {smallest:g} to {largest:g}"
            )
    return weight


def check_edge_attr(
    edge_attr: object, num_edges: int, channels: int, other_argument: str, other: Tensor
) -> Tensor:
    """Finite features of every edge, of the dtype and on the device of ``other``."""
    rule = f"(m, {channels}) with m = {num_edges}"
    features = check_shape("edge_attr", edge_attr, rule, (num_edges, channels))
    if torch.is_autocast_enabled(other.device.type):
        features = features.to(other.dtype)
    check_same("edge_attr", features, other_argument, other)
    check_finite("edge_attr", features)
    return features


def check_finite(argument: str, value: Tensor) -> None:
    """No NaN and no infinity, where values can be looked at."""
    if _readable(value) and not bool(value.detach().isfinite().all()):
        raise ValueError(f"`{argument}` must be finite; it holds NaN or infinity")


def check_batch(batch: object, batch_size: object, num_nodes: int) -> None:
    """The graph of each node: ``(n,)`` integers in ``[0, batch_size)``."""
    if batch_size is not None and not torch.compiler.is_compiling():
        check_int("batch_size", batch_size, minimum=1)  # type: ignore[arg-type]
    if batch is None:
        if batch_size not in (None, 1):
            raise ValueError(f"`batch_size` must come with `batch`; got {batch_size!r} alone")
        return
    tensor = check_tensor("batch", batch)
    if tensor.dtype != torch.int64 or tensor.shape != (num_nodes,):
        raise ValueError(
            f"`batch` must be an int64 tensor of shape ({num_nodes},), the graph of each node; "
            f"got {tensor.dtype} of shape {tuple(tensor.shape)}"
        )
    if _readable(tensor):
        low, high = (int(value) for value in tensor.aminmax())
        if low < 0 or (batch_size is not None and high >= batch_size):  # type: ignore[operator]
            limit = "" if batch_size is None else f" and below batch_size = {batch_size}"
            raise ValueError(f"`batch` must hold graph numbers from 0{limit}; got {low} to {high}")


def _readable(tensor: Tensor) -> bool:
    """Whether to look at values: not in a compiled graph, not where a step would have to wait for
    the device, and not where ``torch.func`` may stand for many values at once."""
    return (
        tensor.numel() > 0
        and tensor.is_cpu
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )
