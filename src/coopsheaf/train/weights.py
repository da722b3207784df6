"""The network of a run and its weights: compared with each other before either is trusted.

Sizes in ``run.json`` are claims. What there really is, the header of the safetensors file says: its
library compares it with the length of the file. So the network is first built without memory, on
PyTorch's ``meta`` device, and not further than the file can fill it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from coopsheaf.schema import brief
from coopsheaf.train.checkpoint import Shapes, load_tensors, read_shapes
from coopsheaf.train.run_info import CheckpointError

# Some layers are built, copied and thrown away; some modules have no tensors.
SPARE_NUMBERS, SPARE_MODULES = 10_000, 1_000
LARGEST_SETTING = 10_000  # of a network with fewer weights than that


class TooLarge(ValueError):
    """A network that the file of its weights cannot fill."""


class Sizes(NamedTuple):
    """What is in a file of weights: the number of tensors, and of all their entries."""

    tensors: int
    entries: int


def load_network(
    path: Path, identity: str, settings: Mapping[str, Any], build: Callable[[], nn.Module]
) -> nn.Module:
    """Build a network and fill it.

    Args:
        path: ``model.safetensors`` of the run.
        identity: the run that it must belong to.
        settings: those of the network, by name.
        build: builds the network with whatever parameters come; a ``ValueError`` of it is the
            caller's to explain.
    """
    shapes, meta = read_shapes(path)
    if meta.get("identity") != identity:
        raise CheckpointError(f"{path}: belongs to another run than run.json beside it")
    sizes = Sizes(len(shapes), sum(shape.numel() for shape, _ in shapes.values()))
    _check_settings(settings, max(sizes.entries, LARGEST_SETTING))
    with limited(sizes), torch.device("meta"):
        sketch = build()
    wanted = {name: (value.shape, value.dtype) for name, value in sketch.state_dict().items()}
    if shapes != wanted:
        reason = _difference(shapes, wanted)
        raise CheckpointError(f"{path}: does not fit the model in run.json ({reason})")
    with limited(sizes):
        model = build()
    tensors, _ = load_tensors(path)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise CheckpointError(f"{path}: weights must be finite; {brief(name)} is not")
    model.load_state_dict(tensors)
    return model


def _check_settings(settings: Mapping[str, Any], most: int) -> None:
    """Sizes and counts: none is larger than the number of weights, and some cost time alone."""
    for name, value in settings.items():
        limit = 2**63 - 1 if name.endswith("seed") else most
        if isinstance(value, int) and value > limit:
            raise TooLarge(
                f"{name} must be at most {limit} for a network of this size; got {brief(value)}"
            )


@contextmanager
def limited(sizes: Sizes) -> Iterator[None]:
    """Stop building as soon as there is more of a network than a file can fill."""
    most = Sizes(3 * sizes.tensors + SPARE_MODULES, 3 * sizes.entries + SPARE_NUMBERS)
    entries = modules = 0

    def count_parameter(module: nn.Module, name: str, value: nn.Parameter) -> None:
        nonlocal entries
        entries += 0 if value is None else value.numel()
        if entries > most.entries:
            raise TooLarge(
                "its settings make a network of more parameters than model.safetensors has, "
                f"{sizes.entries}"
            )

    def count_module(module: nn.Module, name: str, value: nn.Module) -> None:
        nonlocal modules
        modules += 1
        if modules > 10 * most.tensors:
            raise TooLarge(
                f"its settings make a network of more layers than model.safetensors has tensors, "
                f"{sizes.tensors}"
            )

    hooks = (
        register_module_parameter_registration_hook(count_parameter),
        register_module_module_registration_hook(count_module),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _difference(found: Shapes, wanted: Shapes) -> str:
    """The first difference between the tensors of a file and those of a network."""
    for name, (shape, dtype) in wanted.items():
        if name not in found:
            return f"it lacks the tensor {brief(name)}"
        if found[name] != (shape, dtype):
            got = found[name]
            return (
                f"tensor {brief(name)} must be {dtype} of shape {tuple(shape)}; it is {got[1]} of "
                f"shape {tuple(got[0])}"
            )
    extra = next(name for name in found if name not in wanted)
    return f"the model has no tensor {brief(extra)}"
