"""What the registry knows about a model, and its settings. Imports no PyTorch.

The settings of a model are read off the signature of its network, so that names, types and defaults
have one home. Only what a text file can say is a setting: numbers, words, yes or no, or nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from coopsheaf.models.kinship import Kinship
from coopsheaf.models.size import check_parameters, check_sizes

if TYPE_CHECKING:
    from coopsheaf.models.network import Network

PLAIN = (bool, int, float, str)

# Sizes that follow from the data.
_OF_THE_DATA = (
    "self",
    "in_channels",
    "out_channels",
    "pe_channels",
    "edge_channels",
    "num_nodes",
)


class Settings:
    """Settings of a model: a frozen dataclass with a field for each, made by :class:`ModelInfo`."""

    info: ClassVar[ModelInfo]
    pool: str

    def build(
        self,
        in_channels: int,
        out_channels: int | None,
        *,
        graph_level: bool = False,
        edge_channels: int = 0,
        pe_channels: int = 0,
        num_nodes: int | None = None,
    ) -> Network:
        """The network, for features and outputs of these sizes; not what no machine can bear."""
        check_sizes(self)
        sizes = {"edge_channels": edge_channels, "pe_channels": pe_channels}
        check_parameters(self, in_channels, out_channels, num_nodes=num_nodes, **sizes)
        return self.make(
            in_channels,
            out_channels,
            graph_level=graph_level,
            **sizes,
            num_nodes=num_nodes,
        )

    def make(
        self,
        in_channels: int,
        out_channels: int | None,
        *,
        graph_level: bool = False,
        edge_channels: int = 0,
        pe_channels: int = 0,
        num_nodes: int | None = None,
    ) -> Network:
        """The network, whatever its size."""
        if graph_level and not self.info.graph_level:
            raise ValueError(
                f"{self.info.name} gives no outputs for whole graphs, only for nodes; choose "
                "another model (`coopsheaf models` says which can)"
            )
        if graph_level and self.of_one_graph:
            raise ValueError(
                f"{self.info.name} with these settings knows every node of one graph and gives no "
                "outputs for whole graphs; leave `structure` out"
            )
        make = self.info.find_network()
        later = make.later_settings
        given = {k: v for k, v in self._values().items() if not (v is None and k in later)}
        given["pool"] = self.pool if graph_level else None
        if edge_channels:  # networks that see no features of edges have no such argument
            self.info.check_edge_features(f"{edge_channels} columns")
            given["edge_channels"] = edge_channels
        if pe_channels:  # nor of places
            self.info.check_places(pe_channels)
            given["pe_channels"] = pe_channels
        if self.of_one_graph:  # the others work on graphs of all sizes
            given["num_nodes"] = self.info.check_num_nodes(num_nodes)
        network = make(in_channels, out_channels=out_channels, **given, **self.info.fixed)
        if not self.info.train_maps:
            for learner in network.map_learners():
                learner.requires_grad_(False)
        return network

    @property
    def of_one_graph(self) -> bool:
        """Whether the network belongs to one graph, of each of whose nodes it learns something."""
        return self.info.find_network().needs_num_nodes({**self._values(), **self.info.fixed})

    def __reduce__(self) -> tuple[Any, ...]:
        """Classes that are made at run time are sent to other processes by the model's name."""
        return _restore, (self.info.name, self._values())

    def _values(self) -> dict[str, Any]:
        names = (item.name for item in dataclasses.fields(typing.cast(Any, self)))
        return {name: getattr(self, name) for name in names}


def _restore(name: str, values: dict[str, Any]) -> Any:
    from coopsheaf.models.registry import find_model

    return find_model(name).settings(**values)


@dataclass(frozen=True)
class ModelInfo:
    """A model that recipes can name.

    Args:
        name: its name.
        network: its class, a :class:`~coopsheaf.models.Network`, or where that is, as
            ``"module:class"``, to be imported when it is needed.
        description: what it is, in a few words.
        paper: where it comes from.
        version: raised whenever the model computes something else than before, so that results of
            an older version are not mistaken for its own.
        fixed: arguments of the network that the name decides; they are no settings.
        defaults: settings with another default than the network's.
        pinned: settings that are shown but cannot have another value than their default.
        train_maps: ``False`` keeps what learns maps as it was drawn.
        inductive: a trained model can be used on another graph; otherwise its network has an
            argument ``num_nodes``, since it learns something about every node by itself.
        directed: the direction of edges means something to it, and a list that holds an edge in
            one direction only is accepted.
        graph_level: it can give outputs for whole graphs.
        edge_weight: it uses edge weights.
        edge_attr: it uses features of edges.
        default_lr: learning rate of its default recipe, for data without published settings.
        kinship: of a sheaf network: how it is related to the others.
    """

    name: str
    network: str | type[Network]
    description: str
    paper: str = ""
    version: int = 1
    fixed: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    train_maps: bool = True
    inductive: bool = True
    directed: bool = True
    graph_level: bool = True
    edge_weight: bool = False
    edge_attr: bool = False
    default_lr: float = 0.01
    kinship: Kinship | None = None

    def find_network(self) -> type[Network]:
        """The class of the network."""
        if isinstance(self.network, str):
            module, _, name = self.network.partition(":")
            found: type[Network] = getattr(import_module(module), name)
            return found
        return self.network

    @property
    def package(self) -> str | None:
        """The package with its recipes; a network of the user's own need not be in one."""
        if not isinstance(self.network, str):
            return None
        return self.network.partition(":")[0].rpartition(".")[0] or None

    def check_edge_features(self, columns: str) -> None:
        """Refuse edges with features, said in words, if the model cannot use them."""
        if not self.edge_attr:
            from coopsheaf.models.registry import MODELS

            able = " or ".join(name for name, info in MODELS.items() if info.edge_attr)
            raise ValueError(
                f"{self.name} cannot use edge features ({columns}); leave them out or choose {able}"
            )

    def check_places(self, pe_channels: int) -> None:
        """Refuse places of nodes if the model cannot use them."""
        if not self.find_network().can_have_pe_channels() or "pe_channels" in self.fixed:
            raise ValueError(
                f"{self.name} cannot use the places of nodes ({pe_channels} columns); leave "
                "`data.pe` out or choose another model"
            )

    def check_num_nodes(self, num_nodes: int | None) -> int:
        """The number of nodes that a network must be built for."""
        if num_nodes is None:
            raise ValueError(
                f"`num_nodes` must be given: {self.name} learns a row of weights for every node of "
                "one graph; give the number of its nodes"
            )
        return num_nodes

    @cached_property
    def settings(self) -> type[Any]:
        """The class of its settings, one field for each argument of the network."""
        network = self.find_network()
        signature = inspect.signature(network.__init__)
        hints = typing.get_type_hints(network.__init__)
        fields: list[Any] = []
        for name, parameter in signature.parameters.items():
            if name in _OF_THE_DATA or name in self.fixed:
                continue
            hint = _plain_part(hints.get(name))
            if hint is None:
                continue  # an object: no text can say it
            default = self.defaults.get(name, parameter.default)
            if name in network.later_settings:
                hint, default = hint | None, None
            if name == "pool":
                hint, default = str, "mean"  # where there are whole graphs to pool
            if default is inspect.Parameter.empty:
                raise ValueError(
                    f"`{network.__name__}` must have a default for {name!r}: it is a setting of "
                    f"model {self.name!r}"
                )
            fields.append((name, hint, field(default=default)))
        return dataclasses.make_dataclass(
            f"{network.__name__}Settings",
            fields,
            bases=(Settings,),
            frozen=True,
            namespace={
                "info": self,
                "__post_init__": _check_pinned,
                "__module__": __name__,
                "__doc__": f"Settings of ``{self.name}``: arguments of "
                f":class:`~{network.__module__}.{network.__name__}`.",
            },
        )


def _check_pinned(settings: Settings) -> None:
    for name in settings.info.pinned:
        wanted, got = settings.info.defaults[name], getattr(settings, name)
        if got != wanted:
            raise ValueError(
                f"`{name}` must be {wanted!r}: it is what makes {settings.info.name!r}; got {got!r}"
            )


def _plain_part(hint: Any) -> Any:
    """What of a type a text file can say: ``str | Orthogonal`` becomes ``str``."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    kinds = typing.get_args(hint) if is_union else (hint,)
    plain = [kind for kind in kinds if kind in PLAIN]
    if not plain:
        return None
    if type(None) in kinds:
        plain.append(type(None))
    joined: Any = plain[0]
    for kind in plain[1:]:
        joined = joined | kind
    return joined
