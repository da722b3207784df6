r"""Routing: maps that carry one node's feature to another and nothing else (Proposition 4.3).

A layer is the diffusion alone, weights and activation the identity,

.. math:: X' = (1 + \varepsilon) X - P X,

with P the operator of :mod:`coopsheaf.sheaves.diffusion` and one ε for all nodes. A route hands the
feature on along one edge s → t per layer, all maps zero but two or three, chosen so that row t of P
is zero everywhere but at s and perhaps at t itself. The residual :math:`(1 + \varepsilon) x_t`,
what t had before, has to go as well, or every node of the path arrives along with the source:

* ``residual="forget"``: ε = -1. Then :math:`X' = -PX`, and what arrives at the target depends on
  the source alone *exactly*, zero for zero. A network with :math:`1 + \tanh e` reaches it in the
  limit (and in floating point: tanh(-40) is -1). All other nodes lose what they had.
* ``residual="cancel"``: a third map makes :math:`P_{tt}` a positive multiple p of the identity, and
  ε = p - 1 lies inside (-1, 0), within reach of finite parameters. Then
  :math:`x_t' = -P_{ts} x_s`, the two terms in :math:`x_t` cancelling up to rounding, and every
  other node keeps p times what it had. (Where no edge but loops leaves t, the paper's operator has
  :math:`P_{tt} = 0` and ε is -1 here too.)

Which maps are not zero:

========= ================== =======================================================
semantics residual           maps
========= ================== =======================================================
paper     ``"forget"``       :math:`S_s, T_t`
paper     ``"cancel"``       :math:`S_s, T_t, S_t`
released  ``"forget"``       :math:`S_s, T_t, T_s`; some edge has to lead into s
released  ``"cancel"``       :math:`S_s, T_t, S_t`
messages  ``"forget"``       :math:`S_s, T_t`
========= ================== =======================================================

In the released order the broadcaster's value has to survive the first step. It is the diagonal of
that step that keeps it, which is zero at a node that nothing flows into, whatever its maps. What is
left to link s and t is :math:`S_t \ne 0`, which keeps in the second step what t received in the
first; with it comes :math:`P_{tt} \ne 0`, hence t's own feature, and ε = -1 does not remove that.
So ``"forget"`` refuses such nodes, and ``"cancel"`` does just this.

With ``"messages"`` P has no diagonal, so that nothing cancels the residual of a finite ε, and
``"cancel"`` is refused.

"Exactly one" is a statement on these fixed maps. In a network the maps are learned from features,
which is a second way for information to travel (:func:`~coopsheaf.analysis.frozen_maps`). An
activation σ with σ(0) = 0 changes nothing for ``"forget"`` but the size of what arrives; with
``"cancel"`` it would have to be linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from coopsheaf.analysis.hops import check_nodes, shortest_path
from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.diffusion import SEMANTICS
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.tensor_checks import check_shape

RESIDUALS = {
    "forget": "ε = -1, nodes keep nothing",
    "cancel": "ε > -1 where possible, a term of the diffusion cancels the residual",
}


@dataclass(frozen=True)
class RouteLayer:
    """One layer of a route.

    Args:
        source: the source maps of all nodes.
        target: the target maps of all nodes.
        epsilon: ε itself, in [-1, 0]; a network's parameter is artanh ε.
        gain: the factor by which this layer multiplies what it hands on, before rotations.
    """

    source: ConformalMaps
    target: ConformalMaps
    epsilon: float
    gain: float


@dataclass(frozen=True)
class Route:
    """Maps that carry the feature of ``path[0]`` to ``path[-1]``, one edge per layer."""

    path: tuple[int, ...]
    layers: tuple[RouteLayer, ...]
    semantics: str
    residual: str
    stalk_dim: int

    @property
    def gain(self) -> float:
        """How many times larger the feature arrives: the product of the gains of the layers."""
        product = 1.0
        for layer in self.layers:
            product *= layer.gain
        return product


def route(
    edge_index: Tensor | Graph,
    source: int,
    target: int,
    path: Sequence[int] | None = None,
    *,
    semantics: str = "paper",
    residual: str = "forget",
    stalk_dim: int = 2,
    scale: float = 1.0,
    num_nodes: int | None = None,
) -> Route:
    """Maps and ε for as many layers as the path has edges, which bring one feature to one node.

    After them the target's feature is a multiple of what the source had at the beginning and
    depends on no other node. See :mod:`coopsheaf.analysis.routing` for what is exact, and
    :func:`route_jacobian` for the proof.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`; loops and parallel edges may be
            there, and edges need not go both ways.
        source: whose feature is sent.
        target: where it has to arrive.
        path: nodes from source to target, each reached from the one before by an edge along the
            flow of information (against the edges in the released semantics); may visit a node
            again, but not stay. A shortest path if not given.
        semantics: ``"paper"``, ``"released"`` or ``"messages"``
            (:mod:`coopsheaf.sheaves.diffusion`).
        residual: ``"forget"`` or ``"cancel"``; with ``"messages"`` only the first.
        stalk_dim: dimension d of the stalks.
        scale: of the maps that are not zero; larger ones carry more. (With ``"cancel"`` those of
            the receiving node are cut where ε would leave its range.) All matrices are the
            identity times scales: any other conformal maps of these scales would route as well,
            rotating what they carry.
        num_nodes: n; the largest index plus one if not given.
    """
    graph = as_graph(edge_index, num_nodes)
    check_choice("semantics", semantics, SEMANTICS)
    check_choice("residual", residual, RESIDUALS)
    if (semantics, residual) not in _BUILD:
        raise ValueError(
            f"`residual` must be 'forget' with semantics {semantics!r}: its operator has no "
            f"diagonal that could cancel what a node keeps; got {residual!r}"
        )
    check_int("stalk_dim", stalk_dim, minimum=1)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < 1e6:
        raise ValueError(f"`scale` must be a number in (0, 1e6); got {scale!r}")
    flow = graph.reverse() if semantics == "released" else graph
    if path is None:
        path = shortest_path(flow, source, target)
    else:
        path = _check_path(flow, source, target, path)
    build = _BUILD[semantics, residual]
    layers = tuple(build(flow, s, t, stalk_dim, float(scale)) for s, t in pairwise(path))
    return Route(tuple(path), layers, semantics, residual, stalk_dim)


def apply_route(route: Route, edge_index: Tensor | Graph, x: Tensor) -> Tensor:
    """Run the layers of a route on features x ``(n, d, h)``."""
    d = route.stalk_dim
    check_shape("x", x, f"(n, {d}, h)", (None, d, None))
    graph = as_graph(edge_index, x.shape[0])
    diffusion = SEMANTICS[route.semantics]
    for layer in route.layers:
        if len(layer.source.scale) != graph.num_nodes:
            raise ValueError(
                f"`edge_index` must be the graph of {len(layer.source.scale)} nodes that the route "
                f"was made for; got {graph.num_nodes} nodes"
            )
        source, target = (
            ConformalMaps(maps.scale.to(x), maps.orthogonal.to(x))
            for maps in (layer.source, layer.target)
        )
        x = (1 + layer.epsilon) * x - diffusion(graph, source, target, None).mv(x)
    return x


def route_jacobian(
    route: Route, edge_index: Tensor | Graph, *, num_nodes: int | None = None
) -> Tensor:
    """How the target's last feature depends on every node's first one, ``(n, d, d)``.

    Block j is ∂ x_target / ∂ x_j, from running the diffusion and differentiating it.
    """
    graph = as_graph(edge_index, num_nodes)
    n, d = graph.num_nodes, route.stalk_dim
    x = torch.zeros(n, d, 1, dtype=torch.float64, device=graph.device, requires_grad=True)
    with torch.enable_grad():
        arrived = apply_route(route, graph, x)[route.path[-1], :, 0]
        rows = [torch.autograd.grad(value, x, retain_graph=True)[0] for value in arrived]
    return torch.stack(rows, dim=1).squeeze(-1)


@dataclass(frozen=True)
class RouteCheck:
    """What a route delivers.

    Args:
        norms: ``(n,)``, Frobenius norms of ∂ x_target / ∂ x_j.
        delivered: that of the source.
        leaked: the largest of all others.
    """

    norms: Tensor
    delivered: float
    leaked: float

    @property
    def exact(self) -> bool:
        """Whether something arrives from the source and nothing at all from the others."""
        return self.delivered > 0 and self.leaked == 0


def verify_route(
    route: Route, edge_index: Tensor | Graph, *, num_nodes: int | None = None
) -> RouteCheck:
    """Differentiate through a route and see who arrives."""
    norms = route_jacobian(route, edge_index, num_nodes=num_nodes).norm(dim=(1, 2))
    others = norms.clone()
    others[route.path[0]] = 0
    return RouteCheck(norms, float(norms[route.path[0]]), float(others.max()))


def _check_path(flow: Graph, source: int, target: int, path: Sequence[int]) -> list[int]:
    nodes: list[int] = check_nodes("path", path, flow.num_nodes).tolist()
    if nodes[0] != source or nodes[-1] != target:
        raise ValueError(
            f"`path` must lead from source {source} to target {target}; "
            f"got one from {nodes[0]} to {nodes[-1]}"
        )
    for s, t in pairwise(nodes):
        if s == t:
            raise ValueError(f"`path` must go on at every step; got {s} twice in a row")
        if _edges(flow, s, t) == 0:
            raise ValueError(
                "`path` must follow edges along the flow of information; "
                f"nothing flows from {s} to {t}"
            )
    return nodes


def _edges(flow: Graph, s: int, t: int) -> int:
    """How many edges lead from s to t."""
    lists = flow.by_target
    return int((lists.other[lists.ptr[t] : lists.ptr[t + 1]] == s).sum())


def _maps(flow: Graph, stalk_dim: int, scales: dict[int, float]) -> ConformalMaps:
    scale = torch.zeros(flow.num_nodes, dtype=torch.float64, device=flow.device)
    for node, value in scales.items():
        scale[node] = value
    eye = torch.eye(stalk_dim, dtype=torch.float64, device=flow.device)
    return ConformalMaps(scale, eye.repeat(flow.num_nodes, 1, 1))


# In the five constructions below `flow` is the graph along which information goes, c = scale,
# μ the number of edges s → t and λ that of loops. Degrees count loops.


def _paper_forget(flow: Graph, s: int, t: int, d: int, c: float) -> RouteLayer:
    # S_s and T_t: Δ_out has the blocks (s, s), (t, s) and Δ_inᵀ the blocks (t, t), (t, s).
    a, b = c * c * int(flow.in_degree[t]), c * c * int(flow.out_degree[s])
    gain = a / (a + 1) * (b + 1) ** -0.5 + b / (b + 1) * (a + 1) ** -0.5
    source, target = _maps(flow, d, {s: c}), _maps(flow, d, {t: c})
    return RouteLayer(source, target, -1.0, _edges(flow, s, t) * c * c * gain)


def _paper_cancel(flow: Graph, s: int, t: int, d: int, c: float) -> RouteLayer:
    # S_t adds the block (t, t) to Δ_out. A loop at t turns up in both diagonals; with equal scales
    # at t they stay non-negative.
    a, b = c * c * int(flow.in_degree[t]), c * c * int(flow.out_degree[s])
    own, loops = c * c * int(flow.out_degree[t]), c * c * _edges(flow, t, t)
    heard, said = (a - loops) / (a + 1), (own - loops) / (own + 1)
    # s has no target map, so that a loop there stays silent.
    gain = heard * ((own + 1) * (b + 1)) ** -0.5 + b / (b + 1) * (a + 1) ** -0.5
    source, target = _maps(flow, d, {s: c, t: c}), _maps(flow, d, {t: c})
    return RouteLayer(source, target, heard * said - 1, _edges(flow, s, t) * c * c * gain)


def _released_forget(flow: Graph, s: int, t: int, d: int, c: float) -> RouteLayer:
    # The first step keeps x_s by its diagonal at s, the second hands it on.
    a = c * c * int(flow.in_degree[s])
    if a == 0:
        raise ValueError(
            "`residual` must be 'cancel' to route through a node that nothing flows into, in the "
            "released semantics: the diagonal that keeps its feature in the first step is zero, "
            f"whatever its maps; got 'forget' and node {s}, which is edge_index[0] of no edge"
        )
    # A loop at s hands x_s to s itself in that step. A smaller S_s leaves some of the diagonal.
    loops = _edges(flow, s, s)
    said = c / 2 if loops == int(flow.in_degree[s]) else c
    b = said * said * int(flow.out_degree[s])
    kept = (a - loops * c * said) / (a + 1)
    source, target = _maps(flow, d, {s: said}), _maps(flow, d, {s: c, t: c})
    gain = _edges(flow, s, t) * c * said * kept * (b + 1) ** -0.5
    return RouteLayer(source, target, -1.0, gain)


def _released_cancel(flow: Graph, s: int, t: int, d: int, c: float) -> RouteLayer:
    # The first step brings x_s to t, the second keeps it by its diagonal at t. That diagonal is
    # summed over edges into t but divided by the count of those out of it: cut c to bound it.
    into, out = int(flow.in_degree[t]), int(flow.out_degree[t])
    at = min(c, into**-0.5)
    a, loops = at * at * into, at * at * _edges(flow, t, t)
    heard, kept = (a - loops) / (a + 1), (a - loops) / (at * at * out + 1)
    source, target = _maps(flow, d, {s: c, t: at}), _maps(flow, d, {t: at})
    # s has no target map: its root in the first step is 1.
    gain = _edges(flow, s, t) * c * at * kept * (a + 1) ** -0.5
    return RouteLayer(source, target, heard * kept - 1, gain)


def _messages_forget(flow: Graph, s: int, t: int, d: int, c: float) -> RouteLayer:
    # S_s and T_t: the block (t, s) is all there is. t has no source map: its root is 1.
    gain = (c * c * int(flow.out_degree[s]) + 1) ** -0.5
    source, target = _maps(flow, d, {s: c}), _maps(flow, d, {t: c})
    return RouteLayer(source, target, -1.0, _edges(flow, s, t) * c * c * gain)


_BUILD = {
    ("paper", "forget"): _paper_forget,
    ("paper", "cancel"): _paper_cancel,
    ("released", "forget"): _released_forget,
    ("released", "cancel"): _released_cancel,
    ("messages", "forget"): _messages_forget,
}
