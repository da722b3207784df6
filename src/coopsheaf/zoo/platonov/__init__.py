"""The classic networks in the skeleton of Platonov et al. (ICLR 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.platonov.network import PlatonovGAT as PlatonovGAT
    from coopsheaf.zoo.platonov.network import PlatonovGATSep as PlatonovGATSep
    from coopsheaf.zoo.platonov.network import PlatonovGCN as PlatonovGCN
    from coopsheaf.zoo.platonov.network import PlatonovGT as PlatonovGT
    from coopsheaf.zoo.platonov.network import PlatonovGTSep as PlatonovGTSep
    from coopsheaf.zoo.platonov.network import PlatonovNetwork as PlatonovNetwork
    from coopsheaf.zoo.platonov.network import PlatonovResNet as PlatonovResNet
    from coopsheaf.zoo.platonov.network import PlatonovSAGE as PlatonovSAGE

_BENCHMARK = "Platonov et al., ICLR 2023"


def _info(name: str, network: str, description: str, paper: str = "", **options: Any) -> ModelInfo:
    return ModelInfo(
        name,
        f"coopsheaf.zoo.platonov.network:{network}",
        description,
        f"{paper}; {_BENCHMARK}" if paper else _BENCHMARK,
        default_lr=3e-4,  # wide residual networks diverge at the rates that small ones like
        **options,
    )


_GCN = "Kipf & Welling, ICLR 2017"
_SAGE = "Hamilton et al., NeurIPS 2017"
_GAT = "Veličković et al., ICLR 2018"
_GT = "Shi et al., IJCAI 2021"

INFOS = (
    _info(
        "resnet", "PlatonovResNet", "residual network of features only, no edges", directed=False
    ),
    _info(
        "gcn",
        "PlatonovGCN",
        "graph convolutional network with skip connections",
        _GCN,
        edge_weight=True,
    ),
    _info("sage", "PlatonovSAGE", "GraphSAGE with skip connections", _SAGE, edge_weight=True),
    _info("gat", "PlatonovGAT", "graph attention network with skip connections", _GAT),
    _info("gat-sep", "PlatonovGATSep", "graph attention network, node and neighbours apart", _GAT),
    _info("gt", "PlatonovGT", "graph transformer along the edges", _GT),
    _info(
        "gt-sep",
        "PlatonovGTSep",
        "graph transformer along the edges, node and neighbours apart",
        _GT,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
