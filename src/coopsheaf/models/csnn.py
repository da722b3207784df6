"""The Cooperative Sheaf Neural Network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from coopsheaf.checks import check_choice, check_int, check_probability
from coopsheaf.models.network import Network, make_act, make_norm, make_readout
from coopsheaf.nn import fused
from coopsheaf.nn.csnn_conv import CSNNConv
from coopsheaf.nn.dropout import dropout
from coopsheaf.nn.edge_features import EdgeFeatures, EdgeMeans, edge_means
from coopsheaf.nn.fused_runs import update_in_runs
from coopsheaf.nn.inputs import make_features, take_pe
from coopsheaf.nn.learners import LEARNER_CHANNELS, LEARNER_LAYERS, LearnerRecipe, make_recipe
from coopsheaf.nn.linear import apply_linear
from coopsheaf.nn.norm import apply_norm
from coopsheaf.nn.places import make_seen_places
from coopsheaf.nn.prenorm import PreNormBlock
from coopsheaf.nn.structure import check_rows, make_rows
from coopsheaf.nn.waves import LARGEST_STEP, Swing, check_steps
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels import is_fused, is_fused_together
from coopsheaf.sheaves.kernels.eager import is_plain_eager
from coopsheaf.sheaves.orthogonal import Orthogonal, Scale
from coopsheaf.tensor_checks import check_shape

BLOCKS = {
    "residual": "(1 + tanh ε) ⊙ x - σ(y), the paper's",
    "prenorm": "a norm, and a perceptron of [self, neighbours] added to x",
}


class CSNN(Network):
    r"""Cooperative Sheaf Neural Network (Ribeiro et al., ICLR 2026), for nodes or whole graphs.

    An encoder lifts the input to h channels of stalk dimension d; then, layer by layer,

    .. math::
        X_{t+1} = (1 + \tanh \varepsilon_t) \odot X_t
                  - \sigma\bigl((\Delta_t^{in})^\top \Delta_t^{out} (I_n \otimes W_{1,t}) X_t
                  W_{2,t}\bigr),

    with one learned :math:`\varepsilon_t \in \mathbb{R}^d` per layer, shared by nodes and channels,
    and with maps learned anew from :math:`X_t` (:class:`~coopsheaf.nn.CSNNConv`); an optional norm
    follows. The readout is a linear layer or an MLP, after pooling for whole graphs.

    Where edges have features :math:`a_e \in \mathbb{R}^k`, the learners of every layer see them as
    means over the edges into a node and over those out of it (:func:`coopsheaf.nn.edge_means`):
    the input of node i is

    .. math::
        \Bigl[\, x_i,\; p_i,\; \tfrac{1}{\deg^{in}(i)} \sum_{e = (j \to i)} a_e,\;
        \tfrac{1}{\deg^{out}(i)} \sum_{e = (i \to j)} a_e \,\Bigr]
        \in \mathbb{R}^{d h + \mathrm{pe} + 2k},

    with :math:`p_i` its positional encoding, and 0 for a mean over no edges. So what the edges say
    decides how a node broadcasts and how it listens; what is diffused is X alone.

    Dropout acts on what enters a layer (its residual and its learners see the dropped-out
    features) and on what the diffusion returns.

    ``docs/csnn-options.md`` has the equations of the options that are not the paper's.

    Args:
        in_channels: size of the input features.
        hidden_channels: number h of channels; a layer is d·h wide.
        num_layers: number of layers.
        out_channels: size of the output; ``None`` for the features of the last layer.
        stalk_dim: dimension d of the stalks.
        learner: what learns the maps: a recipe such as
            :class:`~coopsheaf.nn.ProjectedSAGELearner`, its name (``"mlp"``,
            ``"sage-graph-norm"``, ``"sage-node-norm"``, ``"sage-projected"``,
            ``"sage-embedded"``), or a module that maps ``(x, edge_index)`` to the right width
            (every layer gets copies of it, their parameters drawn anew).
        learner_channels, learner_layers: size and depth of a learner that is given by its name; an
            MLP has two layers.
        learner_dropout: dropout probability inside a learner that is given by its name; that of its
            recipe if not given.
        map_start: ``"random"``, or ``"equal"``: the learners' last layer starts at zero, so that
            all maps start as one.
        orthogonal: ``"householder"``, ``"cayley"``, ``"matrix-exponential"``, ``"euler"``, or an
            object of :mod:`coopsheaf.sheaves.orthogonal`.
        scale: ``"exp"``, ``"softplus"``, ``"rectified"``, ``"unit"``, or an object.
        left_weights: learn :math:`W_1`.
        right_weights: learn :math:`W_2`.
        semantics: ``"paper"``, ``"released"`` or ``"messages"``, one hop per layer without a
            diagonal (:mod:`coopsheaf.sheaves.diffusion`).
        input_dropout: dropout probability of the input features.
        dropout: dropout probability inside the layers.
        own_dropout: dropout probability of what a node keeps of itself, drawn apart from that of
            what it sends; if not given, one mask of ``dropout`` serves both.
        structure: ``None``, or ``"rows"``: the encoder sees a node's row of the adjacency matrix,
            too. The network then belongs to one graph.
        num_nodes: number of nodes of that graph; with ``structure`` only.
        block: ``"residual"``, the equation above, or ``"prenorm"``: a
            :class:`~coopsheaf.nn.PreNormBlock` around every diffusion and one more norm at the end;
            ``norm`` says which, ``"layer"`` if not given.
        step: ``"euler"``, the equation above, or ``"wave"``: second order in time, with a velocity
            that ε damps (:class:`~coopsheaf.nn.Swing`).
        step_size: that of waves, at most 1.
        act: the activation σ: a name that PyG resolves, a module, or ``"identity"`` / ``None``.
        norm: ``None``, ``"layer"`` or ``"batch"``, after each layer.
        readout_layers: number of linear layers of the readout, GELU between them.
        pool: ``None`` for node outputs; ``"mean"``, ``"sum"`` or ``"max"`` for graph outputs.
        pe_channels: size of positional encodings; only the map learners see them.
        pe_kind: what they are: ``"none"`` for numbers that are seen as they are, ``"rwse"`` or
            ``"lappe"`` for those that an encoder of :mod:`coopsheaf.nn` makes ``pe_width`` of.
        encoder: ``"linear"``, or ``"atoms"``: an :class:`~coopsheaf.nn.AtomEncoder` of codes.
        edge_channels: size k of the features of edges; only the map learners see them.
        checkpoint_layers: in training keep only what enters each layer and compute the rest again
            on the way back: less memory, about a third more time, the same gradients and dropout.
        jk: what the readout sees of the layers: ``None`` or ``"last"`` for the last one, ``"cat"``,
            ``"max"`` or ``"lstm"`` for all of them (PyG's ``JumpingKnowledge``).

    Shapes:
        x ``(n, in_channels)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; batch
        ``(n,)``, the graph of each node; pe ``(n, pe_channels)``; edge_weight ``(m,)``;
        edge_attr ``(m, edge_channels)``, or :class:`~coopsheaf.nn.EdgeMeans` of n nodes. Returns
        ``(n, out_channels)``, or ``(graphs, out_channels)`` with a pool.
    """

    takes_edge_weight = True
    halves_products = True
    later_settings = (
        "checkpoint_layers", "learner_dropout", "map_start", "own_dropout", "structure", "block",
        "encoder", "pe_kind", "pe_width", "step", "step_size",
    )  # fmt: skip

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 32,
        num_layers: int = 3,
        out_channels: int | None = None,
        *,
        stalk_dim: int = 3,
        learner: str | LearnerRecipe | nn.Module = "mlp",
        learner_channels: int = LEARNER_CHANNELS,
        learner_layers: int = LEARNER_LAYERS,
        orthogonal: str | Orthogonal = "householder",
        scale: str | Scale = "exp",
        left_weights: bool = True,
        right_weights: bool = True,
        semantics: str = "paper",
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        act: str | Callable[[Tensor], Tensor] | None = "gelu",
        norm: str | None = None,
        readout_layers: int = 1,
        pool: str | None = None,
        pe_channels: int = 0,
        edge_channels: int = 0,
        checkpoint_layers: bool = False,
        jk: str | None = None,
        learner_dropout: float | None = None,
        map_start: str = "random",
        own_dropout: float | None = None,
        structure: str | None = None,
        num_nodes: int | None = None,
        block: str = "residual",
        encoder: str = "linear",
        pe_kind: str = "none",
        pe_width: int = 16,
        step: str = "euler",
        step_size: float = LARGEST_STEP,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        self.hidden_channels = check_int("hidden_channels", hidden_channels, minimum=1)
        self.num_layers = check_int("num_layers", num_layers, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.pe_channels = check_int("pe_channels", pe_channels, minimum=0)
        self.edge_channels = check_int("edge_channels", edge_channels, minimum=0)
        self.input_dropout = check_probability("input_dropout", input_dropout)
        self.dropout = check_probability("dropout", dropout)
        self.own_dropout = own_dropout
        if own_dropout is not None:
            check_probability("own_dropout", own_dropout)
        self.block = block
        check_choice("block", block, BLOCKS)
        self.step, self.step_size = step, step_size
        others = {"block": block != "residual", "own_dropout": own_dropout is not None}
        check_steps(step, step_size, others | {"checkpoint_layers": checkpoint_layers})
        self.semantics = semantics
        self.checkpoint_layers = checkpoint_layers
        self.act = make_act(act)

        learner = make_recipe(learner, learner_channels, learner_layers, learner_dropout)
        width = stalk_dim * hidden_channels
        self.encoder = make_features(in_channels, width, encoder)
        if encoder == "atoms" and input_dropout:
            raise ValueError(f"`input_dropout` of codes of atoms must be 0; got {input_dropout}")
        self.places, seen = make_seen_places(pe_kind, pe_channels, pe_width)
        self.seen_channels = seen  # what learners see of the positional encodings
        self.convs = nn.ModuleList(
            CSNNConv(
                hidden_channels,
                stalk_dim,
                learner=learner,
                orthogonal=orthogonal,
                scale=scale,
                left_weights=left_weights,
                right_weights=right_weights,
                semantics=semantics,
                pe_channels=seen + 2 * edge_channels,
                map_start=map_start,
            )
            for _ in range(num_layers)
        )
        if edge_channels and all(learner.out_channels == 0 for learner in self.map_learners()):
            raise ValueError(
                "`edge_channels` must be 0 where no map is learned (orthogonal 'identity' and "
                f"scale 'unit'): nobody would see the edge features; got {edge_channels}"
            )
        self.rows = make_rows(structure, num_nodes, width, pool=pool)
        self.num_nodes = num_nodes
        self.blocks, self.last_norm = self._make_blocks(norm, width)
        plain = 0 if self.blocks is not None else num_layers
        self.epsilons = nn.ParameterList(torch.empty(stalk_dim, 1) for _ in range(plain))
        self.norms = nn.ModuleList(make_norm(norm, width) for _ in range(plain))
        last = self._end_layers(width, jk, num_layers)
        self.readout = make_readout(last, out_channels, readout_layers)
        self.reset_parameters()

    def _make_blocks(
        self, norm: str | None, width: int
    ) -> tuple[nn.ModuleList | None, nn.Module | None]:
        if self.block == "residual":
            return None, None

        def make(width: int) -> nn.Module:
            return make_norm("layer" if norm is None else norm, width)

        if self.checkpoint_layers and norm == "batch":
            raise ValueError(
                "`norm` must not be 'batch' beside `checkpoint_layers` in `block` 'prenorm': its "
                "norms would count every batch twice; got 'batch'"
            )
        block = partial(
            PreNormBlock,
            norm=make,
            act=self.act,
            dropout=self.dropout,
            own_dropout=self.own_dropout,
        )
        return nn.ModuleList(block(width) for _ in range(self.num_layers)), make(width)

    @classmethod
    def needs_num_nodes(cls, settings: Mapping[str, Any] | None = None) -> bool:
        return (settings or {}).get("structure") is not None

    def map_learners(self) -> list[nn.Module]:
        learners: list[nn.Module] = []
        for conv in self.convs:
            assert isinstance(conv, CSNNConv)
            learners += [conv.source_learner, conv.target_learner]
        return learners

    def reset_parameters(self) -> None:
        """Draw all parameters anew; every ε starts at 0."""
        super().reset_parameters()
        for epsilon in self.epsilons:
            nn.init.zeros_(epsilon)

    def check_edge_attr(self, edge_attr: Any, graph: Graph, x: Tensor) -> EdgeFeatures | None:
        """Features of all edges, or their means at the nodes, which a part of a graph is given."""
        if isinstance(edge_attr, EdgeMeans) and self.edge_channels:
            return edge_attr.check(graph.num_nodes, self.edge_channels, x)
        checked: Tensor | None = super().check_edge_attr(edge_attr, graph, x)
        return checked

    def embed(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: EdgeFeatures | None = None,
    ) -> Tensor:
        if self.num_nodes is not None:
            check_rows(x, self.num_nodes, "CSNN")
        if self.places is not None:
            pe = self.places(take_pe(pe, x, self.pe_channels))
        beside = self.beside(graph, pe, edge_attr)
        return super().embed(x, graph, batch=batch, pe=beside, edge_weight=edge_weight)

    def beside(
        self, graph: Graph, pe: Tensor | None = None, edge_attr: EdgeFeatures | None = None
    ) -> Tensor | None:
        """What the learners of all layers see beside x, ``(n, pe + 2 edge_channels)``."""
        if edge_attr is None:
            return pe
        means = edge_attr if isinstance(edge_attr, EdgeMeans) else edge_means(graph, edge_attr)
        if self.seen_channels == 0:
            return torch.cat(means, dim=1)
        rule = f"(n, {self.seen_channels})"
        if pe is None:
            raise ValueError(f"`pe` must have shape {rule}; got None")
        check_shape("pe", pe, rule, (graph.num_nodes, self.seen_channels))
        return torch.cat([pe.to(means.into.dtype), *means], dim=1)

    def layer_outputs(
        self,
        x: Tensor,
        graph: Graph,
        *,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Iterator[Tensor]:
        rows = None if self.rows is None else self.rows(graph, edge_weight)
        x = self.encode(x, rows)
        steps = self._waves if self.step == "wave" else self._residual_layers
        for layer, norm in self._blocks() if self.blocks is not None else steps():
            inputs = (x, graph, pe, edge_weight)
            if self.checkpoint_layers and self.training and torch.is_grad_enabled():
                x = checkpoint(layer, *inputs, use_reentrant=False)
            else:
                x = layer(*inputs)
            # Outside: a batch norm that is computed twice would count its batch twice.
            x = apply_norm(norm, x.flatten(1)).view_as(x)
            yield x.flatten(1)  # (n, d·h)

    def after_layers(self, x: Tensor) -> Tensor:
        return x if self.last_norm is None else apply_norm(self.last_norm, x)

    def encode(self, x: Tensor, rows: Tensor | None = None) -> Tensor:
        """What enters the first layer: from ``(n, in_channels)`` to ``(n, d, h)``, node by node.

        ``rows`` is what was made of the nodes' rows of the adjacency matrix, ``(n, d·h)``.
        """
        x = dropout(x, self.input_dropout, self.training)
        if rows is None:
            x = apply_linear(self.encoder, x, self.act)
        else:
            x = self.act(self.encoder(x) + rows)
        return x.unflatten(1, (self.stalk_dim, self.hidden_channels))

    def _residual_layers(self) -> Iterator[tuple[Callable[..., Tensor], nn.Module]]:
        for conv, epsilon, norm in zip(self.convs, self.epsilons, self.norms, strict=True):
            yield partial(self._layer, conv, epsilon), norm

    def _waves(self) -> Iterator[tuple[Callable[..., Tensor], nn.Module]]:
        swing = Swing(self.step_size, self.act, self.dropout if self.training else 0.0)
        for conv, epsilon, norm in zip(self.convs, self.epsilons, self.norms, strict=True):
            yield partial(swing.layer, conv, epsilon), norm

    def _blocks(self) -> Iterator[tuple[Callable[..., Tensor], nn.Module]]:
        assert self.blocks is not None
        for conv, block in zip(self.convs, self.blocks, strict=True):
            yield partial(_apply_block, block, conv), nn.Identity()

    def _layer(
        self,
        conv: nn.Module,
        epsilon: Tensor,
        x: Tensor,
        graph: Graph,
        pe: Tensor | None,
        edge_weight: Tensor | None,
    ) -> Tensor:
        own, x = x, dropout(x, self.dropout, self.training)
        own = x if self.own_dropout is None else dropout(own, self.own_dropout, self.training)
        y, act = conv(x, graph, pe, edge_weight), fused.activation_code(self.act)
        if act is not None and is_fused(own, y, epsilon):
            return fused.update(own, y, epsilon, act, self.dropout if self.training else 0.0)
        if act is not None and is_fused_together(own, y, epsilon):
            return update_in_runs(own, y, epsilon, act, self.dropout if self.training else 0.0)
        return self.update(own, dropout(y, self.dropout, self.training), epsilon)

    def update(self, x: Tensor, y: Tensor, epsilon: Tensor) -> Tensor:
        """(1 + tanh ε) ⊙ x - σ(y), what a layer makes of x and its diffusion y, node by node."""
        kept, y = (1 + torch.tanh(epsilon)) * x, self.act(y)
        # In place where nobody looks inside: one array of the size of x less at the peak.
        return kept.sub_(y) if is_plain_eager(kept, y) else kept - y

    def __repr__(self) -> str:
        plain = {"block": "residual", "num_nodes": None, "step": "euler"}
        more = "".join(f", {k}={getattr(self, k)!r}" for k in plain if getattr(self, k) != plain[k])
        edges = f", edge_channels={self.edge_channels}" if self.edge_channels else ""
        return (
            f"CSNN({self.in_channels}, {self.hidden_channels}, num_layers={self.num_layers}, "
            f"out_channels={self.out_channels}, stalk_dim={self.stalk_dim}, "
            f"semantics={self.semantics!r}{edges}{more})"
        )


def _apply_block(
    block: nn.Module,
    conv: nn.Module,
    x: Tensor,
    graph: Graph,
    pe: Tensor | None,
    edge_weight: Tensor | None,
) -> Tensor:
    return block(x, lambda z: conv(z, graph, pe, edge_weight))
