"""How large a network will be, before it is built: sizes that no machine can bear are refused.

Imports PyTorch only when there is something to estimate.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from coopsheaf.memory import machine_bytes

if TYPE_CHECKING:
    from coopsheaf.models.info import Settings

# Beyond these a network is built for minutes, or one step takes hours, whatever the memory.
MOST = {"stalk_dim": 256}
MOST_LAYERS = 1_000

# Networks below this product of their sizes are small; nothing is estimated for them.
_SMALL = 2**36
# Numbers of layers above this one are extrapolated from those of shallow networks.
_SHALLOW = 8
_DEPTHS = (_SHALLOW - 2, _SHALLOW - 1, _SHALLOW)

TRAINING_COPIES = 5  # parameters, the best so far, gradients and Adam's two moments


def check_sizes(settings: Settings) -> None:
    """Refuse settings beyond what the networks are made for."""
    for name, value in _whole_numbers(settings).items():
        most = MOST_LAYERS if name.endswith("_layers") else MOST.get(name)
        if most is not None and value > most:
            raise ValueError(f"`{name}` must be at most {most}; got {value}")


def check_parameters(
    settings: Settings,
    in_channels: int,
    out_channels: int | None,
    *,
    copies: int = 1,
    num_nodes: int | None = None,
    edge_channels: int = 0,
    pe_channels: int = 0,
) -> None:
    """Refuse a network whose parameters do not fit into the memory of this machine.

    Args:
        settings: of the network.
        in_channels, out_channels: sizes of its input and output.
        copies: how often its parameters will be held, at four bytes each.
        num_nodes: of the graph, for networks that learn something about every node.
        edge_channels, pe_channels: sizes of what the network is told of edges and of places.
    """
    sizes = _whole_numbers(settings)
    # A bound of what one tensor holds, the input's size aside: most networks are far below.
    rows = num_nodes or 1
    if math.prod(sizes.values()) * max(sizes.values(), default=1) ** 2 * rows <= _SMALL:
        return
    beside = {"edge_channels": edge_channels, "pe_channels": pe_channels}
    count = estimate_parameters(settings, in_channels, out_channels, num_nodes, **beside)
    have = _memory()
    if 4 * copies * count > have:
        name = max(sizes, key=lambda name: sizes[name])
        number = "more parameters than PyTorch can count"
        if count < math.inf:
            number = f"{count:.2g} parameters, {4 * copies * count / 2**30:,.0f} GB"
        raise ValueError(
            f"these settings give {number}; this machine has {have / 2**30:,.1f} GB of memory: "
            f"make `{name}` smaller; got {sizes[name]}"
        )


def estimate_parameters(
    settings: Settings,
    in_channels: int,
    out_channels: int | None,
    num_nodes: int | None = None,
    **beside: int,
) -> float:
    """How many parameters a network will have; infinity if that is beyond PyTorch's numbers.

    Networks without memory behind them are built and counted. Deep ones are extrapolated: the count
    has degree two at most in each number of layers.
    """
    sizes = _whole_numbers(settings)
    deep = {name: n for name, n in sizes.items() if name.endswith("_layers") and n > _SHALLOW}
    total = 0.0
    for corner in product(_DEPTHS, repeat=len(deep)):
        shallow = dict(zip(deep, corner, strict=True))
        part: Settings = dataclasses.replace(settings, **shallow)  # type: ignore[type-var]
        count = _count(part, in_channels, out_channels, num_nodes, beside)
        total += count * math.prod(_share(depth, deep[name]) for name, depth in shallow.items())
    return total if math.isfinite(total) else math.inf


def _share(depth: int, wanted: int) -> int:
    """How often the count at one depth is part of that at another: Lagrange's weight."""
    others = [other for other in _DEPTHS if other != depth]
    above = math.prod(wanted - other for other in others)
    return above // math.prod(depth - other for other in others)


def _count(
    settings: Settings,
    in_channels: int,
    out_channels: int | None,
    num_nodes: int | None,
    beside: Mapping[str, Any],
) -> float:
    import torch

    before = torch.get_rng_state()  # some networks draw on the CPU all the same
    try:
        with torch.device("meta"):
            network = settings.make(in_channels, out_channels, num_nodes=num_nodes, **beside)
    except (OverflowError, RuntimeError, TypeError) as error:
        if "overflow" not in str(error).lower():
            raise
        return math.inf
    finally:
        torch.set_rng_state(before)
    return sum(parameter.numel() for parameter in network.parameters())


def _whole_numbers(settings: Any) -> Mapping[str, int]:
    values = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool) and not name.endswith("seed")
    }


def _memory() -> float:
    return machine_bytes() if hasattr(os, "sysconf") else math.inf  # Windows does not say
