"""Map learners: from node features to one conformal map per node.

A *learner* is a module that turns ``(x, edge_index)`` into ``(n, k)`` raw numbers; a
:class:`MapLearner` turns those into maps. A network needs two learners per layer, each of a width
it works out itself, so it takes a *recipe* for learners: an object that is called with
``(in_channels, out_channels)``. The recipes below are those of the paper's experiments.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeGuard, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import LayerNorm

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.nn import fused, fused_runs
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.linear import has_hooks
from coopsheaf.nn.products import linear
from coopsheaf.nn.sage import SAGE, SAGEConv, apply_stacks, go_together
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels import is_fused, is_fused_together
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.orthogonal import Orthogonal, Scale, conformal_maps

Kind = TypeVar("Kind", bound=nn.Module)
LearnerRecipe = Callable[[int, int], nn.Module]
"""``(in_channels, out_channels)`` to a module that maps ``(x, edge_index)`` to that width."""


class MLP(nn.Module):
    """Linear, ReLU, dropout, Linear on each node's own features: a node-local learner."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.layers = nn.Sequential(
            nn.Linear(in_channels, hidden_channels),
            nn.ReLU(),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        if self.dropout == 0.0 or not self.training:
            return self.layers(x)
        return self.layers[2](dropout(self.layers[:2](x), self.dropout))

    def start_at_zero(self) -> None:
        """Let the output be zero, whatever x is."""
        _zero(self.layers[2])


class EmbeddedSAGE(nn.Module):
    """Linear, GELU, then layers of SAGEConv and GELU, then dropout and Linear.

    Args:
        in_channels: size of the input features.
        hidden_channels: size inside.
        num_layers: number of SAGEConv layers.
        out_channels: size of the output.
        residual: add each layer's input to its output.
        dropout: dropout probability.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        num_layers: int,
        out_channels: int,
        *,
        residual: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.emb1 = nn.Linear(in_channels, hidden_channels)
        self.phi = nn.ModuleList(
            SAGEConv(hidden_channels, hidden_channels) for _ in range(num_layers)
        )
        self.emb2 = nn.Linear(hidden_channels, out_channels)
        self.residual = residual

    def forward(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        x = F.gelu(self.emb1(x))
        for conv in self.phi:
            y = F.gelu(conv(x, edge_index))
            x = x + y if self.residual else y
        return self.emb2(dropout(x, self.dropout, self.training))

    def start_at_zero(self) -> None:
        """Let the output be zero, whatever x is."""
        _zero(self.emb2)


def _zero(module: nn.Module) -> None:
    for parameter in module.parameters():
        nn.init.zeros_(parameter)


@dataclass(frozen=True)
class MLPLearner:
    """Recipe for an :class:`MLP`: maps that depend on the node's own features alone."""

    hidden_channels: int = 32
    dropout: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        check_int("hidden_channels", self.hidden_channels, minimum=1)
        check_probability("dropout", self.dropout)

    def __call__(self, in_channels: int, out_channels: int) -> nn.Module:
        return MLP(in_channels, self.hidden_channels, out_channels, dropout=self.dropout)


@dataclass(frozen=True)
class _SAGERecipe:
    hidden_channels: int = 32
    num_layers: int = 2
    dropout: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        check_int("hidden_channels", self.hidden_channels, minimum=1)
        check_int("num_layers", self.num_layers, minimum=1)
        check_probability("dropout", self.dropout)

    def _stack(self, in_channels: int, out_channels: int, **options: Any) -> nn.Module:
        sizes = in_channels, self.hidden_channels, self.num_layers, out_channels
        return SAGE(*sizes, dropout=self.dropout, **options)


@dataclass(frozen=True)
class GraphNormSAGELearner(_SAGERecipe):
    """Recipe for GraphSAGE of kind 1: ReLU, and PyG's LayerNorm in mode "graph" between layers.

    That norm averages over all nodes and channels at once. With two layers or more every map
    therefore depends on every node, also across the graphs of a mini-batch: a batch of graphs does
    not give what its graphs give one by one. :class:`NodeNormSAGELearner` is local.
    """

    def __call__(self, in_channels: int, out_channels: int) -> nn.Module:
        return self._stack(in_channels, out_channels, norm=partial(LayerNorm, mode="graph"))


@dataclass(frozen=True)
class NodeNormSAGELearner(_SAGERecipe):
    """Recipe for GraphSAGE of kind 1 with the norm taken over each node's own channels."""

    def __call__(self, in_channels: int, out_channels: int) -> nn.Module:
        return self._stack(in_channels, out_channels, norm=partial(LayerNorm, mode="node"))


@dataclass(frozen=True)
class ProjectedSAGELearner(_SAGERecipe):
    """Recipe for GraphSAGE of kind 2: GELU, projected messages, dropout 0.2, no norm.

    The dropout is part of the recipe, whatever the model's own dropout is.
    """

    dropout: float = 0.2

    def __call__(self, in_channels: int, out_channels: int) -> nn.Module:
        return self._stack(in_channels, out_channels, act=F.gelu, project=True)


@dataclass(frozen=True)
class EmbeddedSAGELearner(_SAGERecipe):
    """Recipe for an :class:`EmbeddedSAGE`, the released implementation's custom kind."""

    residual: bool = False

    def __call__(self, in_channels: int, out_channels: int) -> nn.Module:
        return EmbeddedSAGE(
            in_channels,
            self.hidden_channels,
            self.num_layers,
            out_channels,
            residual=self.residual,
            dropout=self.dropout,
        )


LEARNERS: dict[str, Callable[[], LearnerRecipe]] = {
    "mlp": MLPLearner,
    "sage-graph-norm": GraphNormSAGELearner,
    "sage-node-norm": NodeNormSAGELearner,
    "sage-projected": ProjectedSAGELearner,
    "sage-embedded": EmbeddedSAGELearner,
}


# Of a learner that is given by its name.
LEARNER_CHANNELS, LEARNER_LAYERS = 32, 2


def make_recipe(
    learner: str | LearnerRecipe | nn.Module,
    channels: int,
    num_layers: int,
    dropout: float | None = None,
) -> LearnerRecipe | nn.Module:
    """A recipe of this size from its name; an object is passed through.

    Args:
        learner: a name of ``LEARNERS``, a recipe or a module.
        channels: channels inside.
        num_layers: number of layers; the MLP always has two.
        dropout: dropout probability inside; that of the recipe if not given.
    """
    if not isinstance(learner, str):
        if (channels, num_layers) != (LEARNER_CHANNELS, LEARNER_LAYERS):
            raise ValueError(
                "`learner_channels` and `learner_layers` go with the name of a learner; "
                f"got {channels} and {num_layers} beside {learner!r}, which has sizes of its own"
            )
        if dropout is not None:
            raise ValueError(
                f"`learner_dropout` goes with the name of a learner; got {dropout} beside "
                f"{learner!r}, which has a dropout of its own"
            )
        return learner
    recipe: Any = check_choice("learner", learner, LEARNERS)
    more = {} if dropout is None else {"dropout": check_probability("learner_dropout", dropout)}
    return recipe(channels, **more) if learner == "mlp" else recipe(channels, num_layers, **more)


STARTS = {
    "random": "as the learners' parameters are drawn",
    "equal": "all maps the same: the learners' last layer is zero",
}

# Modules that take a prepared graph in place of an edge_index.
_PREPARED = (MLP, SAGE, EmbeddedSAGE)


class MapLearner(nn.Module):
    r"""Learns one conformal map per node.

    .. math::
        (p_i, r_i) = \operatorname{learner}(X, E)_i, \qquad
        F_i = \operatorname{scale}(r_i) \cdot \operatorname{orthogonal}(\tanh p_i)

    Args:
        in_channels: size of the node features.
        learner: a recipe, its name, or a module that maps ``(x, edge_index)`` to the right width.
            A module is copied and its parameters are drawn anew (``reset_parameters``), so that
            every layer and both maps start with their own. With the identity and a unit scale
            there is nothing to learn and no learner is made.
        orthogonal: the parametrisation of orthogonal matrices.
        scale: the scale.
        start: ``"random"``, or ``"equal"``: the learner's last layer starts at zero, and so all
            maps, of either kind and of all nodes, as one and the same.

    Shapes:
        x ``(n, in_channels)``; returns scale ``(n,)`` and orthogonal ``(n, d, d)``.
    """

    def __init__(
        self,
        in_channels: int,
        learner: str | LearnerRecipe | nn.Module,
        *,
        orthogonal: Orthogonal,
        scale: Scale,
        start: str = "random",
    ) -> None:
        super().__init__()
        check_choice("map_start", start, STARTS)
        self.in_channels, self.orthogonal, self.scale = in_channels, orthogonal, scale
        self.start = start
        self.out_channels = orthogonal.num_parameters + scale.num_parameters
        self.learner = None
        if self.out_channels > 0:  # otherwise nothing depends on the features
            self.learner = _make_learner(learner, in_channels, self.out_channels)
            self._start()

    def reset_parameters(self) -> None:
        if self.learner is not None:
            _reset(self.learner)
            self._start()

    def _start(self) -> None:
        """What was drawn, or zero at the end of it."""
        if self.start == "random":
            return
        end: Any = getattr(self.learner, "start_at_zero", None)
        if end is None:
            raise ValueError(
                "`map_start` 'equal' needs a learner with a method `start_at_zero()`, after which "
                f"it returns zeros; {type(self.learner).__name__} has none"
            )
        end()

    def forward(self, x: Tensor, graph: Graph, raw: Tensor | None = None) -> ConformalMaps:
        """The maps of x; ``raw`` is what the learner makes of x, if somebody worked it out."""
        return self.maps_of(self.raw(x, graph) if raw is None else raw)

    def raw(self, x: Tensor, graph: Graph) -> Tensor:
        """What the learner makes of x, ``(n, out_channels)``."""
        if self.learner is None:
            return x.new_empty(x.shape[0], 0)
        edge_index = graph if isinstance(self.learner, _PREPARED) else graph.edge_index
        raw = self.learner(x, edge_index)
        if raw.shape != (x.shape[0], self.out_channels):
            raise ValueError(
                f"`learner` must return shape ({x.shape[0]}, {self.out_channels}): "
                f"{self.orthogonal.num_parameters} orthogonal parameters and "
                f"{self.scale.num_parameters} scale per node; got {tuple(raw.shape)}"
            )
        return raw

    def maps_of(self, raw: Tensor) -> ConformalMaps:
        """The maps of free numbers; half precision would lose the orthogonality of theory."""
        raw = raw.float() if raw.dtype in (torch.bfloat16, torch.float16) else raw
        return conformal_maps(raw, self.scale, self.orthogonal)

    def __repr__(self) -> str:
        return (
            f"MapLearner({self.in_channels} -> {self.orthogonal}, {self.scale}, "
            f"learner={type(self.learner).__name__})"
        )


def learn_maps(learners: Sequence[MapLearner], x: Tensor, graph: Graph) -> list[ConformalMaps]:
    """The maps that several learners give one input: the same as calling them one by one.

    Those of one kind are computed together, unless somebody has put hooks or modules inside.
    """
    pairs = zip(learners, learn_raw(learners, x, graph), strict=True)
    return [learner(x, graph, raw=known) for learner, known in pairs]


def learn_raw(learners: Sequence[MapLearner], x: Tensor, graph: Graph) -> Sequence[Tensor | None]:
    """Free numbers of learners that can be computed together, or ``None`` for each."""
    inner = [learner.learner for learner in learners]
    kind: Any = type(inner[0])
    if kind in _TOGETHER and all(is_as_built(module, kind) for module in inner):
        apply, fit = _TOGETHER[kind]
        if fit(inner):
            return apply(inner, x, graph)
    return [None] * len(inner)


def _apply_mlps(mlps: Sequence[Any], x: Tensor, graph: Graph) -> list[Tensor]:
    first, _, last = zip(*(mlp.layers for mlp in mlps), strict=True)
    parameters = [p for a, b in zip(first, last, strict=True) for p in (*_own(a), *_own(b))]
    p = mlps[0].dropout if mlps[0].training else 0.0
    if p == 0.0 and is_fused(x, *parameters):
        return list(fused.mlps(x, parameters).unbind())
    if p == 0.0 and is_fused_together(x, *parameters):
        return list(fused_runs.mlps_in_runs(x, parameters).unbind())
    weight, bias = torch.cat([m.weight for m in first]), torch.cat([m.bias for m in first])
    hidden = dropout(F.relu(linear(x, weight, bias)), p).chunk(len(mlps), dim=1)
    return [linear(part, *_own(module)) for module, part in zip(last, hidden, strict=True)]


def _mlps_go_together(mlps: Sequence[Any]) -> bool:
    return len({(mlp.dropout, mlp.training) for mlp in mlps}) == 1


def _own(module: nn.Linear) -> tuple[Tensor, Tensor]:
    return module.weight, module.bias


def _apply_sages(stacks: Sequence[Any], x: Tensor, graph: Graph) -> Sequence[Tensor]:
    return apply_stacks(stacks, x, graph).unbind()


# How learners of one kind are computed together, and whether they can be.
_TOGETHER: dict[type, tuple[Callable[..., Sequence[Tensor]], Callable[..., bool]]] = {
    MLP: (_apply_mlps, _mlps_go_together),
    SAGE: (_apply_sages, go_together),
}

_PARTS = (MLP, SAGE, EmbeddedSAGE, SAGEConv, LayerNorm, nn.Linear, nn.ReLU, nn.Identity)


def is_as_built(module: nn.Module | None, kind: type[Kind]) -> TypeGuard[Kind]:
    """Whether a learner is what its recipe made, and nobody listens to what happens inside."""
    if module is None or type(module) is not kind:
        return False
    return all(
        type(part) in (*_PARTS, nn.Sequential, nn.ModuleList) and not has_hooks(part)
        for part in module.modules()
    )


def _make_learner(
    learner: str | LearnerRecipe | nn.Module, in_channels: int, out_channels: int
) -> nn.Module:
    if isinstance(learner, nn.Module):
        module = copy.deepcopy(learner)
        _reset(module)
        return module
    recipe = learner if callable(learner) else check_choice("learner", learner, LEARNERS)()
    module = recipe(in_channels, out_channels)
    if not isinstance(module, nn.Module):
        raise ValueError(
            "`learner` must make a torch.nn.Module when called with (in_channels, out_channels); "
            f"got {type(module).__name__}"
        )
    return module


def _reset(module: nn.Module) -> None:
    """Draw all parameters of a module anew, whoever wrote it."""
    if hasattr(module, "reset_parameters"):
        module.reset_parameters()  # type: ignore[operator]
    else:
        for child in module.children():
            _reset(child)
