"""Settings of the classic networks in the skeleton of Platonov et al. (ICLR 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


@dataclass(frozen=True)
class PlatonovConfig:
    """Settings of a :class:`~coopsheaf.models.platonov.PlatonovNetwork`."""

    network: ClassVar[str]  # its name in coopsheaf.models.platonov

    hidden_channels: int = 512
    num_layers: int = 2
    hidden_multiplier: float = 1.0
    dropout: float = 0.2
    norm: str = "layer"
    pool: str = "mean"

    def _options(self) -> dict[str, Any]:
        return {}

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models import platonov

        network: Network = getattr(platonov, self.network)(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            hidden_multiplier=self.hidden_multiplier,
            dropout=self.dropout,
            norm=self.norm,
            pool=self.pool if graph_level else None,
            **self._options(),
        )
        return network


@dataclass(frozen=True)
class AttentionConfig(PlatonovConfig):
    """Settings of a :class:`~coopsheaf.models.platonov.PlatonovNetwork` with attention."""

    num_heads: int = 8

    def _options(self) -> dict[str, Any]:
        return {"num_heads": self.num_heads}


@dataclass(frozen=True)
class ResNetConfig(PlatonovConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovResNet`."""

    network = "PlatonovResNet"


@dataclass(frozen=True)
class GCNConfig(PlatonovConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGCN`."""

    network = "PlatonovGCN"


@dataclass(frozen=True)
class SAGEConfig(PlatonovConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovSAGE`."""

    network = "PlatonovSAGE"


@dataclass(frozen=True)
class GATConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGAT`."""

    network = "PlatonovGAT"


@dataclass(frozen=True)
class GATSepConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGATSep`."""

    network = "PlatonovGATSep"


@dataclass(frozen=True)
class GTConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGT`."""

    network = "PlatonovGT"


@dataclass(frozen=True)
class GTSepConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGTSep`."""

    network = "PlatonovGTSep"


_BENCHMARK = "Platonov et al., ICLR 2023"

# Wide residual networks diverge at the rates that small ones like.
_LR = 3e-4

INFOS = (
    ModelInfo(
        "resnet",
        ResNetConfig,
        1,
        "residual network of features only, no edges",
        _BENCHMARK,
        directed=False,
        default_lr=_LR,
    ),
    ModelInfo(
        "gcn",
        GCNConfig,
        1,
        "graph convolutional network with skip connections",
        f"Kipf & Welling, ICLR 2017; {_BENCHMARK}",
        edge_weight=True,
        default_lr=_LR,
    ),
    ModelInfo(
        "sage",
        SAGEConfig,
        1,
        "GraphSAGE with skip connections",
        f"Hamilton et al., NeurIPS 2017; {_BENCHMARK}",
        edge_weight=True,
        default_lr=_LR,
    ),
    ModelInfo(
        "gat",
        GATConfig,
        1,
        "graph attention network with skip connections",
        f"Veličković et al., ICLR 2018; {_BENCHMARK}",
        default_lr=_LR,
    ),
    ModelInfo(
        "gat-sep",
        GATSepConfig,
        1,
        "graph attention network, node and neighbours apart",
        f"Veličković et al., ICLR 2018; {_BENCHMARK}",
        default_lr=_LR,
    ),
    ModelInfo(
        "gt",
        GTConfig,
        1,
        "graph transformer along the edges",
        f"Shi et al., IJCAI 2021; {_BENCHMARK}",
        default_lr=_LR,
    ),
    ModelInfo(
        "gt-sep",
        GTSepConfig,
        1,
        "graph transformer along the edges, node and neighbours apart",
        f"Shi et al., IJCAI 2021; {_BENCHMARK}",
        default_lr=_LR,
    ),
)
