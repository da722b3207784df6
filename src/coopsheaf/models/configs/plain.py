"""Settings of the plain networks of the tables on small graphs."""

from __future__ import annotations

from dataclasses import dataclass

from coopsheaf.models.info import ModelInfo, NetworkConfig


@dataclass(frozen=True)
class MLPConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.plain.PlainMLP`."""

    network = "plain:PlainMLP"

    hidden_channels: int = 64
    num_layers: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.5
    act: str = "relu"
    norm: str | None = None
    act_first: bool = False
    pool: str = "mean"


@dataclass(frozen=True)
class PlainGCNConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.plain.PlainGCN`."""

    network = "plain:PlainGCN"

    hidden_channels: int = 64
    num_layers: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.5
    act: str = "relu"
    norm: str | None = None
    pool: str = "mean"


@dataclass(frozen=True)
class PlainGATConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.plain.PlainGAT`."""

    network = "plain:PlainGAT"

    hidden_channels: int = 64
    num_layers: int = 2
    num_heads: int = 8
    output_heads: int = 1
    input_dropout: float = 0.6
    dropout: float = 0.6
    attention_dropout: float = 0.6
    act: str = "elu"
    output_act: bool = False
    norm: str | None = None
    pool: str = "mean"


@dataclass(frozen=True)
class PlainSAGEConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.plain.PlainSAGE`."""

    network = "plain:PlainSAGE"

    hidden_channels: int = 64
    num_layers: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.5
    act: str = "relu"
    norm: str | None = None
    pool: str = "mean"


INFOS = (
    ModelInfo("mlp", MLPConfig, 1, "MLP: features only, no edges", "", directed=False),
    ModelInfo(
        "gcn-plain",
        PlainGCNConfig,
        1,
        "graph convolutional network without skip connections",
        "Kipf & Welling, ICLR 2017",
        edge_weight=True,
    ),
    ModelInfo(
        "gat-plain",
        PlainGATConfig,
        1,
        "graph attention network without skip connections",
        "Veličković et al., ICLR 2018",
    ),
    ModelInfo(
        "sage-plain",
        PlainSAGEConfig,
        1,
        "GraphSAGE, mean over all neighbours",
        "Hamilton et al., NeurIPS 2017",
    ),
)
