"""DRew: layers that reach one hop further each, with or without delay (Gutteridge et al., 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.drew.distances import pairs_by_distance as pairs_by_distance
    from coopsheaf.zoo.drew.network import DRew as DRew
    from coopsheaf.zoo.drew.network import DRewConv as DRewConv

INFOS = (
    ModelInfo(
        "drew",
        "coopsheaf.zoo.drew.network:DRew",
        "GCN whose layers reach one hop further each, with a delay",
        "Gutteridge et al., ICML 2023",
        default_lr=1e-3,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
