"""Second order in time: NSP (Suk et al., 2022) and ONDA (Van Looy et al., 2026)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.waves.conv import DirectionalWaveConv as DirectionalWaveConv
    from coopsheaf.zoo.waves.conv import WaveConv as WaveConv
    from coopsheaf.zoo.waves.network import NSP as NSP
    from coopsheaf.zoo.waves.network import ONDA as ONDA
    from coopsheaf.zoo.waves.network import DirectionalONDA as DirectionalONDA

_ONDA = "Van Looy et al., 2026"


def _kinship(
    maps: str, operator: str, step: str, place: str = "ends of edges", **facts: Any
) -> Kinship:
    return Kinship(place, maps, operator=operator, step=step, **facts)


INFOS = (
    ModelInfo(
        "nsp",
        "coopsheaf.zoo.waves.network:NSP",
        "Neural Sheaf Propagation: waves in place of heat",
        "Suk et al., 2022",
        directed=False,
        edge_weight=True,
        kinship=_kinship(
            "orthogonal times a weight, learned; or diagonal, or any",
            "Δ = R δᵀδ R",
            "2 X − X before − σ(A W₁ X W₂)",
            normal="yes",
            psd="yes",
            hops=1,
            cost="c·d",
        ),
    ),
    ModelInfo(
        "onda",
        "coopsheaf.zoo.waves.network:ONDA",
        "blocks of waves on a sheaf, with damping and forcing",
        _ONDA,
        directed=False,
        edge_weight=True,
        kinship=_kinship(
            "any, learned; or orthogonal, or diagonal",
            "Δ = R δᵀδ R",
            "several times V − s A W₁ X W₂ and X + s V; then an MLP",
            normal="yes",
            psd="yes",
            hops="num_steps",
            cost="num_steps · c·d",
        ),
    ),
    ModelInfo(
        "onda-directional",
        "coopsheaf.zoo.waves.network:DirectionalONDA",
        "the same with maps of their own for either direction of an edge",
        _ONDA,
        edge_weight=True,
        kinship=_kinship(
            "two per arc: any, learned; or orthogonal, or diagonal",
            "R (D − Σ Tᵀ S) R, D = Σ TᵀT",
            "several times V − s A W₁ X W₂ and X + s V; then an MLP",
            place="arcs",
            normal="no",
            psd="no",
            hops="num_steps",
            cost="num_steps · c·d",
        ),
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
