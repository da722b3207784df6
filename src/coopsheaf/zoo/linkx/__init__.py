"""LINKX: rows of the adjacency matrix beside the features (NeurIPS 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.linkx.network import LINKX as LINKX

INFOS = (
    ModelInfo(
        "linkx",
        "coopsheaf.zoo.linkx.network:LINKX",
        "rows of the adjacency matrix and features, in perceptrons; one graph only",
        "Lim et al., NeurIPS 2021",
        inductive=False,
        graph_level=False,
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
