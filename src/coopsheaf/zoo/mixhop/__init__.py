"""MixHop: several powers of the adjacency matrix in every layer (ICML 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.mixhop.conv import MixHopConv as MixHopConv
    from coopsheaf.zoo.mixhop.network import MixHop as MixHop
    from coopsheaf.zoo.mixhop.network import MixHopLINKX as MixHopLINKX

_PAPER = "Abu-El-Haija et al., ICML 2019"

INFOS = (
    ModelInfo(
        "mixhop",
        "coopsheaf.zoo.mixhop.network:MixHop",
        "powers of the adjacency side by side, a learned mixture of them as output",
        _PAPER,
        edge_weight=True,
    ),
    ModelInfo(
        "mixhop-linkx",
        "coopsheaf.zoo.mixhop.network:MixHopLINKX",
        "MixHop as the LINKX benchmark has it: biases, batch norm, a linear output",
        _PAPER,
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
