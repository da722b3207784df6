"""Dir-GNN: weights of their own for either direction of the edges (LoG 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.dirgnn.network import DirGCNConv as DirGCNConv
    from coopsheaf.zoo.dirgnn.network import DirGNN as DirGNN
    from coopsheaf.zoo.dirgnn.network import DirSAGEConv as DirSAGEConv

INFOS = (
    ModelInfo(
        "dirgnn",
        "coopsheaf.zoo.dirgnn.network:DirGNN",
        "weights of their own for edges in and edges out",
        "Rossi et al., LoG 2023",
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
