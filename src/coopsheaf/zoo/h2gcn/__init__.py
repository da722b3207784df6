"""H2GCN: neighbours and neighbours of neighbours, kept apart (NeurIPS 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.h2gcn.hops import HopPattern as HopPattern
    from coopsheaf.zoo.h2gcn.hops import two_hops as two_hops
    from coopsheaf.zoo.h2gcn.network import H2GCN as H2GCN
    from coopsheaf.zoo.h2gcn.network import H2GCNLINKX as H2GCNLINKX

_PAPER = "Zhu et al., NeurIPS 2020"

INFOS = (
    ModelInfo(
        "h2gcn",
        "coopsheaf.zoo.h2gcn.network:H2GCN",
        "neighbours and strictly two-hop neighbours side by side, round by round",
        _PAPER,
    ),
    ModelInfo(
        "h2gcn-linkx",
        "coopsheaf.zoo.h2gcn.network:H2GCNLINKX",
        "H2GCN as the LINKX benchmark has it: two hops that are not strict, batch norm",
        _PAPER,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
