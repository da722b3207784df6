"""The Sheaf Neural Network of a fixed sheaf (Hansen & Gebhart, 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.snn.conv import FixedSheafConv as FixedSheafConv
    from coopsheaf.zoo.snn.network import SNN as SNN

INFOS = (
    ModelInfo(
        "snn",
        "coopsheaf.zoo.snn.network:SNN",
        "Sheaf Neural Network of a fixed sheaf",
        "Hansen & Gebhart, 2020",
        directed=False,
        edge_weight=True,
        kinship=Kinship(
            "ends of edges",
            "identities, or signs of edge weights",
            operator="I − Δ",
            step="ρ(A W₁ X W₂)",
            normal="yes",
            psd="no",
            hops=1,
            cost="c",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
