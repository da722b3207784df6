"""Cellular sheaves on graphs: a graph and its restriction maps, validated once, immutable."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coopsheaf.sheaves.base import BaseSheaf
from coopsheaf.sheaves.draws import Draw
from coopsheaf.sheaves.graph import Graph, as_graph, missing_reverse
from coopsheaf.sheaves.maps import ConformalMaps, NodeMaps, dense_maps
from coopsheaf.tensor_checks import check_edge_weight, check_same, check_shape

if TYPE_CHECKING:
    from typing_extensions import Self


class Sheaf(BaseSheaf):
    r"""A cellular sheaf on an undirected graph.

    Each edge e is listed once; which of its ends comes first does not matter. ``maps[e, 0]`` is
    the restriction map :math:`F_{u \unlhd e}` of its end ``u = edge_index[0, e]`` and
    ``maps[e, 1]`` that of its end ``v = edge_index[1, e]``. A list that holds each edge in both
    directions counts everything twice: fold it with :meth:`from_bidirected`.

    Edges may have stalks of another dimension e than nodes: their maps are e×d.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        maps: ``(m, 2, e, d)``; e = d is usual.
        num_nodes: n; the largest index plus one if not given.
        edge_weight: ``(m,)``, not negative; the Laplacian becomes δᵀ W δ.
    """

    maps: Tensor

    def __init__(
        self,
        edge_index: Tensor | Graph,
        maps: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> None:
        graph = as_graph(edge_index, num_nodes)
        m = graph.num_edges
        check_shape("maps", maps, f"(m, 2, e, d) with m = {m}", (m, 2, None, None))
        _check_stalks("maps", maps, "(m, 2, e, d)")
        _check_device(graph, "maps", maps)
        if edge_weight is not None:
            edge_weight = check_edge_weight(edge_weight, m, "maps", maps)
        self._set(graph=graph, maps=maps, edge_weight=edge_weight)

    @classmethod
    def _assemble(cls, graph: Graph, make: Draw, edge_weight: Tensor | None) -> Self:
        return cls(graph, make(graph.num_edges, 2), edge_weight=edge_weight)

    @property
    def stalk_dim(self) -> int:
        return self.maps.shape[-1]

    @property
    def edge_stalk_dim(self) -> int:
        """The dimension e of the stalks of edges."""
        return self.maps.shape[-2]

    @cached_property
    def both_ways(self) -> Graph:
        """The graph of 2m directed edges: each edge from end 0 to end 1, then each back."""
        source, target = self.graph.source, self.graph.target
        edges = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
        return Graph(edges, self.num_nodes)

    @classmethod
    def from_bidirected(
        cls,
        edge_index: Tensor | Graph,
        maps: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> Sheaf:
        r"""Fold a list that holds every edge in both directions.

        The entry (u, v) brings the map of its first end u; its partner (v, u) brings that of v.
        Parallel edges are paired in the order in which they are listed. A self-loop has to be
        listed twice, once per end. The edges come out sorted, smaller end first.

        Args:
            edge_index: ``(2, 2m)``.
            maps: ``(2m, e, d)``; ``maps[k]`` is :math:`F_{u \unlhd e}` for
                ``u = edge_index[0, k]``.
            num_nodes: n; the largest index plus one if not given.
            edge_weight: ``(2m,)``, the same in both directions.
        """
        graph = as_graph(edge_index, num_nodes)
        size = graph.num_edges
        check_shape("maps", maps, f"(2m, e, d) with 2m = {size}", (size, None, None))
        first, second = _pair_directions(graph)
        if edge_weight is not None:
            edge_weight = check_edge_weight(edge_weight, size, "maps", maps)
            uneven = (edge_weight[first] != edge_weight[second]).nonzero().flatten()
            if uneven.numel():
                u, v = (int(end[first[uneven[0]]]) for end in (graph.source, graph.target))
                raise ValueError(
                    "`edge_weight` must be the same in both directions of an edge; "
                    f"it differs between ({u}, {v}) and ({v}, {u})"
                )
            edge_weight = edge_weight[first]
        return cls(
            torch.stack([graph.source[first], graph.target[first]]),
            torch.stack([maps[first], maps[second]], dim=1),
            graph.num_nodes,
            edge_weight=edge_weight,
        )


class DirectedSheaf(BaseSheaf):
    r"""A cellular sheaf on a directed graph: two maps per edge.

    For the edge e = i→j, ``source_maps[e]`` is :math:`F_{i \unlhd ij}` and ``target_maps[e]`` is
    :math:`F_{j \unlhd ij}`. Edges may have stalks of another dimension e than nodes.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        source_maps: ``(m, e, d)``; e = d is usual.
        target_maps: ``(m, e, d)``.
        num_nodes: n; the largest index plus one if not given.
        edge_weight: ``(m,)``, not negative.
    """

    source_maps: Tensor
    target_maps: Tensor

    def __init__(
        self,
        edge_index: Tensor | Graph,
        source_maps: Tensor,
        target_maps: Tensor,
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> None:
        graph = as_graph(edge_index, num_nodes)
        m = graph.num_edges
        for name, maps in (("source_maps", source_maps), ("target_maps", target_maps)):
            check_shape(name, maps, f"(m, e, d) with m = {m}", (m, None, None))
            _check_stalks(name, maps, "(m, e, d)")
        _check_pair(source_maps, target_maps)
        _check_device(graph, "source_maps", source_maps)
        if edge_weight is not None:
            edge_weight = check_edge_weight(edge_weight, m, "source_maps", source_maps)
        self._set(
            graph=graph, source_maps=source_maps, target_maps=target_maps, edge_weight=edge_weight
        )

    @classmethod
    def _assemble(cls, graph: Graph, make: Draw, edge_weight: Tensor | None) -> Self:
        source, target = make(graph.num_edges), make(graph.num_edges)
        return cls(graph, source, target, edge_weight=edge_weight)

    @property
    def stalk_dim(self) -> int:
        return self.source_maps.shape[-1]

    @property
    def edge_stalk_dim(self) -> int:
        """The dimension e of the stalks of edges."""
        return self.source_maps.shape[-2]


class FlatSheaf(BaseSheaf):
    r"""A sheaf on a directed graph whose maps belong to the nodes.

    Node i has one source map :math:`S_i` (how it broadcasts) and one target map :math:`T_i` (how
    it listens): :math:`F_{i \unlhd ij} = S_i` and :math:`F_{i \unlhd ji} = T_i` for every j.

    Args:
        edge_index: ``(2, m)``, or a :class:`~coopsheaf.Graph`.
        source_maps: ``(n, d, d)``, or conformal: a pair (scale ``(n,)``, orthogonal ``(n, d, d)``).
        target_maps: likewise.
        num_nodes: n; read off the maps, so it is only checked.
        edge_weight: ``(m,)``, not negative.
    """

    source: NodeMaps
    target: NodeMaps

    def __init__(
        self,
        edge_index: Tensor | Graph,
        source_maps: NodeMaps | tuple[Tensor, Tensor],
        target_maps: NodeMaps | tuple[Tensor, Tensor],
        num_nodes: int | None = None,
        *,
        edge_weight: Tensor | None = None,
    ) -> None:
        source = _check_node_maps("source_maps", source_maps, num_nodes)
        matrices = _matrices(source)
        target = _check_node_maps("target_maps", target_maps, matrices.shape[0])
        _check_pair(matrices, _matrices(target))
        graph = as_graph(edge_index, matrices.shape[0])
        _check_device(graph, "source_maps", matrices)
        if edge_weight is not None:
            edge_weight = check_edge_weight(edge_weight, graph.num_edges, "source_maps", matrices)
        self._set(graph=graph, source=source, target=target, edge_weight=edge_weight)

    @classmethod
    def _assemble(cls, graph: Graph, make: Draw, edge_weight: Tensor | None) -> Self:
        source, target = make(graph.num_nodes), make(graph.num_nodes)
        if not make.is_orthogonal:
            return cls(graph, source, target, edge_weight=edge_weight)
        ones = source.new_ones(graph.num_nodes)
        return cls(graph, (ones, source), (ones, target), edge_weight=edge_weight)

    @property
    def source_maps(self) -> Tensor:
        """The source maps as matrices, ``(n, d, d)``."""
        return dense_maps(self.source)

    @property
    def target_maps(self) -> Tensor:
        """The target maps as matrices, ``(n, d, d)``."""
        return dense_maps(self.target)

    @property
    def stalk_dim(self) -> int:
        return _matrices(self.source).shape[-1]

    def to_directed(self) -> DirectedSheaf:
        """The same sheaf with its maps written out at every edge."""
        return DirectedSheaf(
            self.graph,
            self.source_maps[self.graph.source],
            self.target_maps[self.graph.target],
            edge_weight=self.edge_weight,
        )


def _matrices(maps: NodeMaps) -> Tensor:
    return maps.orthogonal if isinstance(maps, ConformalMaps) else maps


def _check_device(graph: Graph, name: str, maps: Tensor) -> None:
    if graph.device != maps.device:
        raise ValueError(
            f"`edge_index` and `{name}` must be on the same device; "
            f"got {graph.device} and {maps.device}"
        )


def _check_square(name: str, maps: Tensor, rule: str) -> None:
    d = maps.shape[-1]
    if d < 1 or maps.shape[-2] != d:
        raise ValueError(
            f"`{name}` must have shape {rule} with stalk dimension d of at least 1; "
            f"got {tuple(maps.shape)}"
        )


def _check_stalks(name: str, maps: Tensor, rule: str) -> None:
    if min(maps.shape[-2:]) < 1:
        raise ValueError(
            f"`{name}` must have shape {rule} with stalk dimensions e and d of at least 1; "
            f"got {tuple(maps.shape)}"
        )


def _check_pair(source_maps: Tensor, target_maps: Tensor) -> None:
    if source_maps.shape != target_maps.shape:
        raise ValueError(
            "`source_maps` and `target_maps` must have the same shape; "
            f"got {tuple(source_maps.shape)} and {tuple(target_maps.shape)}"
        )
    check_same("source_maps", source_maps, "target_maps", target_maps)


def _check_node_maps(name: str, maps: object, num_nodes: int | None) -> NodeMaps:
    known = "" if num_nodes is None else f" with n = {num_nodes}"
    if not isinstance(maps, tuple):
        tensor = check_shape(name, maps, f"(n, d, d){known}", (num_nodes, None, None))
        _check_square(name, tensor, "(n, d, d)")
        return tensor
    if len(maps) != 2:
        raise ValueError(f"`{name}` must be a tensor or a pair (scale, orthogonal); got {maps!r}")
    orthogonal = check_shape(f"{name}[1]", maps[1], f"(n, d, d){known}", (num_nodes, None, None))
    _check_square(f"{name}[1]", orthogonal, "(n, d, d)")
    n = orthogonal.shape[0]
    scale = check_shape(f"{name}[0]", maps[0], f"(n,) with n = {n}", (n,))
    check_same(f"{name}[0]", scale, f"{name}[1]", orthogonal)
    _check_orthogonal(f"{name}[1]", orthogonal)
    return ConformalMaps(scale, orthogonal)


def _check_orthogonal(name: str, matrices: Tensor) -> None:
    if matrices.numel() == 0:
        return
    d = matrices.shape[-1]
    q = matrices.detach()
    with torch.autocast(q.device.type, enabled=False):
        error = (q.mT @ q - torch.eye(d, dtype=q.dtype, device=q.device)).abs().max().item()
    if not error <= d * torch.finfo(q.dtype).eps ** 0.5:
        raise ValueError(
            f"`{name}` must hold orthogonal matrices, QᵀQ = I (give other maps as one tensor); "
            f"got an error of {error:.2g}"
        )


def _pair_directions(graph: Graph) -> tuple[Tensor, Tensor]:
    """Positions (m,), (m,) of the two directions of every edge of a doubled list."""
    source, target, n = graph.source, graph.target, graph.num_nodes
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    key = low * n + high  # the undirected edge
    order = torch.sort(key * 2 + (source > target).long(), stable=True).indices
    up, down = order[(source < target)[order]], order[(source > target)[order]]
    if up.shape != down.shape or not torch.equal(key[up], key[down]):
        raise ValueError(f"`edge_index` must hold every edge both ways; {missing_reverse(graph)}")
    loops = order[(source == target)[order]]
    count = torch.bincount(source[loops], minlength=n)
    if (count % 2).any():
        node = int((count % 2).nonzero()[0])
        raise ValueError(
            "`edge_index` must hold a self-loop twice, once per end; "
            f"({node}, {node}) occurs {int(count[node])} times"
        )
    # The first half of a node's loops are first ends, the second half their partners, as in a
    # list followed by its reverse.
    start = count.cumsum(0) - count
    rank = torch.arange(loops.numel(), device=loops.device) - start[source[loops]]
    opening = rank < count[source[loops]] // 2
    return torch.cat([up, loops[opening]]), torch.cat([down, loops[~opening]])


def check_kind(sheaf: object, *kinds: type) -> None:
    """Raise unless a sheaf is of one of these kinds."""
    if not isinstance(sheaf, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"`sheaf` must be a {names}; got {type(sheaf).__name__}")
