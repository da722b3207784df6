"""Neural Sheaf Diffusion on quivers: the symmetric Laplacian that knows directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.quiver.conv import QuiverConv as QuiverConv
    from coopsheaf.zoo.quiver.network import QuiverNSD as QuiverNSD

INFOS = (
    ModelInfo(
        "quiver-nsd",
        "coopsheaf.zoo.quiver.network:QuiverNSD",
        "Neural Sheaf Diffusion with quiver Laplacians",
        "operator: Sumray, Harrington & Nanda, 2024",
        edge_weight=True,
        kinship=Kinship(
            "arcs",
            "any, learned; or diagonal, or orthogonal",
            operator="Δ = R BᵀB R, (Bx)_e = A_e x_i − x_j for e = i→j",
            step="(1 + tanh ε) X − σ(A W₁ X W₂)",
            normal="yes",
            psd="yes",
            hops=1,
            cost="2 c·d",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
