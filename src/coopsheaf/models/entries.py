"""CSNN and its ablations, as the registry lists them. Imports no PyTorch."""

from __future__ import annotations

from typing import Any

from coopsheaf.models.info import ModelInfo
from coopsheaf.models.kinship import Kinship


def _kinship(maps: str, symmetric: str = "no") -> Kinship:
    return Kinship(
        "nodes",
        maps,
        operator="Δ_inᵀ Δ_out",
        step="(1 + tanh ε) X − σ(A W₁ X W₂)",
        normal=symmetric,
        psd=symmetric,
        hops=2,
        cost="2c",
    )


def _info(name: str, description: str, **options: Any) -> ModelInfo:
    network, paper = "coopsheaf.models.csnn:CSNN", "Ribeiro et al., ICLR 2026"
    options = {"edge_attr": True} | options
    return ModelInfo(name, network, description, paper, edge_weight=True, **options)


INFOS = (
    _info(
        "csnn",
        "Cooperative Sheaf Neural Network",
        kinship=_kinship("two, S and T: scale × orthogonal, learned"),
    ),
    _info(
        "csnn-identity",
        "CSNN with every map the identity",
        defaults={"orthogonal": "identity", "scale": "unit"},
        pinned=("orthogonal", "scale"),
        edge_attr=False,  # its maps are not learned, and nobody else sees them
        kinship=_kinship("identities", symmetric="undirected"),
    ),
    _info(
        "csnn-random",
        "CSNN with random maps, not trained",
        train_maps=False,
        kinship=_kinship("two, S and T: scale × orthogonal, of random learners"),
    ),
)
