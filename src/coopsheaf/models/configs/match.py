"""Settings of the networks that NeighborsMatch was published with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from coopsheaf.models.info import ModelInfo, NetworkConfig


@dataclass(frozen=True)
class MatchConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.match.MatchNetwork`; a subclass names its kind."""

    network = "match:MatchNetwork"
    kind: ClassVar[str]

    hidden_channels: int = 32
    num_layers: int = 3
    unroll: bool = False
    pool: str = "mean"

    def options(self) -> dict[str, Any]:
        return {"kind": self.kind, **super().options()}


@dataclass(frozen=True)
class GCNMatchConfig(MatchConfig):
    """Settings of :class:`~coopsheaf.models.match.MatchNetwork` of kind ``"gcn"``."""

    kind: ClassVar[str] = "gcn"


@dataclass(frozen=True)
class GINConfig(MatchConfig):
    """Settings of :class:`~coopsheaf.models.match.MatchNetwork` of kind ``"gin"``."""

    kind: ClassVar[str] = "gin"


@dataclass(frozen=True)
class GATMatchConfig(MatchConfig):
    """Settings of :class:`~coopsheaf.models.match.MatchNetwork` of kind ``"gat"``."""

    kind: ClassVar[str] = "gat"


@dataclass(frozen=True)
class GGNNConfig(MatchConfig):
    """Settings of :class:`~coopsheaf.models.match.MatchNetwork` of kind ``"ggnn"``."""

    kind: ClassVar[str] = "ggnn"


INFOS = (
    ModelInfo(
        "gin", GINConfig, 1, "graph isomorphism network, with residuals", "Xu et al., ICLR 2019"
    ),
    ModelInfo(
        "ggnn",
        GGNNConfig,
        1,
        "gated graph neural network, one step a layer",
        "Li et al., ICLR 2016",
    ),
    ModelInfo(
        "gcn-match",
        GCNMatchConfig,
        1,
        "graph convolutional network, with residuals and norms, as in NeighborsMatch",
        "Kipf & Welling, ICLR 2017; Alon & Yahav, ICLR 2021",
    ),
    ModelInfo(
        "gat-match",
        GATMatchConfig,
        1,
        "graph attention network, with residuals and norms, as in NeighborsMatch",
        "Veličković et al., ICLR 2018; Alon & Yahav, ICLR 2021",
    ),
)
