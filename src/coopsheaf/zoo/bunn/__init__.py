"""Bundle Neural Networks (Bamberger et al., ICLR 2025): heat along flat bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.bunn.conv import BundleConv as BundleConv
    from coopsheaf.zoo.bunn.conv import BundleLearner as BundleLearner
    from coopsheaf.zoo.bunn.heat import Heat as Heat
    from coopsheaf.zoo.bunn.heat import LimitHeat as LimitHeat
    from coopsheaf.zoo.bunn.heat import SpectralHeat as SpectralHeat
    from coopsheaf.zoo.bunn.heat import TaylorHeat as TaylorHeat
    from coopsheaf.zoo.bunn.network import BuNN as BuNN

INFOS = (
    ModelInfo(
        "bunn",
        "coopsheaf.zoo.bunn.network:BuNN",
        "Bundle Neural Network",
        "Bamberger et al., ICLR 2025",
        edge_weight=True,
        default_lr=3e-4,  # wide residual networks diverge at the rates that small ones like
        kinship=Kinship(
            "nodes",
            "one per bundle: orthogonal, learned",
            operator="Oᵀ p(L) O, p the Taylor polynomial of exp(−τ ·)",
            step="X + Oᵀ U(X, O A X)",
            normal="undirected",
            psd="undirected",
            hops="heat_steps",
            cost="heat_steps · c",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
