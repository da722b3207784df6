"""Layers with two maps per arc: the one with which it is heard, the one with which it is sent."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import weighted_degree
from coopsheaf.sheaves.operator import Operator
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner
from coopsheaf.zoo.nsd.edge_maps import DiagonalMaps, EdgeMaps, make_maps

OPERATORS = {
    "adjacency": "what arcs carry, without a diagonal",
    "laplacian": "its difference from the node's own features",
}


class ArcLearner(EdgeLearner):
    r""":math:`z_e = V [x_i \,\Vert\, x_j] + b`: an ``EdgeLearner`` with a bias.

    It starts as linear layers do, times :math:`1 / \sqrt 2`.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.lin = nn.Linear(2 * in_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin.reset_parameters()
        with torch.no_grad():
            for parameter in self.lin.parameters():
                parameter.mul_(1 / math.sqrt(2))

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        z = super().forward(x, graph)
        return z + self.lin.bias.to(z.dtype)


class ArcConv(nn.Module):
    r"""What a node hears along arcs that have two maps each (Bourgerie et al., 2026).

    For e = j→i, with :math:`T_e = \operatorname{maps}(\tanh(V [x_i \Vert x_j] + b))` at the node
    that hears and :math:`S_e`, likewise with weights of its own, at the one that is heard,

    .. math::
        m_i = \sum_{e = j \to i} \frac{w_e}{\sqrt{d_i d_j}}\, T_e^\top S_e x_j
        \qquad\text{or}\qquad
        m_i = \sum_{e = j \to i} \frac{w_e}{\sqrt{d_i d_j}}\, T_e^\top (T_e x_i - S_e x_j),

    the adjacency and the Laplacian. :math:`d_i` counts the arcs into i, :math:`d_j` those out of j,
    by their weights w; that the Laplacian has the same factor is our reading. With identity maps
    the first is the symmetrically normalised adjacency matrix, without loops. Neither is
    symmetric, also where every edge is there both ways.

    Maps belong to arcs: a pass forms m blocks of d×d (m·d numbers for diagonal maps).

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        maps: ``"general"``, ``"orthogonal"``, ``"diagonal"``, ``"identity"``, or an object of
            :mod:`coopsheaf.zoo.nsd.edge_maps`.
        operator: ``"adjacency"`` or ``"laplacian"``.

    Shapes:
        x ``(n, d, h)``; graph of n nodes and m arcs; edge_weight ``(m,)``. Returns ``(n, d, h)``.
    """

    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        maps: str | EdgeMaps = "general",
        operator: str = "adjacency",
    ) -> None:
        super().__init__()
        self.channels = check_int("channels", channels, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.edge_maps = make_maps(maps, stalk_dim)
        check_choice("operator", operator, OPERATORS)
        self.kind = operator
        width, numbers = stalk_dim * channels, self.edge_maps.num_parameters
        self.map_learner = ArcLearner(width, numbers) if numbers else None
        self.sender_learner = ArcLearner(width, numbers) if numbers else None

    def reset_parameters(self) -> None:
        for learner in (self.map_learner, self.sender_learner):
            if learner is not None:
                learner.reset_parameters()

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        return self.operator(x, graph, edge_weight).mv(x)

    def operator(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Operator:
        """The operator that x gives rise to."""
        maps, weight = self.edge_maps, _normalized_weight(x, graph, edge_weight)
        here, there = self.maps(x, graph)
        if self.kind == "laplacian":
            degree = maps.degree(here, graph, weight)
            return maps.between(here, there, graph, weight, degree)
        size = (graph.num_nodes, self.stalk_dim)[: 1 + isinstance(maps, DiagonalMaps)]
        return maps.between(here, there, graph, -weight, weight.new_zeros(size))

    def maps(self, x: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """T and S of every arc."""
        if self.map_learner is None or self.sender_learner is None:
            none = x.new_empty(graph.num_edges, 0)
            return none, none
        flat, make = x.flatten(1), self.edge_maps.make
        here = make(torch.tanh(self.map_learner(flat, graph)))
        return here, make(torch.tanh(self.sender_learner(flat, graph)))

    def __repr__(self) -> str:
        return (
            f"ArcConv({self.channels}, stalk_dim={self.stalk_dim}, maps={self.edge_maps}, "
            f"operator={self.kind!r})"
        )


class DNSDLayer(nn.Module):
    r"""A layer of Deep Neural Sheaf Diffusion.

    .. math::
        x_i' = \operatorname{LayerNorm}\bigl((1 + \varepsilon) \odot x_i
               - g_i \odot \sigma(W_1 m_i W_2)\bigr), \qquad
        g_i = \operatorname{sigmoid}([x_i \,\Vert\, m_i]\, a + b)

    with m of :class:`ArcConv`, ε per stalk coordinate, a gate g per node and stalk coordinate, and
    the norm over all d·h numbers of a node. :math:`W_1` and :math:`W_2` start near the identity,
    gates at ½, ε at 0.

    Args:
        channels: number h of channels.
        stalk_dim: dimension d of the stalks.
        maps, operator: as for :class:`ArcConv`.
        act: σ.
        gate: learn g; 1 otherwise.

    Shapes:
        x ``(n, d, h)``; graph of n nodes and m arcs; edge_weight ``(m,)``. Returns ``(n, d, h)``.
    """

    def __init__(
        self,
        channels: int,
        stalk_dim: int,
        *,
        maps: str | EdgeMaps = "general",
        operator: str = "adjacency",
        act: Callable[[Tensor], Tensor] = torch.tanh,
        gate: bool = True,
    ) -> None:
        super().__init__()
        self.conv = ArcConv(channels, stalk_dim, maps=maps, operator=operator)
        self.act = act
        self.left = nn.Linear(stalk_dim, stalk_dim, bias=False)  # its weight is W₁
        self.right = nn.Linear(channels, channels, bias=False)  # its weight is W₂ᵀ
        self.epsilon = nn.Parameter(torch.empty(stalk_dim, 1))
        self.gate = nn.Linear(2 * channels, 1) if gate else None
        self.norm = nn.LayerNorm(stalk_dim * channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.conv.reset_parameters()
        self.norm.reset_parameters()
        nn.init.zeros_(self.epsilon)
        with torch.no_grad():
            for linear in (self.left, self.right):
                nn.init.normal_(linear.weight, std=0.01)
                linear.weight.diagonal().add_(1.0)
        if self.gate is not None:
            nn.init.zeros_(self.gate.weight)
            nn.init.zeros_(self.gate.bias)

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None) -> Tensor:
        heard = self.conv(x, graph, edge_weight)  # (n, d, h)
        push = self.act(self.left.weight @ self.right(heard))
        if self.gate is not None:
            push = torch.sigmoid(self.gate(torch.cat([x, heard], dim=2))) * push
        x = (1 + self.epsilon) * x - push
        return self.norm(x.flatten(1)).view_as(x)

    def __repr__(self) -> str:
        return f"DNSDLayer({self.conv}, gate={self.gate is not None})"


def _normalized_weight(x: Tensor, graph: Graph, edge_weight: Tensor | None) -> Tensor:
    """w / √(d_i d_j) of every arc j→i, ``(m,)``."""
    heard = _inverse_root(weighted_degree(graph, edge_weight).to(x.dtype))
    sent = _inverse_root(weighted_degree(graph.reverse(), edge_weight).to(x.dtype))
    factor = heard.index_select(0, graph.target) * sent.index_select(0, graph.source)
    return factor if edge_weight is None else factor * edge_weight


def _inverse_root(degree: Tensor) -> Tensor:
    """d^-1/2, and 0 for 0, with derivatives that are finite."""
    known = degree > 0
    return torch.where(known, degree, 1.0).rsqrt() * known
