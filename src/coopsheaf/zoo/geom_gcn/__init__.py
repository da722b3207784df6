"""Geom-GCN: neighbours in the graph and in a space, in divisions by relation (Pei et al., 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.geom_gcn.network import GeomGCN as GeomGCN
    from coopsheaf.zoo.geom_gcn.network import GeomGCNConv as GeomGCNConv

INFOS = (
    ModelInfo(
        "geom-gcn",
        "coopsheaf.zoo.geom_gcn.network:GeomGCN",
        "sums over divisions of neighbours, by relation",
        "Pei et al., ICLR 2020",
        edge_attr=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
