"""The diffusion on a connection that is known: the layer of NSD, whose maps are given."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.graph import Graph, as_weighted_graph
from coopsheaf.sheaves.kernels.stalks import identity_like
from coopsheaf.sheaves.laplacian import weighted_degree
from coopsheaf.sheaves.operator import DirectSum, Operator
from coopsheaf.tensor_checks import check_edge_weight, check_shape
from coopsheaf.zoo.nsd.conv import NSDConv, check_undirected_weight
from coopsheaf.zoo.nsd.edge_maps import EdgeMaps, undirected_partners


class ConnectionMaps(EdgeMaps):
    """Orthogonal maps that nobody learns: D is a number per node."""

    @property
    def num_parameters(self) -> int:
        return 0

    def dense(self, maps: Tensor) -> Tensor:
        return maps

    def degree(self, maps: Tensor, graph: Graph, weight: Tensor | None) -> Tensor:
        return weighted_degree(graph, weight).to(maps.dtype)


class ConnectionConv(NSDConv):
    r"""The sheaf diffusion of Barbero et al. (2022), on a connection that is given.

    .. math:: Y = \Delta (I_n \otimes W_1) X W_2, \qquad
              y_i = \sum_{e = j \to i} w_e \Bigl( \frac{\bar x_i}{D_i + 1}
              - \frac{O_{ij}\, \bar x_j}{\sqrt{(D_i + 1)(D_j + 1)}} \Bigr)

    with :math:`\bar X = (I_n \otimes W_1) X W_2`, orthogonal :math:`O_{ij} = O_{ji}^\top` and
    :math:`D_i = \sum_e w_e`. Maps belong to edges: a block of d×d for each of them.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks on which maps act.
        options: ``add_lp``, ``add_hp``, ``normalization`` (``"augmented"`` or ``None``),
            ``left_weights`` and ``right_weights`` of :class:`~coopsheaf.zoo.nsd.NSDConv`.

    Shapes:
        x ``(n, total_dim, h)``; returns ``(n, total_dim, h)``.
    """

    @arguments_of(
        NSDConv,
        without=(
            "maps",
            "map_act",
            "sparse_learner",
            "sparse_reading",
            "learn_weights",
            "learn_maps",
        ),
    )
    def __init__(self, channels: int, stalk_dim: int, **options: Any) -> None:
        super().__init__(channels, stalk_dim, **{"maps": ConnectionMaps(stalk_dim)} | options)

    def connect(
        self,
        transports: Tensor,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
    ) -> Operator:
        """Δ of a connection.

        Args:
            transports: ``(m, d, d)``, for e = j→i the map :math:`O_{ij}`.
            x: ``(n, total_dim, h)``, for its dtype.
            edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`, every edge both ways and no
                self-loop.
            edge_weight: ``(m,)``, the same both ways.
        """
        graph, weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        m, d = graph.num_edges, self.stalk_dim
        check_shape("transports", transports, f"(m, {d}, {d}), one map per edge", (m, d, d))
        undirected_partners(graph)
        if weight is not None:
            weight = check_edge_weight(weight, m, "x", x)
            weight = check_undirected_weight(weight, graph)
        kind, eye = self.edge_maps, identity_like(transports, d).expand_as(transports)
        degree = kind.degree(transports, graph, weight)
        operator = kind.between(eye, transports, graph, weight, degree)
        known = kind.normalized(operator, degree, graph, weight, self.normalization)
        if not self.fixed_signs:
            return known
        return DirectSum([known, *self._fixed(x, graph, weight)])

    def laplacian(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None
    ) -> Operator:
        """Refused: nothing is learned from the features of a layer."""
        raise ValueError("`laplacian` must be given to a layer that learns no maps; got None")
