"""A deep GCN with PairNorm (ICLR 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.pairnorm.network import PairNorm as PairNorm
    from coopsheaf.zoo.pairnorm.network import PairNormGCN as PairNormGCN

INFOS = (
    ModelInfo(
        "pairnorm",
        "coopsheaf.zoo.pairnorm.network:PairNormGCN",
        "GCN with PairNorm: the mean distance of nodes stays what it is",
        "Zhao & Akoglu, ICLR 2020",
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
