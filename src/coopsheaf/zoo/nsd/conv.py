"""The diffusion of a Neural Sheaf Diffusion layer, with its learned sheaf and weights."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph, as_graph, as_weighted_graph
from coopsheaf.sheaves.laplacian import GraphOperator, weighted_degree
from coopsheaf.sheaves.operator import BlockDiagonal, DirectSum, Operator, Product
from coopsheaf.tensor_checks import check_edge_weight, check_shape
from coopsheaf.zoo.nsd.edge_learners import SPARSE_READINGS, EdgeLearner, MixedLearner
from coopsheaf.zoo.nsd.edge_maps import (
    MAP_ACTS,
    EdgeMaps,
    OrthogonalMaps,
    at_reverse,
    make_maps,
    undirected_partners,
)


class NSDConv(nn.Module):
    r"""The sheaf diffusion of Bodnar et al. (NeurIPS 2022).

    .. math:: Y = \Delta (I_n \otimes W_1) X W_2, \qquad
              \Delta = (D + I)^{-1/2} L (D + I)^{-1/2}

    where every end i of every edge {i, j} has a restriction map of its own, learned from the
    features of both ends. Node by node, with :math:`\bar X = (I_n \otimes W_1) X W_2` and e the
    edge j→i, :math:`\bar e` its reverse,

    .. math::
        F_e &= \operatorname{maps}(\sigma(V [x_i \,\Vert\, x_j])), \qquad
        D_i = \sum_{e = j \to i} w_e F_e^\top F_e, \\
        y_i &= (D_i + I)^{-1/2} \sum_{e = j \to i} w_e F_e^\top \bigl(
               F_e (D_i + I)^{-1/2} \bar x_i - F_{\bar e} (D_j + I)^{-1/2} \bar x_j \bigr).

    Δ is symmetric with spectrum in [0, 2). The residual, activation and dropout around it belong
    to :class:`~coopsheaf.zoo.nsd.network.NSD`.

    Differences from the authors' released code. The inverse root of d×d blocks has a derivative
    that is finite where eigenvalues coincide, so that nothing random is added to the blocks in
    training. The blocks of Δ are not clamped to [-1, 1], because they are inside: with
    :math:`R = (D + I)^{-1/2}` the square of :math:`F_e R_i` is a part of :math:`R_i D_i R_i < I`,
    so that :math:`R_i F_e^\top F_{\bar e} R_j` has norm below 1 whatever the maps are; with
    ``"degree"`` its entries are below 1 for maps with entries in [-1, 1], as tanh gives. Every
    parametrisation of orthogonal maps takes d(d - 1)/2 numbers; there, Cayley and exponential maps
    take d more that cancel. W₁ and W₂ can be switched off for all kinds of maps. A sparse learner
    sees the sum over the stalk coordinates of each end; there, for d ≥ 2, coordinates and ends are
    mixed (``sparse_reading="released"`` does the same).

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks on which maps act; with ``add_lp`` and ``add_hp`` the
            stalks have dimension ``total_dim`` = d + 1 or d + 2.
        maps: ``"diagonal"``, ``"orthogonal"``, ``"general"``, ``"identity"`` (nothing learned), or
            an object of :mod:`coopsheaf.zoo.nsd.edge_maps`.
        map_act: σ: ``"tanh"``, ``"elu"`` or ``"identity"``.
        sparse_learner: sum the stalk coordinates before the maps are learned: V takes 2h numbers
            instead of 2·total_dim·h.
        sparse_reading: what is summed: ``"summed"``, the coordinates of each end, or
            ``"released"``, as the authors' code does it
            (:class:`~coopsheaf.zoo.nsd.edge_learners.MixedLearner`). For stalks of dimension 1 they
            are the same.
        learn_weights: multiply both maps of an edge by a learned number in (0, 1),
            :math:`\operatorname{sigmoid}(a^\top [x_i \Vert x_j])
            \operatorname{sigmoid}(a^\top [x_j \Vert x_i])`. Orthogonal maps only; by
            default all of them have it.
        add_lp: one more stalk coordinate, after the others, with the signless Laplacian D + A of
            the graph.
        add_hp: one more stalk coordinate, at the end, with the ordinary Laplacian D - A. (The help
            texts of the released options ``add_lp`` and ``add_hp`` have low and high swapped.)
            Both are multiplied by (deg + 1)^-1/2 from both sides when ``normalization`` is
            ``"augmented"``, and left as they are otherwise; learned weights do not touch them.
        normalization: ``"augmented"``; ``None``: :math:`\Delta = L`; or ``"degree"``: in place of
            D + I stands the number deg + 1 (diagonal maps) or d·deg + 1 (general maps and
            identities). With general maps that does not bound the spectrum by 2.
        left_weights: learn :math:`W_1`, ``(total_dim, total_dim)``.
        right_weights: learn :math:`W_2`, ``(h, h)``.
        learn_maps: ``False`` for a layer that diffuses on the sheaf of another one:
            :meth:`forward` then needs a ``laplacian``.

    Shapes:
        x ``(n, total_dim, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge
        both ways and no self-loop; edge_weight ``(m,)``, the same both ways. Returns
        ``(n, total_dim, h)``.
    """

    # How many real numbers a number of the features is: relatives with complex ones have 2.
    parts: ClassVar[int] = 1

    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        maps: str | EdgeMaps = "orthogonal",
        map_act: str = "tanh",
        sparse_learner: bool = False,
        sparse_reading: str = "summed",
        learn_weights: bool | None = None,
        add_lp: bool = False,
        add_hp: bool = False,
        normalization: str | None = "augmented",
        left_weights: bool = True,
        right_weights: bool = True,
        learn_maps: bool = True,
    ) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.edge_maps = make_maps(maps, stalk_dim)
        self.normalization = self.edge_maps.check_normalization(normalization)
        self.map_act = check_choice("map_act", map_act, MAP_ACTS)
        self.sparse_learner, self.learn_maps = sparse_learner, learn_maps
        check_choice("sparse_reading", sparse_reading, SPARSE_READINGS)
        if sparse_reading != "summed" and not sparse_learner:
            raise ValueError(
                f"`sparse_reading` goes with `sparse_learner`; got {sparse_reading!r} without it"
            )
        if learn_weights is None:
            learn_weights = learn_maps and isinstance(self.edge_maps, OrthogonalMaps)
        if learn_weights and not isinstance(self.edge_maps, OrthogonalMaps):
            raise ValueError(
                "`learn_weights` must be False for maps that are not orthogonal; "
                f"got True for {self.edge_maps}"
            )
        # The sign with which a fixed coordinate hears its neighbours: L has it negated.
        self.fixed_signs = [-1.0] * add_lp + [1.0] * add_hp
        self.total_dim = stalk_dim + len(self.fixed_signs)

        width, numbers = self.parts * self.total_dim * channels, self.edge_maps.num_parameters
        self.map_learner = None
        if learn_maps and numbers > 0:
            self.map_learner = (
                MixedLearner(channels, self.total_dim, numbers)
                if sparse_reading == "released"
                else EdgeLearner(self.parts * channels if sparse_learner else width, numbers)
            )
        self.weight_learner = EdgeLearner(width, 1) if learn_maps and learn_weights else None
        # A Linear keeps its weight transposed: that of `left` is W₁, that of `right` W₂ᵀ.
        d = self.total_dim
        self.left = nn.Linear(d, d, bias=False) if left_weights else None
        self.right = nn.Linear(channels, channels, bias=False) if right_weights else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """W₁ starts as the identity and W₂ orthogonal; the learners start as linear layers do."""
        for learner in (self.map_learner, self.weight_learner):
            if learner is not None:
                learner.reset_parameters()
        if self.left is not None:
            nn.init.eye_(self.left.weight)
        if self.right is not None:
            nn.init.orthogonal_(self.right.weight)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        *,
        laplacian: Operator | None = None,
    ) -> Tensor:
        """The diffusion of x on the sheaf learned from x, or with a ``laplacian`` given.

        A Laplacian brings its graph and weights with it: of ``edge_index`` nothing is read then.
        """
        self._check(x)
        if laplacian is not None and edge_weight is not None:
            raise ValueError("`edge_weight` must be None with a `laplacian`, which has its own")
        if laplacian is None:
            laplacian = self.laplacian(x, edge_index, edge_weight)
        return laplacian.mv(self.mix(x))

    def mix(self, x: Tensor) -> Tensor:
        r""":math:`(I_n \otimes W_1) X W_2`, ``(n, total_dim, h)``."""
        if self.left is not None:
            x = self.left.weight @ x
        return x if self.right is None else self.right(x)

    def laplacian(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None
    ) -> Operator:
        """Δ of the sheaf that is learned from x."""
        self._check(x)
        graph, edge_weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        if edge_weight is not None:
            edge_weight = check_undirected_weight(
                check_edge_weight(edge_weight, graph.num_edges, "x", x), graph
            )
        maps, weight = self.maps(x, graph), self.learned_weight(x, graph, edge_weight)
        learned = self.edge_maps.laplacian(maps, graph, weight, self.normalization)
        if not self.fixed_signs:
            return learned
        return DirectSum([learned, *self._fixed(x, graph, edge_weight)])

    def learned_weight(self, x: Tensor, graph: Graph, edge_weight: Tensor | None) -> Tensor | None:
        """The weights of the edges with what is learned of them, ``(m,)``."""
        if self.weight_learner is None:
            return edge_weight
        z = torch.sigmoid(self.weight_learner(x.flatten(1), graph).squeeze(1))  # (m,)
        square = (z * self.at_reverse(z, graph)).square()  # both maps of an edge have the factor
        return square if edge_weight is None else square * edge_weight

    def at_reverse(self, values: Tensor, graph: Graph) -> Tensor:
        """For each edge the values ``(m, ...)`` of its reverse."""
        return at_reverse(values, graph)

    def maps(self, x: Tensor, edge_index: Tensor | Graph) -> Tensor:
        """The maps at the target of every edge that x gives rise to.

        ``edge_maps.dense`` makes matrices ``(m, d, d)`` of them. Learned weights are apart.
        """
        if not self.learn_maps:
            raise ValueError("`laplacian` must be given to a layer that learns no maps; got None")
        graph = as_graph(edge_index, x.shape[0])
        if self.map_learner is None:
            return x.new_empty(graph.num_edges, 0)
        if not isinstance(self.map_learner, MixedLearner):
            x = self._summed(x) if self.sparse_learner else x.flatten(1)
        return self.edge_maps.make(self.map_act(self.map_learner(x, graph)))

    def _summed(self, x: Tensor) -> Tensor:
        """What a sparse learner sees: the sum over stalk coordinates of each part, ``(n, ·)``."""
        return x.unflatten(1, (self.parts, -1)).sum(2).flatten(1)

    def _fixed(
        self,
        x: Tensor,
        graph: Graph,
        weight: Tensor | None,
        *,
        turn: Tensor | None = None,
        own: float = 1.0,
    ) -> list[Operator]:
        """The fixed coordinates; relatives multiply edges and diagonal by numbers of their own."""
        degree = weighted_degree(graph, weight).to(x.dtype)
        if weight is None:
            weight = x.new_ones(graph.num_edges)
        weight = weight if turn is None else weight * turn
        fixed: list[Operator] = [
            GraphOperator(graph, own * degree, sign * weight) for sign in self.fixed_signs
        ]
        if self.normalization != "augmented":
            return fixed
        root = BlockDiagonal((degree + 1).rsqrt(), 1)
        return [Product(root, Product(operator, root)) for operator in fixed]

    def _check(self, x: Tensor) -> None:
        d, h = self.parts * self.total_dim, self.channels
        check_shape("x", x, f"(n, {d}, {h})", (None, d, h))

    def __repr__(self) -> str:
        fixed = f" + {len(self.fixed_signs)}" if self.fixed_signs else ""
        return (
            f"{type(self).__name__}({self.channels}, stalk_dim={self.stalk_dim}{fixed}, "
            f"maps={self.edge_maps}, normalization={self.normalization!r})"
        )


def check_undirected_weight(weight: Tensor, graph: Graph) -> Tensor:
    """Weights that are the same in both directions of an edge."""
    partner = undirected_partners(graph)
    if torch.compiler.is_compiling():
        same = torch.isclose(weight.detach(), weight.detach()[partner], rtol=1e-5, atol=0.0)
        torch._assert_async(same.all(), "`edge_weight` must be the same in both directions")
    elif weight.is_cpu:
        given = weight.detach()
        wrong = ~torch.isclose(given, given[partner], rtol=1e-5, atol=0.0)
        if wrong.any():
            e = int(wrong.nonzero()[0])
            u, v = int(graph.source[e]), int(graph.target[e])
            raise ValueError(
                "`edge_weight` must be the same in both directions of an edge; "
                f"got {given[e]:g} for ({u}, {v}) and {given[partner[e]]:g} for ({v}, {u})"
            )
    return weight
