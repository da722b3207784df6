"""The plain networks of the tables on small graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.zoo.plain.network import PlainGAT as PlainGAT
    from coopsheaf.zoo.plain.network import PlainGCN as PlainGCN
    from coopsheaf.zoo.plain.network import PlainMLP as PlainMLP
    from coopsheaf.zoo.plain.network import PlainSAGE as PlainSAGE
    from coopsheaf.zoo.plain.propagation import Propagation as Propagation

_NO_ORDER = {"act_first": False}

INFOS = (
    ModelInfo(
        "mlp",
        "coopsheaf.zoo.plain.network:PlainMLP",
        "MLP: features only, no edges",
        directed=False,
    ),
    ModelInfo(
        "gcn-plain",
        "coopsheaf.zoo.plain.network:PlainGCN",
        "graph convolutional network without skip connections",
        "Kipf & Welling, ICLR 2017",
        fixed=_NO_ORDER,
        edge_weight=True,
    ),
    ModelInfo(
        "gat-plain",
        "coopsheaf.zoo.plain.network:PlainGAT",
        "graph attention network without skip connections",
        "Veličković et al., ICLR 2018",
    ),
    ModelInfo(
        "sage-plain",
        "coopsheaf.zoo.plain.network:PlainSAGE",
        "GraphSAGE, mean over all neighbours",
        "Hamilton et al., NeurIPS 2017",
        fixed=_NO_ORDER,
    ),
)

__getattr__, __dir__, __all__ = attach(__name__)
