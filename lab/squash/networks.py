"""The networks of the NeighborsMatch experiment, on forests of trees that share one shape.

All read pairs of key and value, ``(B, N, 2)``, of B trees in pre-order, and return the logits of
the B roots, ``(B, classes)``. Nothing is built or sorted per batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.models.network import reset_children
from coopsheaf.nn.learners import LearnerRecipe, MapLearner, MLPLearner, learn_maps
from coopsheaf.nn.sage import SAGE
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.orthogonal import make_orthogonal, make_scale
from coopsheaf.zoo.bunn.conv import BundleConv, BundleLearner
from coopsheaf.zoo.bunn.heat import TaylorHeat
from coopsheaf.zoo.match.network import MatchNetwork, PairEmbedding
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.platonov.layers import FeedForward
from lab.squash.settings import DIRECTIONS, LEARNERS, TreeModel
from lab.squash.trees import Forest

CHANNELS = 32
STALK_DIM = 2
HEAT_STEPS, HEAT_TIME = 8, 1.0


class TreeMatchNetwork(MatchNetwork):
    r""":class:`~coopsheaf.zoo.match.network.MatchNetwork` on trees whose edges go to the root.

    The same parameters and the same values at the roots. Every inner node hears itself and its two
    children, so that a sum over neighbours is a sum of two slices. And since nothing flows
    downwards, layer t of L has to be computed for the levels 0 to L - t alone: of the about
    :math:`(r + 1) 2^{r + 1}` node updates of r + 1 layers :math:`2 \cdot 2^{r + 1}` remain. Not so
    with ``"gin"``, whose batch norms average over all nodes in training.

    Args:
        depth: depth r of the trees.
        kind: ``"gcn"``, ``"gin"``, ``"gat"`` or ``"ggnn"``.
        num_layers: r + 1 if not given.
        hidden_channels: size of a layer.
    """

    def __init__(
        self,
        depth: int,
        *,
        kind: str,
        num_layers: int | None = None,
        hidden_channels: int = CHANNELS,
    ) -> None:
        check_int("depth", depth, minimum=1)
        classes = 2**depth + 1
        super().__init__(
            2,
            hidden_channels,
            depth + 1 if num_layers is None else num_layers,
            classes,
            kind=kind,
            encoder=PairEmbedding(classes, classes, hidden_channels),
        )
        self.depth = depth
        self._layer = _LAYERS[kind]
        self._prunes = kind != "gin"

    def forward(self, pairs: Tensor, forest: Forest) -> Tensor:  # type: ignore[override]
        x = self.encoder(forest.flatten(pairs))
        for t, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            level = self.num_layers - 1 - t if self._prunes else forest.depth
            x = x[: forest.up_to(min(level + 1, forest.depth))]
            size = forest.up_to(min(level, forest.depth))
            y = self._layer(conv, x, size, forest)
            y = F.relu(y) if self.relu else y
            x = norm(x[:size] + y if self.residual else y)
        return self.readout(x[: forest.copies])

    def __repr__(self) -> str:
        return (
            f"TreeMatchNetwork(depth={self.depth}, kind={self.kind!r}, "
            f"num_layers={self.num_layers}, hidden_channels={self.hidden_channels})"
        )


def _children(x: Tensor, forest: Forest) -> Tensor:
    """The two children of each inner node of a prefix of levels, ``(inner, 2, …)``."""
    return x[forest.copies :].unflatten(0, (-1, 2))


def _add_children(own: Tensor, x: Tensor, forest: Forest) -> Tensor:
    """``own`` of some nodes plus the sum of x over their children; leaves have none."""
    heard = _children(x, forest).sum(1)
    leaves = own.shape[0] - heard.shape[0]
    return own + (F.pad(heard, (0, 0, 0, leaves)) if leaves else heard)


def _gcn(conv: Any, x: Tensor, size: int, forest: Forest) -> Tensor:
    # Sums first: then the product has half as many rows.
    if x.shape[0] <= forest.up_to(forest.depth - 1):
        # Every node, and every child, has three edges into it.
        return F.linear(_add_children(x[:size], x, forest), conv.lin.weight / 3, conv.bias)
    # Leaves have their loop alone.
    scale = x.new_ones(x.shape[0], 1)
    scale[: forest.up_to(forest.depth - 1)] = 3**-0.5
    sent = scale * x
    heard = scale[:size] * _add_children(sent[:size], sent, forest)
    return F.linear(heard, conv.lin.weight, conv.bias)


def _gin(conv: Any, x: Tensor, size: int, forest: Forest) -> Tensor:
    # The loop makes a node its own neighbour, beside the (1 + eps) that it has anyway.
    return conv.nn(_add_children((2 + conv.eps) * x[:size], x, forest))


def _gat(conv: Any, x: Tensor, size: int, forest: Forest) -> Tensor:
    z = conv.lin(x)  # (n, heads·c)
    # The scores of all heads as one product: each has its own part of z.
    att = torch.cat([conv.att_src, conv.att_dst])  # (2, heads, c)
    score = z @ torch.cat([torch.block_diag(*part.unsqueeze(2)) for part in att], dim=1)
    at_source, at_target = score.split(conv.heads, dim=1)  # (n, heads)
    inner = min(size, forest.up_to(forest.depth - 1))
    score = torch.cat([at_source[:inner].unsqueeze(1), _children(at_source, forest)], dim=1)
    score = F.leaky_relu(score + at_target[:inner].unsqueeze(1), conv.negative_slope)
    share = score.softmax(dim=1).unsqueeze(-1)  # (inner, 3, heads, 1)
    z = z.unflatten(1, (conv.heads, -1))
    own, first, second = z[:inner], *_children(z, forest).unbind(1)
    y = share[:, 0] * own + share[:, 1] * first + share[:, 2] * second
    # A leaf hears itself alone.
    return torch.cat([y, z[inner:size]]).flatten(1) + conv.bias


def _ggnn(conv: Any, x: Tensor, size: int, forest: Forest) -> Tensor:
    return conv.rnn(_add_children(x[:size], x, forest) @ conv.weight[0], x[:size])


_LAYERS: dict[str, Callable[[Any, Tensor, int, Forest], Tensor]] = {
    "gcn": _gcn,
    "gin": _gin,
    "gat": _gat,
    "ggnn": _ggnn,
}


@dataclass(frozen=True)
class PlainSAGELearner:
    """Recipe for GraphSAGE with ReLU between its layers and nothing else."""

    hidden_channels: int
    num_layers: int

    def __call__(self, in_channels: int, out_channels: int) -> nn.Module:
        return SAGE(in_channels, self.hidden_channels, self.num_layers, out_channels)


class TreeLayer(nn.Module):
    """A layer of a :class:`TreeSheafNetwork`: from ``(n, width)`` to ``(n, width)``."""

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        raise NotImplementedError


class CSNNTreeLayer(TreeLayer):
    r"""A CSNN layer whose diffusion and whose map learners have edges of their own.

    .. math:: X' = (1 + \tanh \varepsilon) \odot X - \Delta (I_n \otimes W_1) X W_2

    with Δ of :mod:`coopsheaf.sheaves.diffusion` on the diffusion's edges and maps learned on the
    learners' (:class:`~coopsheaf.nn.CSNNConv` has one graph for both). Directions mean the flow of
    information: released semantics, which gather at the source of an edge, get their list
    reversed.

    Args:
        direction: a name of ``DIRECTIONS``.
        learner: a recipe for the two map learners.
        semantics: ``"paper"``, ``"released"`` or ``"messages"``.

    Shapes:
        x ``(n, d·h)``; returns the same.
    """

    def __init__(
        self,
        direction: str,
        learner: LearnerRecipe,
        *,
        semantics: str = "paper",
        channels: int = CHANNELS,
        stalk_dim: int = STALK_DIM,
    ) -> None:
        super().__init__()
        self.direction, self.semantics = direction, semantics
        self.edges = check_choice("direction", direction, DIRECTIONS)
        self.diffusion = check_choice("semantics", semantics, SEMANTICS)
        self.channels, self.stalk_dim = channels, stalk_dim
        orthogonal, scale = make_orthogonal("householder", stalk_dim), make_scale("exp")
        width = stalk_dim * channels
        self.source_learner = MapLearner(width, learner, orthogonal=orthogonal, scale=scale)
        self.target_learner = MapLearner(width, learner, orthogonal=orthogonal, scale=scale)
        self.left = nn.Linear(stalk_dim, stalk_dim, bias=False)
        self.right = nn.Linear(channels, channels, bias=False)
        self.epsilon = nn.Parameter(torch.empty(stalk_dim, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """W₁ starts as the identity, W₂ orthogonal and ε at 0."""
        self.source_learner.reset_parameters()
        self.target_learner.reset_parameters()
        nn.init.eye_(self.left.weight)
        nn.init.orthogonal_(self.right.weight)
        nn.init.zeros_(self.epsilon)

    def maps(self, x: Tensor, forest: Forest) -> tuple[ConformalMaps, ConformalMaps]:
        """Source and target maps that x gives rise to."""
        graph = forest.graph(self.edges.learner)
        source, target = learn_maps([self.source_learner, self.target_learner], x, graph)
        return source, target

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        source, target = self.maps(x, forest)
        graph = forest.graph(self.edges.diffusion)
        if self.semantics == "released":
            graph = graph.reverse()
        field = x.unflatten(1, (self.stalk_dim, self.channels))  # (n, d, h)
        y = self.right(self.left.weight @ field)
        y = self.diffusion(graph, source, target, None).mv(y)
        return ((1 + torch.tanh(self.epsilon)) * field - y).flatten(1)

    def __repr__(self) -> str:
        return (
            f"CSNNTreeLayer({self.direction!r}, {type(self.source_learner.learner).__name__}, "
            f"semantics={self.semantics!r})"
        )


class NSDTreeLayer(TreeLayer):
    r"""A layer of Neural Sheaf Diffusion with orthogonal maps on the bidirected tree.

    .. math:: X' = (1 + \tanh \varepsilon) \odot X - \operatorname{elu}(\Delta (I_n \otimes W_1) X
              W_2)

    with Δ of :class:`~coopsheaf.zoo.nsd.conv.NSDConv`, the sparse learner and no learned weights.
    """

    def __init__(self, *, channels: int = CHANNELS, stalk_dim: int = STALK_DIM) -> None:
        super().__init__()
        self.conv = NSDConv(channels, stalk_dim, maps="orthogonal", sparse_learner=True)
        self.epsilon = nn.Parameter(torch.empty(stalk_dim, 1))
        self.channels, self.stalk_dim = channels, stalk_dim
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.conv.reset_parameters()
        nn.init.zeros_(self.epsilon)

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        field = x.unflatten(1, (self.stalk_dim, self.channels))  # (n, d, h)
        y = self.conv(field, forest.graph("both-ways"))
        return ((1 + torch.tanh(self.epsilon)) * field - F.elu(y)).flatten(1)

    def __repr__(self) -> str:
        return f"NSDTreeLayer({self.conv.channels}, stalk_dim={self.stalk_dim})"


class BuNNTreeLayer(TreeLayer):
    r"""A layer of the Bundle Neural Network on the bidirected tree.

    .. math:: X' = X + O^\top\, U\bigl(X \,\Vert\, e^{-\tau L} O X\bigr)

    (:class:`~coopsheaf.zoo.bunn.conv.BundleConv`) with one bundle per channel, a Taylor
    polynomial of degree 8 with τ = 1 for the heat kernel, and maps O of a two-layer network at
    each node. The settings of the published numbers are not known: these are the defaults of the
    BuNN authors' released code for other tasks, at the width of CSNN.
    """

    def __init__(self, *, channels: int = CHANNELS, stalk_dim: int = STALK_DIM) -> None:
        super().__init__()
        width = channels * stalk_dim
        self.learner = BundleLearner(width, channels, stalk_dim, num_layers=0)
        self.conv = BundleConv(
            width,
            channels,
            stalk_dim,
            heat=TaylorHeat(HEAT_STEPS, HEAT_TIME),
            update=FeedForward(2 * width, width, width),
        )

    def reset_parameters(self) -> None:
        self.learner.reset_parameters()
        self.conv.reset_parameters()

    def forward(self, x: Tensor, forest: Forest) -> Tensor:
        graph = forest.graph("both-ways")
        return x + self.conv(x, self.learner(x, graph), graph)

    def __repr__(self) -> str:
        return f"BuNNTreeLayer({self.conv.num_bundles}, stalk_dim={self.conv.stalk_dim})"


class TreeSheafNetwork(nn.Module):
    r"""Embedded pairs, layers with a norm after each, and a linear readout of the roots.

    .. math:: X_0 = E_{key} + E_{value}, \qquad
              X_{t+1} = \operatorname{LayerNorm}_t(\operatorname{layer}_t(X_t)), \qquad
              \text{logits} = R\, x_{root}

    Args:
        depth: depth r of the trees; there are :math:`2^r + 1` classes.
        make_layer: makes a layer of ``width`` channels.
        num_layers: r + 1 if not given.
        width: d·h.

    Shapes:
        pairs ``(B, N, 2)`` of B trees in pre-order; returns ``(B, classes)``.
    """

    def __init__(
        self,
        depth: int,
        make_layer: Callable[[], TreeLayer],
        *,
        num_layers: int | None = None,
        width: int = CHANNELS * STALK_DIM,
    ) -> None:
        super().__init__()
        self.depth, self.width = check_int("depth", depth, minimum=1), width
        self.num_layers = depth + 1 if num_layers is None else num_layers
        check_int("num_layers", self.num_layers, minimum=1)
        classes = 2**depth + 1
        self.encoder = PairEmbedding(classes, classes, width)
        self.layers = nn.ModuleList(make_layer() for _ in range(self.num_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(self.num_layers))
        self.readout = nn.Linear(width, classes, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        reset_children(self)

    def forward(self, pairs: Tensor, forest: Forest) -> Tensor:
        x = self.encoder(forest.flatten(pairs))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(layer(x, forest))
        return self.readout(x[: forest.copies])

    def __repr__(self) -> str:
        return (
            f"TreeSheafNetwork(depth={self.depth}, num_layers={self.num_layers}, "
            f"layer={self.layers[0]})"
        )


def tree_network(
    model: TreeModel, depth: int, *, num_layers: int | None = None
) -> TreeMatchNetwork | TreeSheafNetwork:
    """The network of a model for trees of a depth."""
    if model.name == "csnn":
        learner = _make_learner(model.learner, depth)

        def csnn() -> TreeLayer:
            return CSNNTreeLayer(model.direction, learner, semantics=model.semantics)

        return TreeSheafNetwork(depth, csnn, num_layers=num_layers)
    if model.name in ("nsd", "bunn"):
        layer = NSDTreeLayer if model.name == "nsd" else BuNNTreeLayer
        return TreeSheafNetwork(depth, layer, num_layers=num_layers)
    return TreeMatchNetwork(depth, kind=model.name, num_layers=num_layers)


def _make_learner(name: str, depth: int) -> LearnerRecipe:
    check_choice("learner", name, LEARNERS)
    return PlainSAGELearner(CHANNELS, depth + 1) if name == "sage" else MLPLearner(CHANNELS)
