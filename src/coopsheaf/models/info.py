"""What the registry knows about a model. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


class ModelConfig(Protocol):
    """The settings of a model."""

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        """The model, for features and outputs of these sizes."""
        ...


@dataclass(frozen=True)
class ModelInfo:
    """A model that recipes can name.

    Args:
        name: its name.
        config: the class of its settings, a :class:`ModelConfig`.
        version: raised whenever the model computes something else than before, so that results of
            an older version are not mistaken for its own.
        description: what it is, in a few words.
        paper: where it comes from.
        inductive: a trained model can be used on another graph.
        directed: the direction of edges means something to it, and a list that holds an edge in
            one direction only is accepted.
        graph_level: it can give outputs for whole graphs.
        edge_weight: it uses edge weights.
        default_lr: learning rate of its default recipe, for data without published settings.
    """

    name: str
    config: type
    version: int
    description: str
    paper: str
    inductive: bool = True
    directed: bool = True
    graph_level: bool = True
    edge_weight: bool = False
    default_lr: float = 0.01
