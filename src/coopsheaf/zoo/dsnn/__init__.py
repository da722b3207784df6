"""Directed Sheaf Neural Network (Fiorini et al., ICLR 2026): directions as phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.dsnn.conv import DSNNConv as DSNNConv
    from coopsheaf.zoo.dsnn.network import DSNN as DSNN
    from coopsheaf.zoo.dsnn.network import ComplexReLU as ComplexReLU

INFOS = (
    ModelInfo(
        "dsnn",
        "coopsheaf.zoo.dsnn.network:DSNN",
        "Directed Sheaf Neural Network: directions as phases",
        "Fiorini et al., ICLR 2026",
        edge_weight=True,
        kinship=Kinship(
            "ends of edges",
            "orthogonal times a weight, learned; or diagonal, or any",
            operator="Δ = R δ*δ R, arcs turned by e^(2πiq)",
            step="(1 + tanh ε) X − σ(A W₁ X W₂), X complex",
            normal="yes",
            psd="yes",
            hops=1,
            cost="8 c·d",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
