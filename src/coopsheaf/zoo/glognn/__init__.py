"""GloGNN: every node hears all nodes, in closed form (Li et al., 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.glognn.network import GloGNN as GloGNN
    from coopsheaf.zoo.glognn.network import global_step as global_step

_PAPER = "Li et al., ICML 2022"

INFOS = (
    ModelInfo(
        "glognn",
        "coopsheaf.zoo.glognn.network:GloGNN",
        "global homophily: coefficients between all nodes in closed form",
        _PAPER,
        fixed={"scaled": False},
        inductive=False,
        graph_level=False,
        edge_weight=True,
    ),
    ModelInfo(
        "glognn++",
        "coopsheaf.zoo.glognn.network:GloGNN",
        "glognn that learns how much each channel counts",
        _PAPER,
        fixed={"scaled": True},
        inductive=False,
        graph_level=False,
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
