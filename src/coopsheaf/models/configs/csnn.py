"""Settings of CSNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coopsheaf.checks import check_choice
from coopsheaf.models.info import ModelInfo, NetworkConfig, freeze_maps

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


@dataclass(frozen=True)
class CSNNConfig(NetworkConfig):
    """Settings of :class:`~coopsheaf.CSNN`."""

    network = "csnn:CSNN"

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
    # None by default: then the hashes of recorded settings stay what they are.
    checkpoint_layers: bool | None = None

    def options(self) -> dict[str, Any]:
        from coopsheaf.nn.learners import LEARNERS

        options = super().options()
        sizes = [options.pop("learner_channels"), options.pop("learner_layers")]
        recipe: Any = check_choice("learner", self.learner, LEARNERS)
        learner = recipe(*(sizes[:1] if self.learner == "mlp" else sizes))
        kept = {"learner": learner, "checkpoint_layers": bool(self.checkpoint_layers)}
        return {**options, **kept}


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
        return freeze_maps(super().build(in_channels, out_channels, graph_level=graph_level))


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
