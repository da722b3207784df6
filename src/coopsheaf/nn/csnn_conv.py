"""The diffusion of a CSNN layer, with its learned maps and weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.nn import fused, fused_runs
from coopsheaf.nn.learners import LearnerRecipe, MapLearner, learn_maps, learn_raw
from coopsheaf.nn.products import linear
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.graph import Graph, as_graph, as_weighted_graph
from coopsheaf.sheaves.kernels import is_fused, is_fused_together
from coopsheaf.sheaves.kernels.library import LARGEST_STALK
from coopsheaf.sheaves.kernels.runs import active_runs, along_edges
from coopsheaf.sheaves.kernels.stalks import multiply_stalks
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.orthogonal import Orthogonal, Scale, make_orthogonal, make_scale
from coopsheaf.tensor_checks import check_edge_weight, check_shape


class CSNNConv(nn.Module):
    r"""The cooperative sheaf diffusion of Ribeiro et al. (ICLR 2026).

    .. math:: Y = (\Delta^{in})^\top \Delta^{out} (I_n \otimes W_1) X W_2

    where two learners give every node a source map :math:`S_i = s_i Q_i` (how it broadcasts) and a
    target map :math:`T_i = t_i R_i` (how it listens). Node by node, with :math:`d^{out}_i =
    \deg^{out}(i) s_i^2`, :math:`d^{in}_i = \deg^{in}(i) t_i^2` and :math:`\bar X = (I_n \otimes
    W_1) X W_2`,

    .. math::
        z_i &= \frac{d^{out}_i}{d^{out}_i + 1} \bar x_i - \sum_{j \to i}
               \frac{T_i^\top S_j \bar x_j}{\sqrt{(d^{out}_i + 1)(d^{out}_j + 1)}}, \\
        y_i &= \frac{d^{in}_i}{d^{in}_i + 1} z_i - \sum_{j \to i}
               \frac{T_i^\top S_j z_j}{\sqrt{(d^{in}_i + 1)(d^{in}_j + 1)}}.

    A node with :math:`T_i = 0` receives nothing, one with :math:`S_i = 0` is heard by nobody. The
    residual, activation and dropout around it belong to :class:`~coopsheaf.CSNN`.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        learner: what learns the maps: a recipe such as :class:`MLPLearner`, its name, or a module.
        orthogonal: ``"householder"``, ``"cayley"``, ``"matrix-exponential"``, ``"euler"``, or an
            object.
        scale: ``"exp"``, ``"softplus"``, ``"rectified"`` (can be exactly zero), ``"unit"``, or an
            object.
        left_weights: learn :math:`W_1`, ``(d, d)``.
        right_weights: learn :math:`W_2`, ``(h, h)``.
        semantics: ``"paper"``; ``"released"`` for what the authors' code computes; ``"messages"``
            for the edges of :math:`\Delta^{out}` alone, one hop without a diagonal
            (:mod:`coopsheaf.sheaves.diffusion`).
        pe_channels: size of positional encodings that the learners see beside x.
        map_start: ``"random"``, or ``"equal"``: the learners' last layer starts at zero, so that
            all maps start as one.

    Shapes:
        x ``(n, d, h)``; edge_index ``(2, m)``, sparse ``(n, n)`` or a :class:`~coopsheaf.Graph`;
        pe ``(n, pe_channels)``; edge_weight ``(m,)``. Returns ``(n, d, h)``.
    """

    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        learner: str | LearnerRecipe | nn.Module = "mlp",
        orthogonal: str | Orthogonal = "householder",
        scale: str | Scale = "exp",
        left_weights: bool = True,
        right_weights: bool = True,
        semantics: str = "paper",
        pe_channels: int = 0,
        map_start: str = "random",
    ) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.pe_channels = check_int("pe_channels", pe_channels, minimum=0)
        self.semantics = semantics
        self.diffusion = check_choice("semantics", semantics, SEMANTICS)
        orthogonal = make_orthogonal(orthogonal, stalk_dim)
        width = stalk_dim * channels + pe_channels
        make = partial(MapLearner, orthogonal=orthogonal, scale=make_scale(scale), start=map_start)
        self.source_learner, self.target_learner = make(width, learner), make(width, learner)
        # Parameters are kept as Linear's transposed weights: W₁ itself, and W₂ᵀ.
        self.left = nn.Linear(stalk_dim, stalk_dim, bias=False) if left_weights else None
        self.right = nn.Linear(channels, channels, bias=False) if right_weights else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """W₁ starts as the identity and W₂ orthogonal; the learners start as their modules do."""
        self.source_learner.reset_parameters()
        self.target_learner.reset_parameters()
        if self.left is not None:
            nn.init.eye_(self.left.weight)
        if self.right is not None:
            nn.init.orthogonal_(self.right.weight)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        pe: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        d, h = self.stalk_dim, self.channels
        check_shape("x", x, f"(n, {d}, {h})", (None, d, h))
        graph, edge_weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        if edge_weight is not None:
            edge_weight = check_edge_weight(edge_weight, graph.num_edges, "x", x)
        if active_runs() is not None:
            return self._diffuse_runs(x, graph, pe, edge_weight)
        source, target = self.maps(x, graph, pe)
        return self.diffusion(graph, source, target, edge_weight).mv(self.mix(x))

    def _diffuse_runs(
        self, x: Tensor, graph: Graph, pe: Tensor | None, edge_weight: Tensor | None
    ) -> Tensor:
        """The same in many runs, from free numbers of maps on in one step for all of them."""
        learners = self.source_learner, self.target_learner
        seen = self._seen(x, pe)
        found = zip(learners, learn_raw(learners, seen, graph), strict=True)
        raw = [m.raw(seen, graph) if known is None else known for m, known in found]
        weight = () if edge_weight is None else (edge_weight,)

        def apply(graph: Graph, x: Tensor, *rest: Tensor) -> Tensor:
            source, target = (m.maps_of(r) for m, r in zip(learners, rest, strict=False))
            return self.diffusion(graph, source, target, *rest[2:]).mv(x)

        out: Tensor = along_edges(apply, graph, self.mix(x), *raw, *weight)
        return out

    def mix(self, x: Tensor) -> Tensor:
        """(I ⊗ W₁) X W₂, what is diffused, node by node."""
        left = None if self.left is None else self.left.weight
        right = None if self.right is None else self.right.weight
        fits = self.stalk_dim <= LARGEST_STALK and x.numel() > 0
        if right is not None and fits and is_fused(x, left, right):
            return fused.mix(x, left, right)
        if right is not None and fits and is_fused_together(x, left, right):
            return fused_runs.mix_in_runs(x, left, right)
        if left is not None:
            x = multiply_stalks(left, x)
        return x if right is None else linear(x, right)

    def maps(
        self, x: Tensor, edge_index: Tensor | Graph, pe: Tensor | None = None
    ) -> tuple[ConformalMaps, ConformalMaps]:
        """The source and target maps that x gives rise to."""
        graph, features = as_graph(edge_index, x.shape[0]), self._seen(x, pe)
        source, target = learn_maps([self.source_learner, self.target_learner], features, graph)
        return source, target

    def _seen(self, x: Tensor, pe: Tensor | None) -> Tensor:
        """What the learners see of every node, ``(n, d·h + pe_channels)``."""
        features, n = x.flatten(1), x.shape[0]  # (n, d·h)
        if pe is None and self.pe_channels > 0:
            raise ValueError(f"`pe` must have shape (n, {self.pe_channels}); got None")
        if pe is not None:
            check_shape("pe", pe, f"(n, {self.pe_channels})", (n, self.pe_channels))
            features = torch.cat([features, pe.to(features.dtype)], dim=1)
        return features

    def __repr__(self) -> str:
        return (
            f"CSNNConv({self.channels}, stalk_dim={self.stalk_dim}, "
            f"learner={type(self.source_learner.learner).__name__}, "
            f"orthogonal={self.source_learner.orthogonal}, scale={self.source_learner.scale}, "
            f"semantics={self.semantics!r})"
        )


class LayerMaps(NamedTuple):
    """The maps with which one layer diffused."""

    source: ConformalMaps
    target: ConformalMaps


@contextmanager
def record_maps(model: nn.Module) -> Iterator[list[LayerMaps]]:
    """Collect the maps that every :class:`CSNNConv` inside ``model`` uses.

    Inside the ``with`` block each forward pass appends one entry per layer, in order, to the list;
    what ``forward`` computes and returns does not change::

        with record_maps(model) as maps:
            out = model(x, edge_index)
        maps[0].target.scale  # (n,): how strongly each node listens in the first layer

    The maps are those of the computation itself, gradients included. Not for compiled models.
    """
    maps: list[LayerMaps] = []
    handles = []

    def remember(learned: dict[str, ConformalMaps], name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: ConformalMaps) -> None:
            learned[name] = output

        return hook

    def collect(learned: dict[str, ConformalMaps]) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
            maps.append(LayerMaps(**learned))

        return hook

    for conv in model.modules():
        if isinstance(conv, CSNNConv):
            learned: dict[str, ConformalMaps] = {}
            for name, learner in (("source", conv.source_learner), ("target", conv.target_learner)):
                handles.append(learner.register_forward_hook(remember(learned, name)))
            handles.append(conv.register_forward_hook(collect(learned)))
    try:
        yield maps
    finally:
        for handle in handles:
            handle.remove()
