"""Nonlinear sheaf diffusion (Zaghen et al., 2024): a function of how the ends of edges differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.nlsd.conv import NLSDConv as NLSDConv
    from coopsheaf.zoo.nlsd.conv import OddPerceptron as OddPerceptron
    from coopsheaf.zoo.nlsd.network import NLSD as NLSD

INFOS = (
    ModelInfo(
        "nlsd",
        "coopsheaf.zoo.nlsd.network:NLSD",
        "Nonlinear sheaf diffusion",
        "Zaghen et al., 2024",
        directed=False,
        edge_weight=True,
        kinship=Kinship(
            "ends of edges",
            "orthogonal times a weight, learned; or diagonal, or any",
            operator="A(X) = R δᵀ φ(δ R X), φ odd",
            step="(1 + tanh ε) X − σ(A(W₁ X W₂))",
            normal=None,
            psd=None,
            hops=1,
            cost="c·d + 2c² (φ a perceptron)",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
