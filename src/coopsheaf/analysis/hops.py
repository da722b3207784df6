"""Distances along the flow of information, and what powers of the adjacency bound."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph, as_graph
from coopsheaf.sheaves.kernels.sparse import sparse_product

FLOWS = {
    "source_to_target": "information goes along the edges, as almost everywhere",
    "target_to_source": "against them, as in the released semantics of CSNN",
}

# Targets that are searched from at the same time.
_TOGETHER = 256

Nodes = int | Sequence[int] | Tensor | None
"""One index, several, or all of them."""


def check_nodes(argument: str, nodes: Nodes, size: int, *, things: str = "nodes") -> Tensor:
    """Indices in ``[0, size)`` as a tensor, ``(k,)``; ``None`` means all of them."""
    if nodes is None:
        return torch.arange(size)
    try:
        tensor = torch.as_tensor(nodes).reshape(-1).cpu()
    except (TypeError, ValueError, RuntimeError):
        tensor = torch.empty(0)
    if tensor.numel() == 0 or tensor.is_floating_point() or tensor.dtype == torch.bool:
        raise ValueError(f"`{argument}` must hold at least one integer index; got {nodes!r}")
    wrong = tensor[(tensor < 0) | (tensor >= size)]
    if wrong.numel():
        raise ValueError(
            f"`{argument}` must hold indices of the {size} {things}, in [0, {size}); "
            f"got {int(wrong[0])}"
        )
    return tensor.long()


def hop_distances(
    edge_index: Tensor | Graph,
    targets: Nodes = None,
    *,
    num_nodes: int | None = None,
    flow: str = "source_to_target",
    max_hops: int | None = None,
) -> Tensor:
    """How many edges information needs from each node to the targets.

    A breadth-first search from all targets at once, one sparse product per hop.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        targets: where information arrives, t nodes; all of them if not given.
        num_nodes: n; the largest index plus one if not given.
        flow: ``"source_to_target"``, or ``"target_to_source"`` for networks that gather at
            ``edge_index[0]`` (CSNN with ``semantics="released"``). The same on bidirected graphs.
        max_hops: stop here; nodes further away count as unreachable.

    Returns:
        ``(t, n)`` integers: the length of the shortest path from j to target i, -1 without a path.
    """
    graph = as_graph(edge_index, num_nodes)
    check_choice("flow", flow, FLOWS)
    nodes = check_nodes("targets", targets, graph.num_nodes)
    limit = graph.num_nodes if max_hops is None else check_int("max_hops", max_hops, minimum=0)
    backwards = graph.reverse() if flow == "source_to_target" else graph
    rows = [_search(backwards, part, limit) for part in nodes.split(_TOGETHER)]
    return torch.cat(rows)


def _search(graph: Graph, starts: Tensor, limit: int) -> Tensor:
    n, t = graph.num_nodes, len(starts)
    distance = torch.full((n, t), -1, device=graph.device)
    distance[starts.to(graph.device), torch.arange(t, device=graph.device)] = 0
    front = distance == 0
    for hop in range(1, limit + 1):
        front = sparse_product(front.float().unsqueeze(1), graph).squeeze(1) > 0
        front &= distance < 0
        if not front.any():
            break
        distance[front] = hop
    return distance.T.contiguous()


def shortest_path(
    edge_index: Tensor | Graph,
    source: int,
    target: int,
    *,
    num_nodes: int | None = None,
    flow: str = "source_to_target",
) -> list[int]:
    """A shortest path along the flow of information, both ends included.

    Of several it is the one that takes the smallest node number at every step.
    """
    graph = as_graph(edge_index, num_nodes)
    start, end = (
        int(check_nodes(name, check_int(name, node, minimum=0), graph.num_nodes))
        for name, node in (("source", source), ("target", target))
    )
    distance = hop_distances(graph, [end], flow=flow)[0]
    if distance[start] < 0:
        raise ValueError(
            f"`target` must be reachable from `source` along the flow of information ({flow}); "
            f"there is no path from {start} to {end}"
        )
    lists = graph.by_source if flow == "source_to_target" else graph.by_target
    path = [start]
    while path[-1] != end:
        here = path[-1]
        others = lists.other[lists.ptr[here] : lists.ptr[here + 1]]
        path.append(int(others[distance[others] == distance[here] - 1].min()))
    return path


def adjacency_bound(
    edge_index: Tensor | Graph,
    num_layers: int,
    *,
    constant: float | Sequence[float] = 1.0,
    residual: float = 0.0,
    targets: Nodes = None,
    num_nodes: int | None = None,
    self_loops: bool = True,
) -> Tensor:
    r"""The bound :math:`\prod_l (r I + c_l \hat A)_{ij}`, for r = 0 and equal constants
    :math:`c^t \hat A^t_{ij}`.

    :math:`\hat A = D^{-1/2} A D^{-1/2}` is the normalised adjacency, :math:`\hat A_{ij}` belonging
    to the edge j → i and D holding in-degrees. The CSNN paper quotes the form with r = 0 from
    Topping et al. (ICLR 2022) and Di Giovanni et al. (ICML 2023).

    What it bounds: the *spectral* norm of :math:`\partial x_i^{(t)} / \partial x_j^{(0)}`, for
    networks whose layers are :math:`X' = r X + \sigma(\hat A X W_l)` with σ elementwise and
    :math:`\operatorname{Lip}(\sigma) \|W_l\|_2 \le c_l`. A Frobenius norm is at most
    :math:`\sqrt{\text{rank}}` times as large. A GCN is such a network. Nothing is claimed for
    networks that do not mix by :math:`\hat A`: attention, sheaf diffusion and CSNN have no such
    constant that is independent of the features, and routing
    (:func:`~coopsheaf.analysis.route`) shows that they need not obey it.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        num_layers: number t of layers.
        constant: c, or one per layer.
        residual: r.
        targets: the rows i wanted; all of them if not given.
        num_nodes: n; the largest index plus one if not given.
        self_loops: give every node exactly one loop, as GCN does; otherwise A is taken as it is.

    Returns:
        ``(targets, n)``, double precision.
    """
    graph = as_graph(edge_index, num_nodes)
    check_int("num_layers", num_layers, minimum=0)
    constants = [constant] * num_layers if isinstance(constant, int | float) else list(constant)
    if len(constants) != num_layers:
        raise ValueError(
            f"`constant` must be a number or one per layer, {num_layers}; got {len(constants)}"
        )
    nodes = check_nodes("targets", targets, graph.num_nodes).to(graph.device)
    if self_loops:
        keep = graph.source != graph.target
        graph = Graph(graph.edge_index[:, keep], graph.num_nodes).with_self_loops()
    degree = graph.in_degree.double()
    root = torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0.0)[:, None]  # (n, 1)
    rows = torch.zeros(graph.num_nodes, len(nodes), dtype=torch.float64, device=graph.device)
    rows[nodes, torch.arange(len(nodes), device=graph.device)] = 1
    backwards = graph.reverse()
    for c in constants:
        step = root * sparse_product((root * rows).unsqueeze(1), backwards).squeeze(1)
        rows = residual * rows + c * step
    return rows.T.contiguous()


def average_by_hop(values: Tensor, distances: Tensor) -> Tensor:
    """The mean of ``(t, n)`` values over all pairs at each distance, ``(K + 1,)``."""
    if values.shape != distances.shape:
        raise ValueError(
            f"`values` must have the shape of `distances`, {tuple(distances.shape)}; "
            f"got {tuple(values.shape)}"
        )
    reached = distances >= 0
    if not reached.any():
        return values.new_zeros(0)
    hops = distances[reached]
    total = values.new_zeros(int(hops.max()) + 1)
    count = total.index_add(0, hops, torch.ones_like(values[reached]))
    return total.index_add(0, hops, values[reached]) / count
