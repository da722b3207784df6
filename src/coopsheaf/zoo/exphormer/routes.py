"""Whom attention may reach: neighbours, the ends of an expander's edges, and virtual nodes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from coopsheaf.checks import check_int
from coopsheaf.sheaves.graph import Graph


class Routes(NamedTuple):
    """Edges among n nodes and the virtual nodes after them: V of each graph, graph by graph.

    First the edges of the graph, then those of the expander, then from all nodes to the virtual
    nodes of their graph, then back; of the last two, virtual node by virtual node.
    """

    source: Tensor  # (m + x + 2·n·V,)
    target: Tensor  # the same
    num_expander: int  # x
    num_graphs: int

    def features(
        self, edges: Tensor, expander: Tensor | None, inward: Tensor | None, outward: Tensor | None
    ) -> Tensor:
        """One row per route: features of edges ``(m, c)``, a vector ``(1, c)`` for those of the
        expander, and a vector per virtual node ``(V, c)`` for the ways to it and from it."""
        parts = [edges]
        if expander is not None:
            parts.append(expander.expand(self.num_expander, -1))
        if inward is not None and outward is not None:
            ways = self.source.numel() - edges.shape[0] - self.num_expander
            times = ways // (2 * inward.shape[0])  # n
            for vectors in (inward, outward):
                parts.append(vectors.unsqueeze(1).expand(-1, times, -1).flatten(0, 1))
        return torch.cat(parts)


def make_routes(
    graph: Graph,
    batch: Tensor | None = None,
    *,
    num_virtual: int = 0,
    expander_degree: int = 0,
    seed: int = 0,
) -> Routes:
    """The routes of a graph, or of a batch of graphs.

    Args:
        graph: of n nodes and m edges.
        batch: ``(n,)``, the graph of each node; ``None`` for one graph.
        num_virtual: number V of virtual nodes of every graph.
        expander_degree: see :func:`expander_edges`; 0 for no expander.
        seed: of the expander.
    """
    n, device = graph.num_nodes, graph.device
    graphs = 1 if batch is None else int(batch.max()) + 1 if batch.numel() else 0
    owner = torch.zeros(n, dtype=torch.int64, device=device) if batch is None else batch
    source, target, extra = [graph.source], [graph.target], 0
    if expander_degree:
        drawn = _expanders(owner, graphs, expander_degree, seed)
        extra = drawn.shape[1]
        source, target = [*source, drawn[0]], [*target, drawn[1]]
    if num_virtual:
        number = torch.arange(num_virtual, device=device).unsqueeze(1)
        virtual = (n + owner * num_virtual + number).flatten()  # (V·n,), one after the other
        nodes = torch.arange(n, device=device).repeat(num_virtual)
        source, target = [*source, nodes, virtual], [*target, virtual, nodes]
    return Routes(torch.cat(source), torch.cat(target), extra, graphs)


def expander_edges(num_nodes: int, degree: int, *, seed: int = 0) -> Tensor:
    """A random regular graph, nearly: the union of ``degree`` random permutations, both ways.

    Every permutation p gives the edges i→p(i) and p(i)→i, so that a node has 2 · degree edges in
    and as many out, but for its fixed points, which give none. Such a graph is an expander with
    high probability. It depends on the number of nodes, the degree and the seed alone, not on which
    graph it is of or what else is in a batch.

    Args:
        num_nodes: number n of nodes.
        degree: number of permutations.
        seed: of the draw.

    Returns:
        ``(2, e)``.
    """
    check_int("degree", degree, minimum=1)
    generator = torch.Generator().manual_seed(seed * 1_000_003 + num_nodes)
    heads = torch.cat([torch.randperm(num_nodes, generator=generator) for _ in range(degree)])
    tails = torch.arange(num_nodes).repeat(degree)
    one_way = torch.stack([tails, heads])[:, tails != heads]
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def _expanders(owner: Tensor, graphs: int, degree: int, seed: int) -> Tensor:
    """The expander of every graph of a batch, ``(2, e)``."""
    order = owner.argsort(stable=True)  # nodes of a graph may stand anywhere
    parts, first = [order.new_zeros(2, 0)], 0
    for size in torch.bincount(owner, minlength=graphs).tolist():
        if size:
            found = expander_edges(size, degree, seed=seed).to(owner.device)
            parts.append(order[found + first])
        first += size
    return torch.cat(parts, dim=1)
