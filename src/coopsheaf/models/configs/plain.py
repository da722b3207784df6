"""Settings of the plain networks of the tables on small graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


@dataclass(frozen=True)
class MLPConfig:
    """Settings of :class:`~coopsheaf.models.plain.PlainMLP`."""

    hidden_channels: int = 64
    num_layers: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.5
    act: str = "relu"
    norm: str | None = None
    act_first: bool = False
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.plain import PlainMLP

        return PlainMLP(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            act=self.act,
            norm=self.norm,
            act_first=self.act_first,
            pool=self.pool if graph_level else None,
        )


@dataclass(frozen=True)
class PlainGCNConfig:
    """Settings of :class:`~coopsheaf.models.plain.PlainGCN`."""

    hidden_channels: int = 64
    num_layers: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.5
    act: str = "relu"
    norm: str | None = None
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.plain import PlainGCN

        return PlainGCN(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            act=self.act,
            norm=self.norm,
            pool=self.pool if graph_level else None,
        )


@dataclass(frozen=True)
class PlainGATConfig:
    """Settings of :class:`~coopsheaf.models.plain.PlainGAT`."""

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

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.plain import PlainGAT

        return PlainGAT(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            num_heads=self.num_heads,
            output_heads=self.output_heads,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            act=self.act,
            output_act=self.output_act,
            norm=self.norm,
            pool=self.pool if graph_level else None,
        )


@dataclass(frozen=True)
class PlainSAGEConfig:
    """Settings of :class:`~coopsheaf.models.plain.PlainSAGE`."""

    hidden_channels: int = 64
    num_layers: int = 2
    input_dropout: float = 0.0
    dropout: float = 0.5
    act: str = "relu"
    norm: str | None = None
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.plain import PlainSAGE

        return PlainSAGE(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            act=self.act,
            norm=self.norm,
            pool=self.pool if graph_level else None,
        )


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
