"""What all networks share: how they are called, what they check, how they end."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn import (
    JumpingKnowledge,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.nn.resolver import activation_resolver

from coopsheaf.checks import check_choice, check_int
from coopsheaf.models.explained import EdgeMasks
from coopsheaf.nn.edge_features import EdgeFeatures
from coopsheaf.sheaves.edges import check_order
from coopsheaf.sheaves.graph import Graph, as_weighted_graph
from coopsheaf.tensor_checks import (
    check_batch,
    check_edge_attr,
    check_edge_numbers,
    check_edge_weight,
    check_shape,
)

if TYPE_CHECKING:
    from typing_extensions import Self

NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}

# How the features after all layers become one, as in PyG's networks.
JUMPS = {
    "last": "those after the last layer",
    "cat": "side by side",
    "max": "the largest, entry by entry",
    "lstm": "weighted by an LSTM over the layers",
}

POOLS: dict[str, Callable[..., Tensor]] = {
    "mean": global_mean_pool,
    "sum": global_add_pool,
    "max": global_max_pool,
}


class Network(nn.Module):
    """A network for nodes or, with a pool, for whole graphs.

    A subclass writes :meth:`embed`, from input features to the features of the nodes after its last
    layer, or :meth:`layer_outputs`, from which :meth:`embed` makes them, and sets ``readout``, a
    module from those (pooled or not) to the output. ``embedding_channels`` is the size of those
    features, and of the output where ``out_channels`` is ``None``.

    Args:
        in_channels: size of the input features.
        out_channels: size of the output; ``None`` for the features of the last layer.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.

    It is called as PyG's networks are, ``model(x, edge_index, edge_weight)`` and the rest by name.
    An argument of a wrong shape or dtype is an error also where nobody needs it, and so is one that
    the network cannot use. PyG's explainers find edge masks in the networks that take edge weights.

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)``, a sparse ``(n, n)`` matrix, the transposed
        adjacency, whose values are edge weights (:mod:`coopsheaf.sheaves.edges`), or a
        :class:`~coopsheaf.Graph`; edge_weight ``(m,)``; batch ``(n,)``, the graph of each node, of
        ``batch_size`` graphs; pe ``(n, pe_channels)``; edge_attr ``(m, edge_channels)``. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    readout: nn.Module
    embedding_channels: int
    pe_channels = 0
    # Size of the features of edges. A network that can use them has an argument of this name, and
    # its `embed` one named `edge_attr`.
    edge_channels = 0
    # Whether edge weights mean something to this network; networks that see no edges ignore them.
    takes_edge_weight = False
    halves_products: ClassVar[bool] = False  # multiplies as coopsheaf.nn.products says
    idle: ClassVar[bool] = False  # has parameters that no gradient reaches
    sees_edges = True
    # Whether every edge must be there both ways, with the same weight.
    undirected = False
    # Whether it is made of operations on a list of edges of any length; else, why not.
    exportable: ClassVar[bool] = True
    why_not_exportable: ClassVar[str] = ""
    # Settings that came after the first records: at their default they are left out of recipes, so
    # that the hashes of recorded settings stay what they are.
    later_settings: ClassVar[tuple[str, ...]] = ()

    built_with: tuple[tuple[Any, ...], dict[str, Any]]  # the arguments, to build it again

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made.__dict__["built_with"] = (arguments, named)
        return made

    def __init__(
        self, in_channels: int, out_channels: int | None = None, *, pool: str | None = None
    ) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        if out_channels is not None:
            check_int("out_channels", out_channels, minimum=1)
        self.out_channels = out_channels
        self.pool = None if pool is None else check_choice("pool", pool, POOLS)
        self.jump: JumpingKnowledge | None = None
        self.edge_masks = EdgeMasks(self.undirected) if self.takes_edge_weight else None

    def _end_layers(self, width: int, jk: str | None = None, num_layers: int = 1) -> int:
        """Layers of this width are there: what makes one embedding of them, and its width."""
        if jk is not None:
            check_choice("jk", jk, JUMPS)
        if jk not in (None, "last"):
            self.jump = JumpingKnowledge(jk, width, num_layers)
        self.jk, self.embedding_channels = jk, width * num_layers if jk == "cat" else width
        return self.embedding_channels

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """What the readout sees, ``(n, embedding_channels)``; arguments checked."""
        outputs = self.layer_outputs(x, graph, batch=batch, pe=pe, edge_weight=edge_weight)
        if self.jump is not None:
            return self.jump([self.after_layers(x) for x in outputs])
        for x in outputs:  # noqa: B007 -- the last one is wanted
            pass
        return self.after_layers(x)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """The features ``(n, width)`` after each layer, one after the other."""
        raise NotImplementedError

    def after_layers(self, x: Tensor) -> Tensor:
        """What is done to the features of the last layer, or of each that is looked at."""
        return x

    def map_learners(self) -> list[nn.Module]:
        """The modules that learn restriction maps; networks without a sheaf have none."""
        return []

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters (``"params"``) with an ``"lr"`` or a ``"weight_decay"`` of their own.

        In the form that optimisers take; all other parameters are trained as the recipe says.
        """
        return []

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        reset_children(self)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        *,
        batch: Tensor | None = None,
        batch_size: int | None = None,
        pe: Tensor | None = None,
        edge_attr: EdgeFeatures | None = None,
    ) -> Tensor:
        x = self._check_x(x)
        graph, edge_weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        self._check_fit(x, graph)
        check_batch(batch, batch_size, x.shape[0])
        if pe is not None and self.pe_channels == 0:
            raise ValueError(f"`pe` must be None: {type(self).__name__} was built without pe")
        edge_attr = self.check_edge_attr(edge_attr, graph, x)
        if edge_attr is not None:
            check_order("edge_attr", edge_index)
        features = {} if edge_attr is None else {"edge_attr": edge_attr}
        if edge_weight is not None:
            _refuse_batch(edge_weight)
            edge_weight = self._check_weight(edge_weight, graph, x)
        if self.edge_masks is not None:
            edge_weight = self.edge_masks(edge_weight, graph, x)
        x = self.embed(x, graph, batch=batch, pe=pe, edge_weight=edge_weight, **features)
        if self.pool is not None:
            x = self.pool(x, batch, batch_size)
        return self.readout(x)

    def _check_x(self, x: Tensor) -> Tensor:
        return check_shape("x", x, f"(n, {self.in_channels})", (None, self.in_channels))

    def _check_weight(self, edge_weight: Tensor, graph: Graph, x: Tensor) -> Tensor | None:
        if not self.sees_edges:
            check_edge_numbers(edge_weight, graph.num_edges, "x", x)
            return None
        if not self.takes_edge_weight:
            raise ValueError(
                f"`edge_weight` must be None, and a sparse `edge_index` one of ones: "
                f"{type(self).__name__} does not use edge weights; leave them out, or choose a "
                "model that does (`coopsheaf models` lists them)"
            )
        return check_edge_weight(edge_weight, graph.num_edges, "x", x)

    def check_edge_attr(self, edge_attr: Any, graph: Graph, x: Tensor) -> Any:
        """The features of the edges as :meth:`embed` takes them; ``None`` where there are none."""
        name = type(self).__name__
        if edge_attr is not None and self.edge_channels == 0:
            built = "was built without edge_channels" if self.can_have_edge_channels() else ""
            raise ValueError(
                f"`edge_attr` must be None: {name} {built or 'does not use edge features'}; "
                "leave them out, or make one number per edge of them and give it as `edge_weight`"
            )
        if self.edge_channels == 0:
            return None
        if edge_attr is None:
            raise ValueError(
                f"`edge_attr` must have shape (m, {self.edge_channels}): {name} was built with "
                f"edge_channels={self.edge_channels}; got None"
            )
        return check_edge_attr(edge_attr, graph.num_edges, self.edge_channels, "x", x)

    @classmethod
    def can_have_edge_channels(cls) -> bool:
        """Whether a network of this class can be built for edges with features."""
        return "edge_channels" in inspect.signature(cls.__init__).parameters

    @classmethod
    def can_have_pe_channels(cls) -> bool:
        """Whether a network of this class can be built for nodes that know their place."""
        return "pe_channels" in inspect.signature(cls.__init__).parameters

    @classmethod
    def needs_num_nodes(cls, settings: Mapping[str, Any] | None = None) -> bool:
        """Whether a network of this class is built for one graph, whose nodes it knows by place.

        Args:
            settings: arguments of the network, for classes of which only some do.
        """
        return "num_nodes" in inspect.signature(cls.__init__).parameters

    def _check_fit(self, x: Tensor, graph: Graph) -> None:
        weight = next(self.parameters())
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise ValueError(
                f"`x` must have the dtype of the model, {weight.dtype} (model.to(dtype) changes "
                f"it); got {x.dtype}"
            )
        if not x.device == weight.device == graph.device:
            raise ValueError(
                f"`x` and `edge_index` must be on the device of the model, {weight.device}; "
                f"got {x.device} and {graph.device}"
            )


def _refuse_batch(edge_weight: Tensor) -> None:
    if isinstance(edge_weight, Tensor) and edge_weight.dtype == torch.int64:
        raise ValueError(
            "`edge_weight` must have a floating point dtype; got torch.int64 (what follows the "
            "weights is given by its name: `batch=...`)"
        )


def make_act(act: str | Callable[[Tensor], Tensor] | None) -> Callable[[Tensor], Tensor]:
    """An activation by its name; ``"identity"`` or ``None`` for none."""
    if act is None or act == "identity":
        return nn.Identity()
    if isinstance(act, str):
        try:
            return activation_resolver(act)
        except ValueError as error:
            raise ValueError(f"`act` must be an activation or its name; {error}") from None
    if not callable(act):
        raise ValueError(f"`act` must be an activation or its name; got {act!r}")
    return act


def make_norm(norm: str | None, width: int) -> nn.Module:
    """``None``, ``"layer"`` or ``"batch"``."""
    return nn.Identity() if norm is None else check_choice("norm", norm, NORMS)(width)


def make_readout(width: int, out_channels: int | None, num_layers: int = 1) -> nn.Module:
    """Linear layers with GELU between them, or nothing where there is no output to make."""
    check_int("readout_layers", num_layers, minimum=1)
    if out_channels is None:
        return nn.Identity()
    hidden: list[nn.Module] = []
    for _ in range(num_layers - 1):
        hidden += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*hidden, nn.Linear(width, out_channels))


def make_linear(width: int, out_channels: int | None, *, bias: bool = True) -> nn.Module:
    """A linear layer, or nothing where there is no output to make."""
    return nn.Identity() if out_channels is None else nn.Linear(width, out_channels, bias=bias)


def reset_children(module: nn.Module) -> None:
    """Call ``reset_parameters`` of every module inside that has one."""
    for child in module.children():
        reset: Any = getattr(child, "reset_parameters", None)
        if reset is None:
            reset_children(child)
        else:
            reset()
