r"""Sheaves that come from something else: quivers, signed graphs, directions as phases.

Each is a :class:`~coopsheaf.Sheaf`, so that its Laplacian is
:func:`~coopsheaf.sheaf_laplacian`: symmetric, positive semi-definite and, normalised, with a
spectrum in [0, 2], whatever the direction of the edges says.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.sheaf import Sheaf, check_kind
from coopsheaf.tensor_checks import check_shape


def quiver_sheaf(
    edge_index: Tensor | Graph,
    maps: Tensor,
    num_nodes: int | None = None,
    *,
    edge_weight: Tensor | None = None,
) -> Sheaf:
    r"""A representation of a quiver (Sumray, Harrington & Nanda, 2024): one map per arc.

    An arc e = i→j carries :math:`A_e` from the stalk of i to that of j. With
    :math:`(Bx)_e = A_e x_i - x_j` the Laplacian is :math:`L = B^\top B`,

    .. math::
        L_{ii} = \sum_{e = i \to j} A_e^\top A_e + \sum_{e = j \to i} I, \qquad
        L_{ij} = -\sum_{e = i \to j} A_e^\top - \sum_{e = j \to i} A_e,

    and, for a loop, :math:`-A_e - A_e^\top` in its diagonal block. It knows directions, unlike the
    Laplacian of a graph, and is symmetric, unlike those of a directed sheaf; its kernel are the
    features with :math:`x_j = A_e x_i` along every arc.

    Args:
        edge_index: ``(2, m)`` arcs, or a :class:`~coopsheaf.Graph`.
        maps: A, ``(m, d, d)``.
        num_nodes: n; the largest index plus one if not given.
        edge_weight: ``(m,)``, not negative.
    """
    graph = as_graph(edge_index, num_nodes)
    m = graph.num_edges
    check_shape("maps", maps, f"(m, d, d) with m = {m}", (m, None, None))
    if maps.shape[1] != maps.shape[2] or maps.shape[1] < 1:
        raise ValueError(
            "`maps` must have shape (m, d, d) with stalk dimension d of at least 1; "
            f"got {tuple(maps.shape)}"
        )
    eye = torch.eye(maps.shape[-1], dtype=maps.dtype, device=maps.device)
    return Sheaf(graph, torch.stack([maps, eye.expand_as(maps)], dim=1), edge_weight=edge_weight)


def signed_sheaf(
    edge_index: Tensor | Graph,
    signs: Tensor,
    stalk_dim: int = 1,
    num_nodes: int | None = None,
    *,
    edge_weight: Tensor | None = None,
) -> Sheaf:
    r"""A signed graph: the ends of an edge agree, :math:`x_u = x_v`, or oppose, :math:`x_u = -x_v`.

    For stalks of dimension 1 its Laplacian is that of the signed graph, and 0 is in its spectrum
    once per component that is balanced.

    Args:
        edge_index: ``(2, m)``, each edge once.
        signs: ``(m,)``, 1 or -1.
        stalk_dim: d.
        num_nodes: n; the largest index plus one if not given.
        edge_weight: ``(m,)``, not negative.
    """
    graph = as_graph(edge_index, num_nodes)
    m, d = graph.num_edges, check_int("stalk_dim", stalk_dim, minimum=1)
    signs = _as_numbers(signs, torch.get_default_dtype())
    check_shape("signs", signs, f"(m,) with m = {m}", (m,))
    odd = (signs.abs() != 1).nonzero().flatten()
    if odd.numel():
        first = int(odd[0])
        raise ValueError(f"`signs` must be 1 or -1; got {signs[first].item():g} for edge {first}")
    ends = torch.stack([torch.ones_like(signs), signs], dim=1)  # (m, 2)
    eye = torch.eye(d, dtype=signs.dtype, device=signs.device)
    return Sheaf(graph, ends[..., None, None] * eye, edge_weight=edge_weight)


def magnetic_sheaf(sheaf: Sheaf, charges: Tensor, q: float | Tensor = 0.25) -> Sheaf:
    r"""A sheaf whose edges turn phases: directions as complex numbers, without complex numbers.

    With :math:`\theta_e = 2 \pi q c_e` for the edge e = (u, v) of charge :math:`c_e`, the complex
    Laplacian of Fiorini et al. (2026) has the blocks

    .. math::
        L_{uu} = \sum_e F_{u \unlhd e}^\top F_{u \unlhd e}, \qquad
        L_{uv} = -F_{u \unlhd e}^\top F_{v \unlhd e}\, e^{i \theta_e}, \qquad
        L_{vu} = \overline{L_{uv}}^\top.

    A complex stalk is a real one of twice the dimension, real parts before imaginary parts, on
    which :math:`e^{i\theta}` is a rotation R(θ): the result is the sheaf with the maps
    :math:`I \otimes F_{u \unlhd e}` and :math:`R(\theta_e) \otimes F_{v \unlhd e}`, and its
    Laplacian is the complex one, written in real numbers. Each eigenvalue occurs twice. q = 0 gives
    two copies of the sheaf; identity maps give the magnetic Laplacian.

    Args:
        sheaf: each pair of neighbours once.
        charges: ``(m,)``: 1 for an arc from the first end to the second, -1 for one back, 0 for
            both, as :func:`fold_directions` gives them.
        q: how far an arc turns, in whole turns; a tensor without axes may be learned.
    """
    check_kind(sheaf, Sheaf)
    maps = sheaf.maps
    charges = _as_numbers(charges, maps.dtype)
    check_shape("charges", charges, f"(m,) with m = {sheaf.num_edges}", (sheaf.num_edges,))
    odd = ((charges.abs() != 1) & (charges != 0)).nonzero().flatten()
    if odd.numel():
        first = int(odd[0])
        raise ValueError(
            f"`charges` must be 1, 0 or -1; got {charges[first].item():g} for edge {first}"
        )
    _refuse_phases_both_ways(sheaf.graph, charges)
    theta = 2 * math.pi * q * charges.to(maps)
    cos, sin = theta.cos()[:, None, None], theta.sin()[:, None, None]
    u, v = maps[:, 0], maps[:, 1]  # (m, d, d)
    zero = torch.zeros_like(u)
    still, turned = _blocks(u, zero, zero, u), _blocks(cos * v, -sin * v, sin * v, cos * v)
    return Sheaf(sheaf.graph, torch.stack([still, turned], dim=1), edge_weight=sheaf.edge_weight)


def _refuse_phases_both_ways(graph: Graph, charges: Tensor) -> None:
    """Two arcs between a pair turn it nowhere: listed one by one, they would turn it twice."""
    n, turned = graph.num_nodes, charges != 0
    there, back = graph.source * n + graph.target, graph.target * n + graph.source
    wrong = (turned & torch.isin(there, back)).nonzero().flatten()
    if wrong.numel():
        e = int(wrong[0])
        u, v = int(graph.source[e]), int(graph.target[e])
        raise ValueError(
            f"`charges` must be 0 where a pair is listed both ways; got {charges[e].item():g} for "
            f"({u}, {v}), beside ({v}, {u}): list each pair once, as fold_directions does"
        )


def _as_numbers(values: Tensor, dtype: torch.dtype) -> Tensor:
    """Whole numbers as floating ones; what is no tensor is left to the check that follows."""
    whole = isinstance(values, Tensor) and not values.is_floating_point()
    return values.to(dtype) if whole else values


def _blocks(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """[[a, b], [c, d]], ``(m, 2d, 2d)``."""
    return torch.cat([torch.cat([a, b], dim=-1), torch.cat([c, d], dim=-1)], dim=-2)


def fold_directions(
    edge_index: Tensor | Graph, num_nodes: int | None = None
) -> tuple[Tensor, Tensor]:
    """Arcs as pairs of neighbours with charges, for :func:`magnetic_sheaf`.

    Args:
        edge_index: ``(2, m)`` arcs without loops; an arc that is listed twice counts once.
        num_nodes: n; the largest index plus one if not given.

    Returns:
        The pairs ``(2, p)``, smaller end first, sorted; and their charges ``(p,)``: 1 if the arc
        goes from the first end to the second, -1 if it goes back, 0 if there are both.
    """
    graph = as_graph(edge_index, num_nodes)
    source, target, n = graph.source, graph.target, graph.num_nodes
    loops = (source == target).nonzero().flatten()
    if loops.numel():
        node = int(source[loops[0]])
        raise ValueError(
            f"`edge_index` must have no loops: they have no phase; got ({node}, {node})"
        )
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    arcs = torch.unique((low * n + high) * 2 + (source > target).long())
    pairs, place = torch.unique(arcs // 2, return_inverse=True)
    sign = 1 - 2 * (arcs % 2)
    charges = torch.zeros_like(pairs).index_add(0, place, sign)
    return torch.stack([pairs // max(n, 1), pairs % max(n, 1)]), charges
