"""Sheaves that move with the features (Hernandez Caralt et al., 2024): `jdsnn` and `risnn`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.joint.conv import CarriedConv as CarriedConv
    from coopsheaf.zoo.joint.conv import InvariantConv as InvariantConv
    from coopsheaf.zoo.joint.conv import JointConv as JointConv
    from coopsheaf.zoo.joint.learners import InvariantLearner as InvariantLearner
    from coopsheaf.zoo.joint.learners import MapMixing as MapMixing
    from coopsheaf.zoo.joint.network import JdSNN as JdSNN
    from coopsheaf.zoo.joint.network import RiSNN as RiSNN


def _info(name: str, network: str, description: str, maps: str) -> ModelInfo:
    return ModelInfo(
        name,
        f"coopsheaf.zoo.joint.network:{network}",
        description,
        "Hernandez Caralt et al., 2024",
        directed=False,
        edge_weight=True,
        kinship=Kinship(
            "ends of edges",
            maps,
            operator="Δ = R δᵀδ R",
            step="(1 + tanh ε) X − σ(A W₁ X W₂)",
            normal="yes",
            psd="yes",
            hops=1,
            cost="2 c·d",
        ),
    )


INFOS = (
    _info(
        "jdsnn",
        "JdSNN",
        "Joint diffusion: maps start as identities and diffuse with the features",
        "any, from the identity on: diffused by the features",
    ),
    _info(
        "risnn",
        "RiSNN",
        "Maps learned from what does not change when the channels are rotated",
        "any, learned from x_e xᵀ; or orthogonal, or diagonal",
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
