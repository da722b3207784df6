"""Who is one hop away and who two, found by counting walks, a bounded number of rows at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from coopsheaf.sheaves.graph import CSR, Graph

# Counts of walks that are held at once: some rows of all nodes.
COUNTS = 1 << 22
WALKS = 1 << 22


class HopPattern(NamedTuple):
    """Pairs of nodes, grouped by the one that hears and by the one that is heard.

    In a sum over neighbours it stands in for a :class:`~coopsheaf.Graph`.
    """

    by_target: CSR
    by_source: CSR

    @property
    def in_degree(self) -> Tensor:
        """Number of nodes that each node hears, ``(n,)``."""
        return self.by_target.ptr.diff()


class Hops(NamedTuple):
    """One hop and two."""

    one: HopPattern
    two: HopPattern


def two_hops(graph: Graph, *, strict: bool = True, most: float = 5e7) -> Hops:
    r"""The neighbours of every node, and its neighbours' neighbours, each of them once.

    Strictly (Zhu et al., NeurIPS 2020): loops are left out, :math:`A_1` is the 0/1 adjacency and
    :math:`A_2 = [A_1^2 > 0] \wedge \neg [A_1 > 0] \wedge \neg I`: reached in two steps, not in one,
    and not the node itself. Otherwise as the LINKX benchmark computes it: loops stay, and
    :math:`A_2 = [A_1^2 - A_1 > 0]`, which has every node that can be left and entered again, and
    every adjacent pair with two or more common neighbours.

    Row i of both is what node i hears. Walks are counted for some rows at a time, so that no array
    has the size of all pairs; the pairs themselves can be nearly as many.

    Args:
        graph: the graph of n nodes.
        strict: as the authors have it.
        most: largest number of pairs in :math:`A_2`; more of them are refused.
    """
    listed = []
    for csr in (graph.by_target, graph.by_source):
        ptr, other = _simple(csr.ptr, csr.other, not strict)
        far, whom = _two_hops(ptr, other, strict, most)
        listed.append((_rows_of(ptr, other), _rows_of(far, whom)))
    (one, two), (one_back, two_back) = listed
    return Hops(HopPattern(one, one_back), HopPattern(two, two_back))


def _rows_of(ptr: Tensor, other: Tensor) -> CSR:
    return CSR(ptr, other, other)  # no weights: where the edges are listed does not matter


@torch.library.custom_op("coopsheaf::simple_rows", mutates_args=())
def _simple(ptr: Tensor, other: Tensor, loops: bool) -> tuple[Tensor, Tensor]:
    """The entries of every row, each once and in order, with or without those on the diagonal."""
    n = ptr.numel() - 1
    row = torch.repeat_interleave(torch.arange(n, device=ptr.device), ptr.diff())
    column = other.long()
    if not loops:
        keep = row != column
        row, column = row[keep], column[keep]
    codes = torch.unique(row * n + column)
    return _pointers(torch.bincount(codes // max(n, 1), minlength=n)), codes % max(n, 1)


@torch.library.custom_op("coopsheaf::two_hop_rows", mutates_args=())
def _two_hops(ptr: Tensor, other: Tensor, strict: bool, most: float) -> tuple[Tensor, Tensor]:
    """The rows of A₂ from those of A₁."""
    n = ptr.numel() - 1
    degree = ptr.diff()
    rows = CSR(ptr, other, other)
    per_entry = degree[other]  # second steps of every first step
    walks = torch.cat([per_entry.new_zeros(1), per_entry.cumsum(0)])[ptr]  # before each row
    parts, total, first = [], 0, 0
    counts = []
    while first < n:
        # As many rows as fit: at least one.
        last = int(torch.searchsorted(walks, walks[first] + WALKS, right=True)) - 1
        last = min(n, max(first + 1, min(last, first + max(1, COUNTS // n))))
        found = _count_walks(rows, first, last, strict)  # (rows, n) booleans
        place, node = found.nonzero(as_tuple=True)
        total += node.numel()
        if total > most:
            raise ValueError(
                f"`graph` must have at most {most:.2g} pairs of nodes two hops apart (setting "
                f"`most_pairs`, about 16 bytes each); got more after {last} of {n} nodes: raise "
                "it, or choose another model"
            )
        counts.append(torch.bincount(place, minlength=last - first))
        parts.append(node.to(torch.int32))
        first = last
    found = torch.cat(parts) if parts else other.new_empty(0, dtype=torch.int32)
    sizes = torch.cat(counts) if counts else ptr.new_empty(0)
    return _pointers(sizes), found


def _count_walks(rows: CSR, first: int, last: int, strict: bool) -> Tensor:
    n = rows.ptr.numel() - 1
    nodes = torch.arange(first, last, device=rows.ptr.device)
    step, place = rows.take(nodes)
    via = rows.other[step]
    second, origin = rows.take(via)
    codes = place[origin] * n + rows.other[second]
    size = (last - first) * n
    walks = torch.bincount(codes, minlength=size).view(-1, n)
    near = torch.bincount(place * n + via, minlength=size).view(-1, n)
    if not strict:
        return walks > near
    found = (walks > 0) & (near == 0)
    found[nodes - first, nodes] = False
    return found


def _pointers(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


@_simple.register_fake
def _(ptr: Tensor, other: Tensor, loops: bool) -> tuple[Tensor, Tensor]:
    return _fake(ptr, other.dtype if other.dtype == torch.int64 else torch.int64)


@_two_hops.register_fake
def _(ptr: Tensor, other: Tensor, strict: bool, most: float) -> tuple[Tensor, Tensor]:
    return _fake(ptr, torch.int32)


def _fake(ptr: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    context: Any = torch.library.get_ctx()
    size = context.new_dynamic_size()
    return torch.empty_like(ptr), ptr.new_empty(size, dtype=dtype)
