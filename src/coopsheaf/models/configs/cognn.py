"""Settings of CO-GNN."""

from __future__ import annotations

from dataclasses import dataclass

from coopsheaf.models.info import ModelInfo, NetworkConfig


@dataclass(frozen=True)
class CoGNNConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.models.cognn.CoGNN`; the defaults are the authors'."""

    network = "cognn:CoGNN"

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
