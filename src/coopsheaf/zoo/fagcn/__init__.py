"""FAGCN: gates between -1 and 1 on edges (AAAI 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.fagcn.network import FAGCN as FAGCN
    from coopsheaf.zoo.fagcn.network import FAGCNConv as FAGCNConv

INFOS = (
    ModelInfo(
        "fagcn",
        "coopsheaf.zoo.fagcn.network:FAGCN",
        "signed gates on edges: neighbours are added or subtracted",
        "Bo et al., AAAI 2021",
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
