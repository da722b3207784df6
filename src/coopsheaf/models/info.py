"""What the registry knows about a model. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

if TYPE_CHECKING:
    from coopsheaf.models.network import Network


class NetworkConfig:
    """Settings whose names are those of their network's arguments: :meth:`build` passes them on.

    A subclass is a dataclass that says where its network is, and overrides :meth:`options` where
    a setting has to be turned into something else first.
    """

    network: ClassVar[str]  # "module:class" below coopsheaf.models

    hidden_channels: int
    num_layers: int
    pool: str

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the network, its pool aside."""
        known = ("hidden_channels", "num_layers", "pool")
        names = (field.name for field in fields(cast(Any, self)))
        return {name: getattr(self, name) for name in names if name not in known}

    def build(self, in_channels: int, out_channels: int, *, graph_level: bool) -> Network:
        """The model, for features and outputs of these sizes."""
        module, _, name = self.network.partition(":")
        make: Any = getattr(import_module(f"coopsheaf.models.{module}"), name)
        network: Network = make(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            pool=self.pool if graph_level else None,
            **self.options(),
        )
        return network


def freeze_maps(network: Network) -> Network:
    """Keep what learns maps as it was drawn."""
    for learner in network.map_learners():
        learner.requires_grad_(False)
    return network


@dataclass(frozen=True)
class ModelInfo:
    """A model that recipes can name.

    Args:
        name: its name.
        config: the class of its settings, a :class:`NetworkConfig`.
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
