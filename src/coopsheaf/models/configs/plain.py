"""Settings of the plain networks of the paper's tables on small graphs."""

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


INFOS = (
    ModelInfo("mlp", MLPConfig, 1, "MLP: features only, no edges", "-", directed=False),
    ModelInfo(
        "gcn-plain",
        PlainGCNConfig,
        1,
        "graph convolutional network without skip connections",
        "Kipf & Welling, ICLR 2017",
        edge_weight=True,
    ),
)
