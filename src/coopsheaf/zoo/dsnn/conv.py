"""The diffusion of a Directed Sheaf Neural Network: directions as phases, in real numbers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph, as_weighted_graph
from coopsheaf.sheaves.operator import Complex, DirectSum, Operator
from coopsheaf.tensor_checks import check_edge_weight
from coopsheaf.zoo.dsnn.directions import directions
from coopsheaf.zoo.nsd.conv import NSDConv

LEARNED_Q = 0.25  # a learned q stays between 0 and this


class DSNNConv(NSDConv):
    r"""The directed sheaf diffusion of Fiorini et al. (ICLR 2026).

    .. math:: Y = \Delta (I_n \otimes W_1) X W_2, \qquad
              \Delta = (D + I)^{-1/2} L (D + I)^{-1/2}

    on complex features, where L has the blocks

    .. math::
        L_{ii} = \sum_{j} F_{ij}^\top F_{ij}, \qquad
        L_{ij} = -F_{ij}^\top F_{ji}\, e^{2 \pi i q (A_{ij} - A_{ji})},

    one pair of maps for every pair of neighbours, whichever way arcs go between them, and a phase
    where they go one way only: :math:`A_{ij}` is 1 if i points to j. Δ is Hermitian with spectrum
    in [0, 2]. q = 0, or a graph that holds every edge both ways, gives
    :class:`~coopsheaf.zoo.nsd.NSDConv` on real and imaginary parts; identity maps give the magnetic
    Laplacian; turning all arcs round conjugates Δ.

    Features hold real parts before imaginary parts, :math:`e^{i\theta}` is a rotation of the two,
    and there is no complex tensor: Δ is a :class:`~coopsheaf.sheaves.operator.Complex` of two real
    operators, whose edges have the factors cos θ and sin θ. Maps are real and learned from both
    parts of both ends; W₁ and W₂ are real and act on both parts.

    Maps belong to edges: every pass forms 2m blocks of d×d (m·d numbers for diagonal maps), as many
    edges as the list has arcs, both ways. A list that holds every edge both ways is read twice as
    often as it need be: there NSD computes the same.

    Differences from the authors' released code are those of :class:`~coopsheaf.zoo.nsd.NSDConv`,
    and: an option there leaves the diagonal out of L, which makes it indefinite; it is not here.
    Edges of weights :math:`w` are not known there: here a pair of neighbours has the mean of
    the weights of its arcs.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the complex stalks on which maps act.
        q: how far an arc turns, in whole turns: 0 ≤ q ≤ 1.
        learn_q: learn q, one per layer, from this start; it is kept between 0 and ¼.
        separate_weights: W₁ and W₂ of their own for imaginary parts.
        options: as for :class:`~coopsheaf.zoo.nsd.NSDConv`; ``sparse_reading`` is ``"summed"``.

    Shapes:
        x ``(n, 2·total_dim, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, no
        self-loop; edge_weight ``(m,)``. Returns ``(n, 2·total_dim, h)``.
    """

    parts = 2

    @arguments_of(NSDConv, without=("sparse_reading",))
    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        q: float = 0.25,
        learn_q: bool = False,
        separate_weights: bool = False,
        **options: Any,
    ) -> None:
        if options.get("sparse_reading", "summed") != "summed":
            raise ValueError(
                "`sparse_reading` must be 'summed': what the other reading mixes is not known of "
                f"complex features; got {options['sparse_reading']!r}"
            )
        most = LEARNED_Q if learn_q else 1.0
        if not 0 <= q <= most:
            learned = " where it is learned" if learn_q else ""
            raise ValueError(f"`q` must be between 0 and {most:g}{learned}; got {q}")
        super().__init__(channels, stalk_dim, **options)
        self.start_q, self.separate_weights = float(q), separate_weights
        self.q: nn.Parameter | float = nn.Parameter(torch.empty(())) if learn_q else self.start_q
        left, right = (self.left, self.right) if separate_weights else (None, None)
        d, h = self.total_dim, self.channels
        self.imaginary_left = None if left is None else nn.Linear(d, d, bias=False)
        self.imaginary_right = None if right is None else nn.Linear(h, h, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As NSD's layer; weights of imaginary parts likewise, and a learned q at its start."""
        super().reset_parameters()
        if not hasattr(self, "imaginary_right"):
            return  # the base is being built
        if self.imaginary_left is not None:
            nn.init.eye_(self.imaginary_left.weight)
        if self.imaginary_right is not None:
            nn.init.orthogonal_(self.imaginary_right.weight)
        if isinstance(self.q, nn.Parameter):
            nn.init.constant_(self.q, self.start_q)

    def mix(self, x: Tensor) -> Tensor:
        if not self.separate_weights:
            return super().mix(x.unflatten(1, (2, -1))).flatten(1, 2)
        real, imaginary = x.chunk(2, dim=1)  # (n, d, h) each
        if self.imaginary_left is not None:
            imaginary = self.imaginary_left.weight @ imaginary
        if self.imaginary_right is not None:
            imaginary = self.imaginary_right(imaginary)
        return torch.cat([super().mix(real), imaginary], dim=1)

    def laplacian(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None
    ) -> Operator:
        """Δ of the sheaf that is learned from x, on real and imaginary parts."""
        self._check(x)
        graph, edge_weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        both, charges, counts = directions(graph)
        given = counts.to(x.dtype).reciprocal()
        if edge_weight is not None:
            edge_weight = check_edge_weight(edge_weight, graph.num_edges, "x", x)
            given = given * edge_weight.repeat(2)
        maps, weight = self.maps(x, both), self.learned_weight(x, both, given)
        assert weight is not None, "every edge has its share"
        theta = 2 * math.pi * self.turn() * charges.to(maps.dtype)
        kind, back = self.edge_maps, self.at_reverse(maps, both)
        degree = kind.degree(maps, both, weight)

        def part(turn: Tensor, own: float) -> Operator:
            learned = kind.between(maps, back, both, weight * turn, own * degree)
            learned = kind.normalized(learned, degree, both, weight, self.normalization)
            if not self.fixed_signs:
                return learned
            return DirectSum([learned, *self._fixed(x, both, given, turn=turn, own=own)])

        return Complex(part(theta.cos(), 1.0), part(theta.sin(), 0.0))

    def at_reverse(self, values: Tensor, graph: Graph) -> Tensor:
        # The arcs, then the arcs turned round.
        return values.unflatten(0, (2, graph.num_edges // 2)).flip(0).flatten(0, 1)

    def turn(self) -> float | Tensor:
        """q, between its bounds."""
        return self.q.clamp(0.0, LEARNED_Q) if isinstance(self.q, Tensor) else self.q
