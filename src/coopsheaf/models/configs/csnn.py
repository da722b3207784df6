"""Settings of CSNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coopsheaf.checks import check_choice
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


@dataclass(frozen=True)
class CSNNConfig:
    """Settings of :class:`~coopsheaf.CSNN`."""

    hidden_channels: int = 32
    num_layers: int = 3
    stalk_dim: int = 3
    learner: str = "mlp"
    learner_channels: int = 32
    learner_layers: int = 2
    orthogonal: str = "householder"
    scale: str = "exp"
    left_weights: bool = True
    right_weights: bool = True
    semantics: str = "paper"
    input_dropout: float = 0.0
    dropout: float = 0.0
    act: str = "gelu"
    norm: str | None = None
    readout_layers: int = 1
    pool: str = "mean"

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        from coopsheaf.models.csnn import CSNN
        from coopsheaf.nn.learners import LEARNERS

        recipe: Any = check_choice("learner", self.learner, LEARNERS)
        if self.learner == "mlp":
            learner = recipe(self.learner_channels)
        else:
            learner = recipe(self.learner_channels, self.learner_layers)
        return CSNN(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            stalk_dim=self.stalk_dim,
            learner=learner,
            orthogonal=self.orthogonal,
            scale=self.scale,
            left_weights=self.left_weights,
            right_weights=self.right_weights,
            semantics=self.semantics,
            input_dropout=self.input_dropout,
            dropout=self.dropout,
            act=self.act,
            norm=self.norm,
            readout_layers=self.readout_layers,
            pool=self.pool if graph_level else None,
        )


@dataclass(frozen=True)
class CSNNIdentityConfig(CSNNConfig):
    """Settings of :class:`~coopsheaf.CSNN` with every map the identity; learners do not count."""

    orthogonal: str = "identity"
    scale: str = "unit"

    def __post_init__(self) -> None:
        check_choice("orthogonal", self.orthogonal, {"identity": None})
        check_choice("scale", self.scale, {"unit": None})


@dataclass(frozen=True)
class CSNNRandomConfig(CSNNConfig):
    """Settings of :class:`~coopsheaf.CSNN` with learners that stay as they are drawn."""

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        network = super().build(in_channels, out_channels, graph_level=graph_level)
        for learner in network.map_learners():
            learner.requires_grad_(False)
        return network


INFOS = (
    ModelInfo(
        "csnn",
        CSNNConfig,
        1,
        "Cooperative Sheaf Neural Network",
        "Ribeiro et al., ICLR 2026",
        edge_weight=True,
    ),
    ModelInfo(
        "csnn-identity",
        CSNNIdentityConfig,
        1,
        "CSNN with every map the identity",
        "Ribeiro et al., ICLR 2026",
        edge_weight=True,
    ),
    ModelInfo(
        "csnn-random",
        CSNNRandomConfig,
        1,
        "CSNN with random maps, not trained",
        "Ribeiro et al., ICLR 2026",
        edge_weight=True,
    ),
)
