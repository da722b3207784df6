"""Neural Sheaf Diffusion (Bodnar et al., NeurIPS 2022): maps at the ends of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship

if TYPE_CHECKING:
    from coopsheaf.zoo.nsd.conv import NSDConv as NSDConv
    from coopsheaf.zoo.nsd.edge_learners import EdgeLearner as EdgeLearner
    from coopsheaf.zoo.nsd.edge_learners import MixedLearner as MixedLearner
    from coopsheaf.zoo.nsd.edge_maps import DiagonalMaps as DiagonalMaps
    from coopsheaf.zoo.nsd.edge_maps import EdgeMaps as EdgeMaps
    from coopsheaf.zoo.nsd.edge_maps import GeneralMaps as GeneralMaps
    from coopsheaf.zoo.nsd.edge_maps import IdentityMaps as IdentityMaps
    from coopsheaf.zoo.nsd.edge_maps import OrthogonalMaps as OrthogonalMaps
    from coopsheaf.zoo.nsd.network import NSD as NSD

_PAPER = "Bodnar et al., NeurIPS 2022"

# What the simpler maps have no use for keeps the network's default and is no setting.
_NO_LEARNER = {
    "map_act": "tanh",
    "sparse_learner": False,
    "sparse_reading": "summed",
    "maps_once": False,
}
_NO_BUNDLE = {"orthogonal": "householder", "learn_weights": None}


def _info(
    name: str, description: str, maps: str, cost: str, paper: str = _PAPER, **options: Any
) -> ModelInfo:
    return ModelInfo(
        name,
        "coopsheaf.zoo.nsd.network:NSD",
        description,
        paper,
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
            cost=cost,
        ),
        **options,
    )


INFOS = (
    _info(
        "nsd-diag",
        "Neural Sheaf Diffusion, diagonal maps",
        "diagonal, learned",
        "c",
        fixed={"maps": "diagonal", **_NO_BUNDLE},
    ),
    _info(
        "nsd-orthogonal",
        "Neural Sheaf Diffusion, O(d) maps",
        "orthogonal times a weight, learned",
        "c·d",
        fixed={"maps": "orthogonal"},
        defaults={"learn_weights": True},
    ),
    _info(
        "nsd-general",
        "Neural Sheaf Diffusion, general maps",
        "any, learned",
        "c·d",
        fixed={"maps": "general", **_NO_BUNDLE},
    ),
    _info(
        "nsd-identity",
        "NSD with every map the identity",
        "identities",
        "c",
        fixed={"maps": "identity", **_NO_LEARNER, **_NO_BUNDLE},
    ),
    _info(
        # Weights are a part of the sheaf as well: none are learned.
        "nsd-random",
        "NSD with random orthogonal maps, not trained",
        "orthogonal, of a random learner",
        "c·d",
        fixed={"maps": "orthogonal", "learn_weights": False},
        train_maps=False,
    ),
    _info(
        # The same network; its authors' settings are its recipes.
        "isn",
        "Identity Sheaf Network: nsd-identity with settings of its own",
        "identities",
        "c",
        "Hernandez Caralt et al., 2026",
        fixed={"maps": "identity", **_NO_LEARNER, **_NO_BUNDLE},
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
