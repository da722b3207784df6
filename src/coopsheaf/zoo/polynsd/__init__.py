"""Polynomial Neural Sheaf Diffusion (Borgi, Silvestri & Liò, 2026): several hops in a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.polynsd.network import PolyNSD as PolyNSD

INFOS = (
    ModelInfo(
        "polynsd",
        "coopsheaf.zoo.polynsd.network:PolyNSD",
        "Neural Sheaf Diffusion with a learned polynomial of its Laplacian",
        "Borgi et al., ICML 2026",
        directed=False,
        edge_weight=True,
        kinship=Kinship(
            "ends of edges",
            "diagonal, learned; or orthogonal, or any",
            operator="Σ c_k T_k(Δ − I), Chebyshev",
            step="(1 + tanh ε) X − σ(A X)",
            normal="yes",
            psd="no",
            hops="num_hops",
            cost="num_hops · c",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
