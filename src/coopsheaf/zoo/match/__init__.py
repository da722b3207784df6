"""The networks that NeighborsMatch was published with (Alon & Yahav, ICLR 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.match.network import MatchNetwork as MatchNetwork


def _info(name: str, kind: str, description: str, paper: str) -> ModelInfo:
    network = "coopsheaf.zoo.match.network:MatchNetwork"
    return ModelInfo(name, network, description, paper, fixed={"kind": kind})


INFOS = (
    _info("gin", "gin", "graph isomorphism network, with residuals", "Xu et al., ICLR 2019"),
    _info("ggnn", "ggnn", "gated graph neural network, one step a layer", "Li et al., ICLR 2016"),
    _info(
        "gcn-match",
        "gcn",
        "graph convolutional network, with residuals and norms, as in NeighborsMatch",
        "Kipf & Welling, ICLR 2017; Alon & Yahav, ICLR 2021",
    ),
    _info(
        "gat-match",
        "gat",
        "graph attention network, with residuals and norms, as in NeighborsMatch",
        "Veličković et al., ICLR 2018; Alon & Yahav, ICLR 2021",
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
