"""Networks of the Long Range Graph Benchmark, as Tönshoff et al. (TMLR 2024) tuned them anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.lrgb.attention import PaddedAttention as PaddedAttention
    from coopsheaf.zoo.lrgb.gated import GatedGCN as GatedGCN
    from coopsheaf.zoo.lrgb.gated import GatedGCNLayer as GatedGCNLayer
    from coopsheaf.zoo.lrgb.gcn import ResidualGCN as ResidualGCN
    from coopsheaf.zoo.lrgb.gcn import ResidualGCNLayer as ResidualGCNLayer
    from coopsheaf.zoo.lrgb.gine import GINE as GINE
    from coopsheaf.zoo.lrgb.gine import GINELayer as GINELayer
    from coopsheaf.zoo.lrgb.gps import GPS as GPS
    from coopsheaf.zoo.lrgb.gps import GPSLayer as GPSLayer

_TUNED = "Tönshoff et al., TMLR 2024"

INFOS = (
    ModelInfo(
        "gcn-lrgb",
        "coopsheaf.zoo.lrgb.gcn:ResidualGCN",
        "GCN with residuals and a deep head",
        f"Kipf & Welling, ICLR 2017; {_TUNED}",
        edge_weight=True,
        default_lr=0.001,
    ),
    ModelInfo(
        "gine",
        "coopsheaf.zoo.lrgb.gine:GINE",
        "GIN with features of edges, residuals and a deep head",
        f"Hu et al., ICLR 2020; {_TUNED}",
        edge_attr=True,
        default_lr=0.001,
    ),
    ModelInfo(
        "gatedgcn",
        "coopsheaf.zoo.lrgb.gated:GatedGCN",
        "gates on edges that have features of their own",
        f"Bresson & Laurent, 2017; {_TUNED}",
        edge_attr=True,
        default_lr=0.001,
    ),
    ModelInfo(
        "gps",
        "coopsheaf.zoo.lrgb.gps:GPS",
        "GatedGCN beside attention among all nodes of a graph",
        f"Rampášek et al., NeurIPS 2022; {_TUNED}",
        edge_attr=True,
        default_lr=0.001,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
