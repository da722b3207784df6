"""Deep Neural Sheaf Diffusion (Bourgerie et al., 2026): the sheaf adjacency, gates and norms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.dnsd.layers import ArcConv as ArcConv
    from coopsheaf.zoo.dnsd.layers import ArcLearner as ArcLearner
    from coopsheaf.zoo.dnsd.layers import DNSDLayer as DNSDLayer
    from coopsheaf.zoo.dnsd.network import DNSD as DNSD

INFOS = (
    ModelInfo(
        "dnsd",
        "coopsheaf.zoo.dnsd.network:DNSD",
        "Deep Neural Sheaf Diffusion: what arcs carry, gated and normed",
        "Bourgerie et al., 2026",
        edge_weight=True,
        kinship=Kinship(
            "arcs",
            "two per arc: any, learned; or orthogonal, or diagonal",
            operator="Σ Tᵀ S / √(deg deg), no diagonal",
            step="LN((1 + ε) X − g ⊙ σ(W₁ A X W₂))",
            normal="no",
            psd="no",
            hops=1,
            cost="c·d",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
