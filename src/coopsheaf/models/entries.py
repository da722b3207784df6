"""CSNN and its ablations, as the registry lists them. Imports no PyTorch."""

from __future__ import annotations

from typing import Any

from coopsheaf.models.info import ModelInfo


def _info(name: str, description: str, **options: Any) -> ModelInfo:
    network, paper = "coopsheaf.models.csnn:CSNN", "Ribeiro et al., ICLR 2026"
    options = {"edge_attr": True} | options
    return ModelInfo(name, network, description, paper, edge_weight=True, **options)


INFOS = (
    _info("csnn", "Cooperative Sheaf Neural Network"),
    _info(
        "csnn-identity",
        "CSNN with every map the identity",
        defaults={"orthogonal": "identity", "scale": "unit"},
        pinned=("orthogonal", "scale"),
        edge_attr=False,  # its maps are not learned, and nobody else sees them
    ),
    _info("csnn-random", "CSNN with random maps, not trained", train_maps=False),
)
