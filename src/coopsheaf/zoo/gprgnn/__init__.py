"""GPR-GNN: generalised PageRank with learned weights of hops (ICLR 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.gprgnn.network import GPRGNN as GPRGNN
    from coopsheaf.zoo.gprgnn.network import pagerank_weights as pagerank_weights

_PAPER = "Chien et al., ICLR 2021"

INFOS = (
    ModelInfo(
        "gprgnn",
        "coopsheaf.zoo.gprgnn.network:GPRGNN",
        "generalised PageRank: an MLP, then a learned sum over hops",
        _PAPER,
        edge_weight=True,
    ),
    ModelInfo(
        "gprgnn-lab",
        "coopsheaf.zoo.gprgnn.network:GPRGNN",
        "GPR-GNN as the tables on small graphs re-ran it: other K, decay of all parameters",
        _PAPER,
        defaults={"num_hops": 16, "decay_gammas": True},
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
