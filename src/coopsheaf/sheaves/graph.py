"""The prepared graph: an ``edge_index`` sorted both ways, built once by whoever owns the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import GetAttrKey, register_pytree_node

from coopsheaf.notebook import table_html
from coopsheaf.sheaves.edges import Edges, join_weight, read_edges, refuse_weight
from coopsheaf.sheaves.places import Places, Placing

Derived = TypeVar("Derived")


class CSR(NamedTuple):
    """A compressed list of edges, grouped by one of their ends.

    Row ``i`` holds positions ``ptr[i]:ptr[i + 1]``; there, ``other`` is the node at the other end
    and ``edge`` the edge's position in the original list.
    """

    ptr: Tensor  # (n + 1,)
    other: Tensor  # (m,); with ``edge`` of int32 in packs that can be counted with it
    edge: Tensor  # (m,)

    def degree(self, nodes: Tensor) -> Tensor:
        """The numbers of entries of some rows, ``(k,)``."""
        return self.ptr[nodes + 1] - self.ptr[nodes]

    def take(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The entries of some rows, one row after the other.

        Args:
            nodes: ``(k,)`` rows.

        Returns:
            The positions of the entries in this list, and for each the place of its row in
            ``nodes``, both ``(entries,)``.
        """
        start, count = self.ptr[nodes], self.degree(nodes)
        places = torch.arange(nodes.numel(), device=nodes.device)
        place = torch.repeat_interleave(places, count)
        before = count.cumsum(0) - count  # entries of earlier rows
        entry = torch.arange(place.numel(), device=nodes.device)
        return entry + (start - before)[place], place


class Degrees(NamedTuple):
    """Edges at each node, or the sums of their weights."""

    into: Tensor  # (n,)
    out: Tensor  # (n,)

    def at(self, nodes: Tensor) -> Degrees:
        """Those of some nodes, ``(k,)`` each."""
        return Degrees(self.into[nodes], self.out[nodes])


class Subgraph(NamedTuple):
    """Some nodes of a graph and edges among them."""

    graph: Graph  # k nodes, e edges
    nodes: Tensor  # (k,) which nodes of the whole graph
    edge: Tensor  # (e,) which edges of the whole graph


class Graph:
    """A directed graph with its edges grouped by target and by source.

    Sorting the edges is the one part of a forward pass that depends on nothing learned. Build a
    ``Graph`` once and pass it wherever an ``edge_index`` is accepted::

        graph = Graph(data.edge_index, data.num_nodes)
        for _ in range(epochs):
            out = model(data.x, graph)

    An edge (j, i) of ``edge_index`` carries information from its source ``edge_index[0] = j`` to
    its target ``edge_index[1] = i``. Self-loops, parallel edges and isolated nodes are kept as
    they are, and nothing is symmetrised.

    A graph that was cut out of another one (:meth:`subgraph`) knows in ``whole`` the degrees that
    its nodes have there. ``in_degree`` and ``out_degree`` still count the edges that are here.

    Args:
        edge_index: ``(2, m)`` integers in ``[0, num_nodes)``, PyG's ``EdgeIndex``, or the
            transposed adjacency matrix as a sparse matrix of ones (:mod:`coopsheaf.sheaves.edges`).
        num_nodes: the number n of nodes; the largest index plus one if not given.
    """

    source: Tensor  # (m,)
    target: Tensor  # (m,)
    by_target: CSR
    by_source: CSR
    whole: Degrees | None
    _memo: dict[str, Any]

    __slots__ = ("_memo", "by_source", "by_target", "source", "target", "whole")

    def __init__(self, edge_index: Tensor, num_nodes: int | None = None) -> None:
        edges = read_edges(edge_index, num_nodes)
        refuse_weight(edges)
        self._fill(*_sort(edges))

    @property
    def edge_index(self) -> Tensor:
        """The edges in their original order, ``(2, m)``."""
        return torch.stack([self.source, self.target])

    @property
    def num_nodes(self) -> int:
        return self.by_target.ptr.shape[0] - 1

    @property
    def num_edges(self) -> int:
        return self.source.numel()

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def in_degree(self) -> Tensor:
        """Number of edges into each node, ``(n,)``."""
        return self.remember("in-degree", lambda graph: graph.by_target.ptr.diff())

    @property
    def out_degree(self) -> Tensor:
        """Number of edges out of each node, ``(n,)``."""
        return self.remember("out-degree", lambda graph: graph.by_source.ptr.diff())

    def reverse(self) -> Graph:
        """The same edges in the other direction; nothing is sorted again."""
        whole = None if self.whole is None else Degrees(self.whole.out, self.whole.into)
        return self._build(self.target, self.source, self.by_source, self.by_target, whole)

    def subgraph(self, nodes: Tensor, whole: Degrees | None = None) -> Subgraph:
        """The edges among some of the nodes, which are numbered in the order of ``nodes``.

        Args:
            nodes: ``(k,)`` different nodes.
            whole: the degrees of all nodes that the new graph shall remember; the numbers of their
                edges if not given. With edge weights they are sums of weights.
        """
        with self.placing(nodes) as placing:
            position, target = self.by_target.take(nodes)
            source = placing.find(self.by_target.other[position])
        kept = (source >= 0).nonzero().squeeze(1)
        source, target = source[kept], target[kept]
        ptr = torch.searchsorted(target, torch.arange(nodes.numel() + 1, device=self.device))
        rows = CSR(ptr, source, torch.arange(source.numel(), device=self.device))
        graph = self._build(
            source,
            target,
            rows,
            _compress(source, target, nodes.numel()),
            self.degrees_at(nodes) if whole is None else whole.at(nodes),
        )
        return Subgraph(graph, nodes, self.by_target.edge[position[kept]].long())

    def placing(self, nodes: Tensor) -> AbstractContextManager[Placing]:
        """Places of nodes in a list that begins with ``nodes``, without an array of all nodes.

        But for the first time: then one is made, which is kept and cleared after each use.
        """
        places = self.remember("places", lambda graph: Places(graph.num_nodes, graph.device))
        return places.placing(nodes)

    def degrees_at(self, nodes: Tensor) -> Degrees:
        """Edges at some nodes, ``(k,)`` each: those of ``whole``, if this is a part of a graph."""
        if self.whole is not None:
            return self.whole.at(nodes)
        return Degrees(self.by_target.degree(nodes), self.by_source.degree(nodes))

    def part_of(self, whole: Degrees) -> Graph:
        """This graph as a part of a larger one in which its nodes have these degrees."""
        n = self.num_nodes
        for name, degree in zip(("into", "out"), whole, strict=True):
            if degree.shape != (n,):
                raise ValueError(
                    f"`whole.{name}` must have shape ({n},), one degree per node; "
                    f"got {tuple(degree.shape)}"
                )
        parts = (self.source, self.target, self.by_target, self.by_source)
        return self._build(*parts, Degrees(*whole))

    def remember(self, name: str, make: Callable[[Graph], Derived]) -> Derived:
        """What ``make`` derives from this graph, derived at the first call and kept under ``name``.

        For what depends on nothing learned. Compilers see ``make`` itself, and so do the transforms
        of ``torch.func``, whose tensors must not outlive them.
        """
        if torch.compiler.is_compiling():
            return make(self)
        if name not in self._memo:
            if torch._C._are_functorch_transforms_active():
                return make(self)
            # What is kept must be of use in training, whoever asks for it first.
            with torch.inference_mode(False), torch.no_grad():
                self._memo[name] = make(self)
        return self._memo[name]

    def with_self_loops(self) -> Graph:
        """This graph with one more edge from every node to itself, after all others.

        Loops that are there already stay: such a node then has two. Nothing is sorted again.
        """
        return self.remember("self-loops", _add_self_loops)

    def partners(self) -> Tensor:
        """Where the reverse of each edge is, ``(m,)``: for edge e = j→i an edge i→j.

        Every edge must be there both ways; parallel edges are paired in the order in which they
        are listed, and a self-loop is its own partner.
        """
        return self.remember("partners", _find_partners)

    def to(self, device: torch.device | str) -> Graph:
        """A copy on another device."""

        def send(part: Tensor) -> Tensor:
            # To a device nobody has to wait; from one, what arrives must be there.
            return part.to(device, non_blocking=part.is_cpu)

        return self._build(
            send(self.source),
            send(self.target),
            CSR(*map(send, self.by_target)),
            CSR(*map(send, self.by_source)),
            None if self.whole is None else Degrees(*map(send, self.whole)),
        )

    @classmethod
    def _build(
        cls,
        source: Tensor,
        target: Tensor,
        by_target: CSR,
        by_source: CSR,
        whole: Degrees | None = None,
    ) -> Graph:
        graph = object.__new__(cls)
        graph._fill(source, target, by_target, by_source, whole)
        return graph

    def _fill(
        self,
        source: Tensor,
        target: Tensor,
        by_target: CSR,
        by_source: CSR,
        whole: Degrees | None = None,
    ) -> None:
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "by_target", by_target)
        object.__setattr__(self, "by_source", by_source)
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "_memo", {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a Graph does not change: build a new one instead of setting {name!r}"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Graph does not change: {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and pickles are rebuilt, since attributes cannot be set one by one.
        return self._build, tuple(getattr(self, name) for name in _PARTS)

    def __repr__(self) -> str:
        return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges})"

    def _repr_html_(self) -> str:
        mean = self.num_edges / self.num_nodes if self.num_nodes else 0.0
        facts = {"nodes": self.num_nodes, "edges": self.num_edges, "mean degree": mean}
        return table_html("Graph", facts)


_PARTS = ("source", "target", "by_target", "by_source", "whole")


def _flatten(graph: Graph) -> tuple[list[object], None]:
    return [getattr(graph, name) for name in _PARTS], None


def _flatten_with_keys(graph: Graph) -> tuple[list[tuple[Any, object]], None]:
    return [(GetAttrKey(name), getattr(graph, name)) for name in _PARTS], None


def _unflatten(parts: Iterable[Any], context: None) -> Graph:
    return Graph._build(*parts)


# Lets torch.export take a Graph as an argument.
register_pytree_node(
    Graph,
    _flatten,
    _unflatten,
    serialized_type_name="coopsheaf.Graph",
    flatten_with_keys_fn=_flatten_with_keys,
)


def as_graph(edge_index: Tensor | Graph, num_nodes: int | None = None) -> Graph:
    """Prepare ``edge_index`` unless it is prepared already; a sparse matrix must be one of ones."""
    if not isinstance(edge_index, Graph):
        return Graph(edge_index, num_nodes)
    _check_size(edge_index, num_nodes)
    return edge_index


def as_weighted_graph(
    edge_index: Tensor | Graph, num_nodes: int | None, edge_weight: Tensor | None
) -> tuple[Graph, Tensor | None]:
    """The same for those who take weights ``(m,)``: the values of a sparse matrix are weights."""
    if isinstance(edge_index, Graph):
        return as_graph(edge_index, num_nodes), edge_weight
    edges = read_edges(edge_index, num_nodes)
    return Graph._build(*_sort(edges)), join_weight(edges, edge_weight)


def _check_size(graph: Graph, num_nodes: int | None) -> None:
    if num_nodes is not None and graph.num_nodes != num_nodes:
        raise ValueError(
            f"`edge_index` is a graph of {graph.num_nodes} nodes; expected {num_nodes} nodes"
        )


def _sort(edges: Edges) -> tuple[Tensor, Tensor, CSR, CSR]:
    """Sources, targets, and the edges grouped by either."""
    (source, target), n = (edges.ends[0], edges.ends[1]), edges.num_nodes
    return source, target, _compress(target, source, n), _compress(source, target, n)


def _add_self_loops(graph: Graph) -> Graph:
    nodes = torch.arange(graph.num_nodes, device=graph.device)

    def insert(csr: CSR) -> CSR:
        # Row i moves up by i places; its loop comes last.
        degree = csr.ptr.diff()
        kept = torch.arange(csr.other.shape[0], device=graph.device)
        kept = kept + torch.repeat_interleave(nodes, degree, output_size=csr.other.shape[0])
        loop = csr.ptr[1:] + nodes
        place = torch.cat([kept, loop])
        other = torch.empty_like(place).scatter(0, place, torch.cat([csr.other, nodes]))
        edge = torch.cat([csr.edge, graph.num_edges + nodes])
        edge = torch.empty_like(place).scatter(0, place, edge)
        return CSR(csr.ptr + torch.arange(graph.num_nodes + 1, device=graph.device), other, edge)

    return Graph._build(
        torch.cat([graph.source, nodes]),
        torch.cat([graph.target, nodes]),
        insert(graph.by_target),
        insert(graph.by_source),
        None if graph.whole is None else Degrees(graph.whole.into + 1, graph.whole.out + 1),
    )


def _find_partners(graph: Graph) -> Tensor:
    # The k-th edge by (source, target) is the reverse of the k-th by (target, source).
    there = graph.source * graph.num_nodes + graph.target
    back = graph.target * graph.num_nodes + graph.source
    there, order = torch.sort(there, stable=True)
    back, reverse_order = torch.sort(back, stable=True)
    rule = "`edge_index` must hold every edge both ways"
    if torch.compiler.is_compiling():
        torch._assert_async((there == back).all(), rule)
    elif not torch.equal(there, back):
        hint = "add the reverse edges (--set data.direction=undirected, of own tables --undirected)"
        raise ValueError(f"{rule}; {missing_reverse(graph)}; {hint}")
    return torch.empty_like(order).scatter(0, order, reverse_order)


def missing_reverse(graph: Graph) -> str:
    """Which edge of a graph is not there both ways, for an error."""
    n = graph.num_nodes
    alone = ~torch.isin(graph.target * n + graph.source, graph.source * n + graph.target)
    if alone.any():
        k = int(alone.nonzero()[0])
        u, v = int(graph.source[k]), int(graph.target[k])
        return f"({u}, {v}) is there without its reverse ({v}, {u})"
    return "a parallel edge occurs more often in one direction than in the other"


def _compress(rows: Tensor, others: Tensor, num_nodes: int) -> CSR:
    ordered, edge = torch.sort(rows, stable=True)
    bounds = torch.arange(num_nodes + 1, device=rows.device)
    return CSR(torch.searchsorted(ordered, bounds), others[edge], edge)
