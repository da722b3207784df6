"""Nonlinear sheaf diffusion: the layer of NSD with a function on the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice
from coopsheaf.models.arguments import arguments_of
from coopsheaf.sheaves.coboundaries import Coboundary
from coopsheaf.sheaves.graph import Graph, as_weighted_graph
from coopsheaf.sheaves.nonlinear import BoundedConfidence, Phi, odd_part
from coopsheaf.sheaves.operator import Operator, Product
from coopsheaf.tensor_checks import check_edge_weight
from coopsheaf.zoo.nsd.conv import NSDConv, check_undirected_weight
from coopsheaf.zoo.nsd.edge_maps import at_reverse, undirected_partners


class OddPerceptron(nn.Module):
    r"""φ as the odd part of a perceptron, shared by all edges.

    .. math:: \varphi(y) = \tfrac12 (f(y) - f(-y)), \qquad
              f(y) = W_2 \operatorname{LeakyReLU}(W_1 y + b)

    on the d·h numbers of an edge. Odd, so that it does not matter which end comes first. The bias
    is what bends it: the odd part of a leaky ReLU is linear. A second bias would cancel.

    Args:
        width: d·h.

    Shapes:
        y ``(m, d, h)``; returns ``(m, d, h)``.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width, bias=False)
        self.act = nn.LeakyReLU(0.01)

    def reset_parameters(self) -> None:
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, y: Tensor) -> Tensor:
        # W₂ is linear: the odd part is taken before it.
        bent = odd_part(lambda flat: self.act(self.first(flat)))(y.flatten(1))
        return self.second(bent).view_as(y)


PHIS: dict[str, Callable[[int, float], Phi]] = {
    "mlp": lambda width, threshold: OddPerceptron(width),
    "bounded-confidence": lambda width, threshold: BoundedConfidence(threshold),
    "identity": lambda width, threshold: nn.Identity(),
}


class NLSDConv(NSDConv):
    r"""The nonlinear sheaf diffusion of Zaghen et al. (2024; Hansen & Ghrist, 2021).

    .. math:: Y = \Delta^\varphi\bigl((I_n \otimes W_1) X W_2\bigr), \qquad
              \Delta^\varphi(X) = R\, \delta^\top \varphi(\delta R X), \qquad R = (D + I)^{-1/2}

    with the maps, weights and D of :class:`~coopsheaf.zoo.nsd.NSDConv`. Node by node, with
    :math:`\hat X = R (I_n \otimes W_1) X W_2`,

    .. math::
        y_i = R_i \sum_{e = j \to i} \sqrt{w_e}\, F_e^\top\,
              \varphi\bigl(\sqrt{w_e}\,(F_e \hat x_i - F_{\bar e} \hat x_j)\bigr).

    R is outside of φ. φ is odd, so it is computed once for each pair of neighbours, and φ = id
    gives :class:`~coopsheaf.zoo.nsd.NSDConv`. If φ is the gradient of a convex function, its sum
    over the edges does not increase along small steps.

    φ sees every edge by itself: tensors of size edges × stalk × channels cannot be helped.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        phi: ``"mlp"``, :class:`OddPerceptron`; ``"bounded-confidence"``,
            :class:`~coopsheaf.sheaves.BoundedConfidence`; ``"identity"``; or any odd function from
            ``(m, d, h)`` to ``(m, d, h)``.
        threshold: of bounded confidence: ends that differ by more do not hear each other.
        options: as for :class:`~coopsheaf.zoo.nsd.NSDConv`, without fixed coordinates.

    Shapes:
        x ``(n, d, h)``; edge_index ``(2, m)`` or a :class:`~coopsheaf.Graph`, every edge both ways
        and no self-loop; edge_weight ``(m,)``, the same both ways. Returns ``(n, d, h)``.
    """

    @arguments_of(NSDConv, without=("add_lp", "add_hp"))
    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        phi: str | Phi = "mlp",
        threshold: float = 1.0,
        **options: Any,
    ) -> None:
        if options.get("add_lp") or options.get("add_hp"):
            raise ValueError("`add_lp` and `add_hp` must be False: φ has no fixed coordinates")
        super().__init__(channels, stalk_dim, **options)
        if isinstance(phi, str):
            phi = check_choice("phi", phi, PHIS)(stalk_dim * channels, threshold)
        self.phi = phi
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As NSD's layer; φ as its linear layers are drawn."""
        super().reset_parameters()
        phi: object = getattr(self, "phi", None)  # while the base is built there is none
        if isinstance(phi, OddPerceptron):
            phi.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        edge_weight: Tensor | None = None,
        *,
        laplacian: Operator | None = None,
    ) -> Tensor:
        """The diffusion of x on the sheaf learned from x, or with what :meth:`laplacian` gave."""
        self._check(x)
        if laplacian is not None and edge_weight is not None:
            raise ValueError("`edge_weight` must be None with a `laplacian`, which has its own")
        if laplacian is None:
            laplacian = self.laplacian(x, edge_index, edge_weight)
        return laplacian.T.mv(self.phi(laplacian.mv(self.mix(x))))

    def laplacian(
        self, x: Tensor, edge_index: Tensor | Graph, edge_weight: Tensor | None = None
    ) -> Operator:
        r"""The root :math:`\delta R` of the linear Laplacian; φ is between it and its transpose.

        From nodes to pairs of neighbours, ``(n, d)`` to ``(m / 2, d)``.
        """
        self._check(x)
        graph, edge_weight = as_weighted_graph(edge_index, x.shape[0], edge_weight)
        if edge_weight is not None:
            edge_weight = check_undirected_weight(
                check_edge_weight(edge_weight, graph.num_edges, "x", x), graph
            )
        maps, weight = self.maps(x, graph), self.learned_weight(x, graph, edge_weight)
        kind, once = self.edge_maps, pairs_once(graph)
        degree = kind.degree(maps, graph, weight)
        root = kind.root(degree, graph, weight, self.normalization)
        here = kind.dense(maps.index_select(0, once))  # (m / 2, d, d), at the targets
        back = kind.dense(at_reverse(maps, graph).index_select(0, once))
        if weight is not None:
            weight = weight.index_select(0, once)
        ends = graph.remember("pairs once, as a graph", _pair_graph)
        delta = Coboundary(ends, torch.stack([back, here], dim=1), weight)
        return delta if root is None else Product(delta, root)


def pairs_once(graph: Graph) -> Tensor:
    """One of the two directions of each edge, the one to the larger number, ``(m / 2,)``."""
    return graph.remember("pairs once", _pairs_once)


def _pairs_once(graph: Graph) -> Tensor:
    undirected_partners(graph)  # so half of the edges go to the larger number
    back = (graph.source > graph.target).to(torch.uint8)
    return torch.sort(back, stable=True).indices[: graph.num_edges // 2]


def _pair_graph(graph: Graph) -> Graph:
    return Graph(graph.edge_index[:, _pairs_once(graph)], graph.num_nodes)
