"""Overlapping patches of every graph of a batch: parts that METIS finds, and their neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from coopsheaf.checks import check_int, check_probability
from coopsheaf.extras import load_extra
from coopsheaf.sheaves.graph import Graph


class Patches(NamedTuple):
    """Copies of nodes and of edges, one for every patch that they are in.

    Patch p of graph g has the number ``g · P + p``.
    """

    node: Tensor  # (c,) which node each copy is of
    patch: Tensor  # (c,) which patch it is in
    source: Tensor  # (f,) where the copied edges start, as places among the copies of nodes
    target: Tensor  # (f,) where they end
    edge: Tensor  # (f,) which edge each of them is of
    overlap: Tensor  # (graphs, P, P): how many nodes two patches share

    @property
    def filled(self) -> Tensor:
        """Which patches have any node, ``(graphs, P)``."""
        return self.overlap.diagonal(dim1=1, dim2=2) > 0


def make_patches(
    graph: Graph, batch: Tensor | None = None, *, num_patches: int = 32, drop: float | None = None
) -> Patches:
    """Cut every graph into parts with few edges between them; each part and its neighbours.

    METIS finds the parts by recursive bisection, whatever the direction of edges. A graph with
    fewer nodes than parts has one part for each of them, with random numbers. Numbers end with the
    last one: where there are fewer parts than ``num_patches``, the first patches are empty. An edge
    is in every patch that both of its ends are in.

    Args:
        graph: of one graph or of a batch.
        batch: ``(n,)``, the graph of each node; ``None`` for one graph.
        num_patches: number P of patches.
        drop: ``None`` gives the same parts every time; with a number METIS sees each entry of the
            list of edges with the probability 1 - drop, drawn anew, and random numbers are drawn
            anew. An edge that is listed both ways is there as long as one of its entries is.
    """
    check_int("num_patches", num_patches, minimum=1)
    share = -1.0 if drop is None else check_probability("drop", drop)
    n = graph.num_nodes
    graphs = 1 if batch is None else int(batch.max()) + 1 if batch.numel() else 0
    owner = torch.zeros(n, dtype=torch.int64, device=graph.device) if batch is None else batch
    found = _cut(graph.source, graph.target, owner, graphs, num_patches, share)
    return Patches(*found)


@torch.library.custom_op("coopsheaf::graph_patches", mutates_args=())
def _cut(
    source: Tensor, target: Tensor, owner: Tensor, graphs: int, parts: int, drop: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The fields of :class:`Patches`; a negative ``drop`` for the same parts every time."""
    part = _find_parts(source, target, owner, graphs, parts, drop).to(owner.device)
    rows = torch.arange(owner.numel(), device=owner.device)
    member = torch.zeros(owner.numel(), parts, dtype=torch.bool, device=owner.device)
    member[rows, part] = True
    member[target, part[source]] = True
    member[source, part[target]] = True
    node, patch = member.nonzero(as_tuple=True)
    place = member.flatten().cumsum(0).view(member.shape) - 1
    edge, inside = (member[source] & member[target]).nonzero(as_tuple=True)
    ends = [place[end[edge], inside] for end in (source, target)]
    overlap = _count_shared(member, owner, graphs)
    return node, owner[node] * parts + patch, ends[0], ends[1], edge, overlap


def _count_shared(member: Tensor, owner: Tensor, graphs: int) -> Tensor:
    """How many nodes any two patches of a graph share, ``(graphs, P, P)``."""
    order = owner.argsort(stable=True)
    pieces = member[order].float().split(torch.bincount(owner, minlength=graphs).tolist())
    shared = [piece.T @ piece for piece in pieces]
    size = member.shape[1]
    return torch.stack(shared) if shared else member.new_zeros(0, size, size, dtype=torch.float)


def _find_parts(
    source: Tensor, target: Tensor, owner: Tensor, graphs: int, parts: int, drop: float
) -> Tensor:
    """The part of every node, ``(n,)``."""
    source, target, owner = source.cpu(), target.cpu(), owner.cpu()
    kept = source != target
    if drop >= 0:
        kept &= torch.rand(source.shape) >= drop
    source, target = source[kept], target[kept]
    order = owner.argsort(stable=True)
    sizes = torch.bincount(owner, minlength=graphs)
    first = sizes.cumsum(0) - sizes
    inside = torch.empty_like(order)  # the place of each node in its graph
    inside[order] = torch.arange(order.numel()) - first[owner[order]]
    group = owner[source].argsort(stable=True)
    lists = torch.bincount(owner[source], minlength=graphs).tolist()
    ends = torch.stack([inside[source], inside[target]])[:, group].split(lists, dim=1)
    found = [_parts_of(int(size), e, parts, drop) for size, e in zip(sizes, ends, strict=True)]
    part = torch.empty_like(owner)
    if found:
        part[order] = torch.cat(found)
    return part


def _parts_of(size: int, ends: Tensor, parts: int, drop: float) -> Tensor:
    """The parts of one graph, the last number the largest there is."""
    if size == 0:
        return ends.new_empty(0)
    if size < parts:
        fixed = torch.Generator().manual_seed(size) if drop < 0 else None
        found = torch.randperm(parts, generator=fixed)[:size]
    else:
        found = _metis(size, ends, parts)
    return found + (parts - 1 - found.max())


def _metis(size: int, ends: Tensor, parts: int) -> Tensor:
    pymetis = load_extra("pymetis", "patches of graphs need")
    both = torch.cat([ends, ends.flip(0)], dim=1)
    codes = torch.unique(both[0] * size + both[1])  # in one order, whatever that of the list
    kind = pymetis.zero_copy_dtype()
    starts = torch.searchsorted(codes, torch.arange(size + 1) * size).numpy().astype(kind)
    others = (codes % size).numpy().astype(kind)
    if codes.numel() == 0 or parts == 1:  # nothing to cut
        return torch.arange(size) % parts
    adjacency = pymetis.CSRAdjacency(adj_starts=starts, adjacent=others)
    options = pymetis.Options(seed=0)
    found = pymetis.part_graph(parts, adjacency, recursive=True, options=options).vertex_part
    return torch.from_numpy(np.array(found, dtype=np.int64))


@_cut.register_fake
def _(
    source: Tensor, target: Tensor, owner: Tensor, graphs: int, parts: int, drop: float
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    context: Any = torch.library.get_ctx()
    copies = context.new_dynamic_size(min=1)  # at least one of every node
    edges = context.new_dynamic_size()
    of_nodes = [owner.new_empty(copies) for _ in range(2)]
    of_edges = [owner.new_empty(edges) for _ in range(3)]
    overlap = owner.new_empty(graphs, parts, parts, dtype=torch.float32)
    return (*of_nodes, *of_edges, overlap)  # type: ignore[return-value]
