"""Models by name: what builds them, their settings, and the version of what they compute.

Nothing here imports PyTorch until the settings of a model are asked for or it is built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from coopsheaf.checks import check_choice
from coopsheaf.models.info import ModelInfo

if TYPE_CHECKING:
    from coopsheaf.models.network import Network

# Packages with a tuple INFOS, in the order in which their models are listed. The zoo is reached by
# these names alone: nothing below it imports it.
FAMILIES = (
    "coopsheaf.models.entries",
    "coopsheaf.zoo.plain",
    "coopsheaf.zoo.nsd",
    "coopsheaf.zoo.dsnn",
    "coopsheaf.zoo.polynsd",
    "coopsheaf.zoo.waves",
    "coopsheaf.zoo.dnsd",
    "coopsheaf.zoo.sheaf_attention",
    "coopsheaf.zoo.copresheaf",
    "coopsheaf.zoo.snn",
    "coopsheaf.zoo.conn",
    "coopsheaf.zoo.quiver",
    "coopsheaf.zoo.nlsd",
    "coopsheaf.zoo.joint",
    "coopsheaf.zoo.platonov",
    "coopsheaf.zoo.bunn",
    "coopsheaf.zoo.cognn",
    "coopsheaf.zoo.match",
    "coopsheaf.zoo.gcnii",
    "coopsheaf.zoo.gprgnn",
    "coopsheaf.zoo.fagcn",
    "coopsheaf.zoo.pairnorm",
    "coopsheaf.zoo.linkx",
    "coopsheaf.zoo.dirgnn",
    "coopsheaf.zoo.mixhop",
    "coopsheaf.zoo.h2gcn",
    "coopsheaf.zoo.ggcn",
    "coopsheaf.zoo.geom_gcn",
    "coopsheaf.zoo.fsgnn",
    "coopsheaf.zoo.acm",
    "coopsheaf.zoo.glognn",
    "coopsheaf.zoo.lrgb",
    "coopsheaf.zoo.drew",
    "coopsheaf.zoo.san",
    "coopsheaf.zoo.exphormer",
    "coopsheaf.zoo.graph_vit",
)

# Systems that people will look for and that are not here, and why.
ABSENT = {
    "wrgat": "its relations come from a comparison of degree sequences (struc2vec) whose pruning, "
    "distances and layers are told by its authors' code alone; a network on relations of our own "
    "would be another system under its name",
}

# Other packages add models with an entry point of this group: its value is a ModelInfo.
ENTRY_POINTS = "coopsheaf.models"


class _Models(Mapping[str, ModelInfo]):
    """All models by name; families are imported when somebody first looks."""

    def __init__(self) -> None:
        self._known: dict[str, ModelInfo] | None = None

    @property
    def known(self) -> dict[str, ModelInfo]:
        if self._known is None:
            families = [import_module(family).INFOS for family in FAMILIES]
            self._known = {info.name: info for infos in families for info in infos}
            for entry in entry_points(group=ENTRY_POINTS):
                self.add(entry.load())
        return self._known

    def add(self, info: ModelInfo, *, replace: bool = False) -> None:
        if not isinstance(info, ModelInfo):
            raise ValueError(f"a model must be given as a ModelInfo; got {type(info).__name__}")
        if info.name in self.known and not replace:
            raise ValueError(
                f"`name` must be new: there is a model {info.name!r} already; choose another name, "
                "or give replace=True"
            )
        self.known[info.name] = info

    def __getitem__(self, name: str) -> ModelInfo:
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


MODELS = _Models()


def find_model(name: str) -> ModelInfo:
    """A model by its name; the error lists the names."""
    if name in ABSENT and name not in MODELS:
        raise ValueError(f"there is no model {name!r} here: {ABSENT[name]}")
    return check_choice("model", name, MODELS)


def list_models() -> list[str]:
    """The names of all models."""
    return list(MODELS)


def make_settings(name: str, **values: Any) -> Any:
    """The settings of a model, as in a recipe; what is not given has the network's default."""
    kind = find_model(name).settings
    for item in values:
        check_choice(f"setting of {name}", item, kind.__dataclass_fields__)
    return kind(**values)


def make_model(
    name: str,
    in_channels: int,
    out_channels: int | None = None,
    *,
    graph_level: bool = False,
    edge_channels: int = 0,
    pe_channels: int = 0,
    num_nodes: int | None = None,
    **settings: Any,
) -> Network:
    """Build a model by its name::

        make_model("csnn", 16, 3, num_layers=4)

    Args:
        name: a name of :func:`list_models`.
        in_channels: size of the input features.
        out_channels: size of the output; ``None`` gives the features of the last layer.
        graph_level: outputs for whole graphs, pooled as the setting ``pool`` says.
        edge_channels: size of the features of edges, for models that use them.
        pe_channels: size of what says where a node is, for models that use it.
        num_nodes: number of nodes of the graph, for models that belong to one graph.
        settings: as in a recipe; what is not given has the network's default.
    """
    model: Network = make_settings(name, **settings).build(
        in_channels,
        out_channels,
        graph_level=graph_level,
        edge_channels=edge_channels,
        pe_channels=pe_channels,
        num_nodes=num_nodes,
    )
    return model


def register_model(
    name: str, network: type[Network], description: str = "", *, replace: bool = False, **about: Any
) -> ModelInfo:
    """Give a network of your own a name that ``train``, ``bench``, ``sweep`` and ``explain`` know.

    Its constructor takes ``(in_channels, hidden_channels, num_layers, out_channels)`` and further
    settings by keyword, all but the first with a default.

    Args:
        name: a new name.
        network: a subclass of :class:`~coopsheaf.models.Network`.
        description: what it is, in a few words.
        replace: allow a name that is taken.
        about: other fields of :class:`ModelInfo`, such as ``version`` or ``directed``.
    """
    from coopsheaf.models.network import Network

    if not (isinstance(network, type) and issubclass(network, Network)):
        raise ValueError(
            f"`network` must be a subclass of coopsheaf.models.Network; got {network!r}"
        )
    found = {"edge_weight": network.takes_edge_weight}
    found["edge_attr"] = network.can_have_edge_channels()
    found["inductive"] = found["graph_level"] = not network.needs_num_nodes()
    about = found | about
    info = ModelInfo(name, network, description or network.__name__, **about)
    _ = info.settings  # a signature that gives no settings is an error here, not later
    MODELS.add(info, replace=replace)
    return info
