"""Models by name: their settings, what builds them, and the version of what they compute.

Nothing here imports PyTorch until a model is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from coopsheaf.checks import check_choice

if TYPE_CHECKING:
    from torch import nn


class ModelConfig(Protocol):
    """The settings of a model."""

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> nn.Module:
        """The model, for features and outputs of these sizes."""
        ...


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

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> nn.Module:
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
class BasicConfig:
    """Settings of PyG's basic models."""

    hidden_channels: int = 64
    num_layers: int = 3
    dropout: float = 0.2
    act: str = "relu"
    norm: str | None = None
    pool: str = "mean"

    kind = ""

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> nn.Module:
        from coopsheaf.models.basic import BasicModel

        return BasicModel(
            self.kind,
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            dropout=self.dropout,
            act=self.act,
            norm=self.norm,
            pool=self.pool if graph_level else None,
        )


@dataclass(frozen=True)
class PyGGCNConfig(BasicConfig):
    """Settings of PyG's GCN."""

    kind = "GCN"


@dataclass(frozen=True)
class PyGMLPConfig(BasicConfig):
    """Settings of PyG's MLP, which sees no edges."""

    kind = "MLP"


@dataclass(frozen=True)
class ModelInfo:
    """A model that recipes can name.

    ``version`` is raised whenever the model computes something else than before, so that results
    of an older version are not mistaken for its own.
    """

    name: str
    config: type
    version: int
    description: str
    paper: str


MODELS: dict[str, ModelInfo] = {
    info.name: info
    for info in (
        ModelInfo(
            "csnn",
            CSNNConfig,
            1,
            "Cooperative Sheaf Neural Network",
            "Ribeiro et al., ICLR 2026",
        ),
        ModelInfo(
            "pyg-gcn",
            PyGGCNConfig,
            1,
            "PyG's basic graph convolutional network",
            "Kipf & Welling, ICLR 2017",
        ),
        ModelInfo("pyg-mlp", PyGMLPConfig, 1, "PyG's MLP: features only, no edges", "-"),
    )
}


def find_model(name: str) -> ModelInfo:
    """A model by its name; the error lists the names."""
    return check_choice("model", name, MODELS)
