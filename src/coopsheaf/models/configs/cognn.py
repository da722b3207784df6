"""Settings of CO-GNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


@dataclass(frozen=True)
class CoGNNConfig:
    """Settings of :class:`~coopsheaf.models.cognn.CoGNN`; the defaults are the authors'."""

    hidden_channels: int = 128
    num_layers: int = 3
    environment: str = "mean"
    action: str = "mean"
    action_channels: int = 16
    action_layers: int = 1
    temperature: str = "fixed"
    tau: float = 0.01
    tau0: float = 0.5
    skip: bool = False
    dropout: float = 0.2
    act: str = "gelu"
    norm: str | None = None
    readout_layers: int = 1
    evaluation: str = "argmax"
    evaluation_seed: int = 0
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.cognn import CoGNN

        return CoGNN(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            environment=self.environment,
            action=self.action,
            action_channels=self.action_channels,
            action_layers=self.action_layers,
            temperature=self.temperature,
            tau=self.tau,
            tau0=self.tau0,
            skip=self.skip,
            dropout=self.dropout,
            act=self.act,
            norm=self.norm,
            readout_layers=self.readout_layers,
            evaluation=self.evaluation,
            evaluation_seed=self.evaluation_seed,
            pool=self.pool if graph_level else None,
        )


INFOS = (
    ModelInfo(
        "cognn",
        CoGNNConfig,
        1,
        "CO-GNN: every node chooses whether to listen and whether to broadcast",
        "Finkelshtein et al., ICML 2024",
        edge_weight=True,
    ),
)
