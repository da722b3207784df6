"""The diffusion with a quiver Laplacian: a learned map along every arc."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph, as_weighted_graph
from coopsheaf.sheaves.kernels.stalks import identity_like
from coopsheaf.sheaves.operator import DirectSum, Operator
from coopsheaf.tensor_checks import check_edge_weight
from coopsheaf.zoo.dsnn.directions import both_ways
from coopsheaf.zoo.nsd.conv import NSDConv
from coopsheaf.zoo.nsd.edge_maps import DiagonalMaps, EdgeMaps


class QuiverConv(NSDConv):
    r"""Sheaf diffusion with the Laplacian of a quiver (Sumray, Harrington & Nanda, 2024).

    .. math:: Y = \Delta (I_n \otimes W_1) X W_2, \qquad
              \Delta = (D + I)^{-1/2} B^\top B (D + I)^{-1/2}, \qquad
              (B x)_e = \sqrt{w_e}\, (A_e x_i - x_j)

    where an arc e = i→j carries a learned map :math:`A_e = \operatorname{maps}(\sigma(V [x_j \Vert
    x_i]))` from the stalk of i to that of j, and D is the block diagonal
    :math:`D_i = \sum_{e = i \to j} w_e A_e^\top A_e + \sum_{e = j \to i} w_e I`. Node by node, with
    :math:`\bar X = (I_n \otimes W_1) X W_2` and :math:`\hat x_i = (D_i + I)^{-1/2} \bar x_i`,

    .. math::
        y_i = (D_i + I)^{-1/2} \Bigl( \sum_{e = i \to j} w_e A_e^\top (A_e \hat x_i - \hat x_j)
              + \sum_{e = j \to i} w_e (\hat x_i - A_e \hat x_j) \Bigr).

    Symmetric and positive semi-definite with spectrum in [0, 2], and still it knows which way an
    arc goes, unless its map is orthogonal: then the arc that is turned round with the transposed
    map says the same. It is the Laplacian of an undirected sheaf whose ends have the maps A and I
    (:func:`~coopsheaf.sheaves.quiver_sheaf`). No learning is in the paper: what is learned, and
    how, is that of :class:`~coopsheaf.zoo.nsd.NSDConv`. Loops are arcs as others are.

    Maps belong to arcs: every pass forms 2m blocks of d×d (m·d numbers for diagonal maps).

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks on which maps act.
        maps: A: ``"general"``, ``"diagonal"``, ``"orthogonal"``, ``"identity"``, or an object of
            :mod:`coopsheaf.zoo.nsd.edge_maps`.
        options: as for :class:`~coopsheaf.zoo.nsd.NSDConv`; edges have no learned weights.

    Shapes:
        x ``(n, total_dim, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`; edge_weight
        ``(m,)``. Returns ``(n, total_dim, h)``.
    """

    @arguments_of(NSDConv, without=("learn_weights",))
    def __init__(
        self, channels: int, stalk_dim: int, *, maps: str | EdgeMaps = "general", **options: Any
    ) -> None:
        if options.pop("learn_weights", None):
            raise ValueError("`learn_weights` must be False for arcs; got True")
        super().__init__(channels, stalk_dim, maps=maps, learn_weights=False, **options)

    def laplacian(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None
    ) -> Operator:
        """Δ of the quiver that is learned from x."""
        self._check(x)
        graph, weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        if weight is not None:
            weight = check_edge_weight(weight, graph.num_edges, "x", x).repeat(2)
        along, kind, both = self.maps(x, graph), self.edge_maps, both_ways(graph)
        still = self._identities(along)
        # An arc i→j is heard by j, whose end has the identity, and by i, whose end has A.
        own, other = torch.cat([still, along]), torch.cat([along, still])
        degree = kind.degree(own, both, weight)
        operator = kind.between(own, other, both, weight, degree)
        learned = kind.normalized(operator, degree, both, weight, self.normalization)
        if not self.fixed_signs:
            return learned
        return DirectSum([learned, *self._fixed(x, both, weight)])

    def _identities(self, maps: Tensor) -> Tensor:
        """The identity as often as there are maps, in their form."""
        if isinstance(self.edge_maps, DiagonalMaps):
            return torch.ones_like(maps)
        if maps.dim() < 3:  # all of them are identities, and nothing is stored
            return maps
        return identity_like(maps, self.stalk_dim).expand_as(maps)
