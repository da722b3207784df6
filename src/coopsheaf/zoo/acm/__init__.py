"""ACM-GCN: low, high and identity channels, mixed at every node (Luan et al., 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.acm.network import ACMGCN as ACMGCN
    from coopsheaf.zoo.acm.network import ACMConv as ACMConv
    from coopsheaf.zoo.acm.network import ACMGCNPlus as ACMGCNPlus

_PAPER = "Luan et al., NeurIPS 2022"

INFOS = (
    ModelInfo(
        "acm-gcn",
        "coopsheaf.zoo.acm.network:ACMGCN",
        "means over neighbours, differences from them and the node itself, mixed at every node",
        _PAPER,
        fixed={"act_first": False},
        edge_weight=True,
    ),
    ModelInfo(
        "acm-gcn-plus",
        "coopsheaf.zoo.acm.network:ACMGCNPlus",
        "acm-gcn with a channel of the adjacency matrix",
        _PAPER,
        fixed={"act_first": False},
        inductive=False,
        graph_level=False,
        edge_weight=True,
    ),
    ModelInfo(
        "acmii",
        "coopsheaf.zoo.acm.network:ACMGCNPlus",
        "acm-gcn-plus that propagates after the activation",
        _PAPER,
        fixed={"act_first": True},
        inductive=False,
        graph_level=False,
        edge_weight=True,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
