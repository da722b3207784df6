"""Settings of the classic networks in the skeleton of Platonov et al. (ICLR 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from coopsheaf.models.info import ModelInfo, NetworkConfig


@dataclass(frozen=True)
class PlatonovConfig(NetworkConfig):
    """Settings of a :class:`~coopsheaf.models.platonov.PlatonovNetwork`."""

    hidden_channels: int = 512
    num_layers: int = 2
    hidden_multiplier: float = 1.0
    dropout: float = 0.2
    norm: str = "layer"
    pool: str = "mean"


@dataclass(frozen=True)
class AttentionConfig(PlatonovConfig):
    """Settings of a :class:`~coopsheaf.models.platonov.PlatonovNetwork` with attention."""

    num_heads: int = 8


@dataclass(frozen=True)
class ResNetConfig(PlatonovConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovResNet`."""

    network = "platonov:PlatonovResNet"


@dataclass(frozen=True)
class GCNConfig(PlatonovConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGCN`."""

    network = "platonov:PlatonovGCN"


@dataclass(frozen=True)
class SAGEConfig(PlatonovConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovSAGE`."""

    network = "platonov:PlatonovSAGE"


@dataclass(frozen=True)
class GATConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGAT`."""

    network = "platonov:PlatonovGAT"


@dataclass(frozen=True)
class GATSepConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGATSep`."""

    network = "platonov:PlatonovGATSep"


@dataclass(frozen=True)
class GTConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGT`."""

    network = "platonov:PlatonovGT"


@dataclass(frozen=True)
class GTSepConfig(AttentionConfig):
    """Settings of :class:`~coopsheaf.models.platonov.PlatonovGTSep`."""

    network = "platonov:PlatonovGTSep"


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
