"""Copresheaf networks (Hajij et al., NeurIPS 2025): a map per arc, no edge stalk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.copresheaf.attention import CopresheafAttention as CopresheafAttention
    from coopsheaf.zoo.copresheaf.maps import ArcMaps as ArcMaps
    from coopsheaf.zoo.copresheaf.maps import DiagonalArcMaps as DiagonalArcMaps
    from coopsheaf.zoo.copresheaf.maps import FullArcMaps as FullArcMaps
    from coopsheaf.zoo.copresheaf.maps import PositiveArcMaps as PositiveArcMaps
    from coopsheaf.zoo.copresheaf.network import Copresheaf as Copresheaf

INFOS = (
    ModelInfo(
        "copresheaf",
        "coopsheaf.zoo.copresheaf.network:Copresheaf",
        "attention whose values are carried by a map per arc",
        "Hajij et al., NeurIPS 2025",
        kinship=Kinship(
            "arcs",
            "one per arc and head: I + tanh, learned; or I + QQᵀ, or diagonal",
            operator="softmax(q·k / √p) ⊙ ρ, block by block",
            step="LN(X + MLP(A V X))",
            normal="no",
            psd="no",
            hops=1,
            cost="c·p, p = c / heads",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
