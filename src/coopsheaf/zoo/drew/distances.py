"""Which nodes are exactly k hops apart, for k = 1, ..., K, found by rows and not as a matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import CSR, Graph
from coopsheaf.zoo.h2gcn.hops import HopPattern

# Steps that are looked at together; more of them are taken for fewer rows at a time.
STEPS = 1 << 22


def pairs_by_distance(graph: Graph, num_hops: int, *, most: float = 2.5e7) -> list[HopPattern]:
    """The pairs of nodes whose shortest path has exactly k edges, for every k up to ``num_hops``.

    Row i of pattern k is what node i hears: the nodes j with a path of k edges from j to i and no
    shorter one. Loops and parallel edges make no difference. Between graphs of a batch there is no
    path. The work is that of a breadth-first search from every node, for many nodes at once.

    Args:
        graph: the graph of n nodes.
        num_hops: the largest distance K.
        most: largest number of pairs at distances up to K; more of them are refused.
    """
    sides = [graph.by_target] if _is_symmetric(graph) else [graph.by_target, graph.by_source]
    listed = [_search(csr.ptr, csr.other, num_hops, most) for csr in sides]
    listed = listed if len(listed) == 2 else [*listed, *listed]
    rows = [[CSR(ptr, other, other) for ptr, other in _by_two(found)] for found in listed]
    return [HopPattern(into, out) for into, out in zip(*rows, strict=True)]


def _is_symmetric(graph: Graph) -> bool:
    """Whether every edge is there both ways: then one search is enough."""
    if torch.compiler.is_compiling():
        return False  # nobody knows yet
    n = graph.num_nodes
    there, back = graph.source * n + graph.target, graph.target * n + graph.source
    return torch.equal(there.sort().values, back.sort().values)


def _by_two(found: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(found[::2], found[1::2], strict=True))


@torch.library.custom_op("coopsheaf::rows_by_distance", mutates_args=())
def _search(ptr: Tensor, other: Tensor, num_hops: int, most: float) -> list[Tensor]:
    """For every distance the bounds of the rows ``(n + 1,)`` and the nodes in them."""
    n = ptr.numel() - 1
    rows = CSR(ptr, other.long(), other)
    found = _levels(rows, torch.arange(n, device=ptr.device), num_hops, most)
    listed: list[Tensor] = []
    for codes in found:
        sizes = torch.bincount(codes // max(n, 1), minlength=n)
        listed += [torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]), codes % max(n, 1)]
    return listed


def _levels(rows: CSR, start: Tensor, num_hops: int, most: float) -> list[Tensor]:
    """Pairs as codes ``row · n + node``, sorted, of each distance, for the rows ``start``."""
    n = rows.ptr.numel() - 1
    last = start * n + start
    seen, levels, total = last, [], 0
    for _ in range(num_hops):
        nodes = last % max(n, 1)
        if start.numel() > 1 and int(rows.degree(nodes).sum()) > STEPS:
            halves = [_levels(rows, half, num_hops, most) for half in start.chunk(2)]
            _refuse_many(sum(codes.numel() for half in halves for codes in half), most)
            return [torch.cat(both) for both in zip(*halves, strict=True)]
        position, place = rows.take(nodes)
        reached = torch.unique((last // max(n, 1))[place] * n + rows.other[position])
        # Within one step of distance k there is nothing nearer than k - 1.
        last = reached[~_inside(reached, seen)]
        seen = torch.cat([seen, last]).sort().values
        total += last.numel()
        _refuse_many(total, most)
        levels.append(last)
    return levels


def _inside(values: Tensor, ordered: Tensor) -> Tensor:
    """Which values are in a sorted list."""
    place = torch.searchsorted(ordered, values).clamp(max=max(ordered.numel() - 1, 0))
    return ordered[place] == values if ordered.numel() else torch.zeros_like(values).bool()


def _refuse_many(count: int, most: float) -> None:
    if count > most:
        raise ValueError(
            f"`graph` must have at most {most:.2g} pairs of nodes within `num_layers` hops "
            f"(setting `most_pairs`, about 16 bytes each); got {count} or more: raise it, take "
            "fewer layers, or choose another model"
        )


@_search.register_fake
def _(ptr: Tensor, other: Tensor, num_hops: int, most: float) -> list[Tensor]:
    context: Any = torch.library.get_ctx()
    listed: list[Tensor] = []
    for _ in range(num_hops):
        size = context.new_dynamic_size()
        listed += [torch.empty_like(ptr), ptr.new_empty(size, dtype=torch.int64)]
    return listed
