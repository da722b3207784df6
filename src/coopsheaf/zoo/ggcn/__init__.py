"""GGCN: neighbours that are alike are added, others subtracted (Yan et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.ggcn.network import GGCN as GGCN
    from coopsheaf.zoo.ggcn.network import GGCNConv as GGCNConv

INFOS = (
    ModelInfo(
        "ggcn",
        "coopsheaf.zoo.ggcn.network:GGCN",
        "signed messages by cosine, corrected by degrees",
        "Yan et al., ICDM 2022",
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
