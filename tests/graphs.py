"""Graphs and sheaves that the tests share."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st
from torch import Tensor

from coopsheaf import ConformalMaps, DirectedSheaf, FlatSheaf, Graph, Sheaf


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def random_orthogonal(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.linalg.qr(randn(n, d, d, seed=seed)).Q


def random_maps(*shape: int, seed: int = 0) -> Tensor:
    """General d×d maps with singular values in [½, 3/2]: inverse roots stay well conditioned."""
    *lead, d, _ = shape
    count = math.prod(lead)
    values = 0.5 + torch.rand(count, 1, d, generator=generator(seed + 2), dtype=torch.float64)
    left, right = random_orthogonal(count, d, seed), random_orthogonal(count, d, seed + 1)
    return ((left * values) @ right).view(*shape)


def random_conformal(n: int, d: int, seed: int = 0) -> ConformalMaps:
    scale = 0.3 + torch.rand(n, generator=generator(seed + 1), dtype=torch.float64)
    return ConformalMaps(scale, random_orthogonal(n, d, seed))


def bidirected(edge_index: Tensor) -> Tensor:
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


def path(n: int) -> Tensor:
    """The path 0 - 1 - ... - n-1, both directions."""
    nodes = torch.arange(n - 1)
    return bidirected(torch.stack([nodes, nodes + 1]))


# (num_nodes, edge_index): what a kernel must not stumble over.
ODD_GRAPHS: dict[str, tuple[int, Tensor]] = {
    "random-directed": (9, torch.randint(0, 9, (2, 30), generator=generator(3))),
    "bidirected": (8, bidirected(torch.randint(0, 8, (2, 12), generator=generator(4)))),
    "path": (5, path(5)),
    "one-way": (4, torch.tensor([[0, 1, 2], [1, 2, 3]])),
    "self-loops": (3, torch.tensor([[0, 0, 1, 2, 2], [0, 1, 0, 2, 2]])),
    "parallel": (3, torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 2, 0]])),
    "isolated": (6, torch.tensor([[1, 4, 4], [4, 1, 2]])),
    "no-edges": (3, torch.empty(2, 0, dtype=torch.int64)),
    "single-node": (1, torch.empty(2, 0, dtype=torch.int64)),
    "single-loop": (1, torch.zeros(2, 1, dtype=torch.int64)),
}


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 6, max_edges: int = 12) -> Graph:
    """Any directed multigraph: loops, parallel edges, isolated nodes, no edges."""
    n = draw(st.integers(1, max_nodes))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=max_edges))
    return Graph(torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T, n)


def random_weight(m: int, seed: int = 7) -> Tensor:
    return torch.rand(m, generator=generator(seed), dtype=torch.float64)


def random_sheaf(graph: Graph, d: int, *, weighted: bool = False, seed: int = 0) -> Sheaf:
    maps = random_maps(graph.num_edges, 2, d, d, seed=seed)
    weight = random_weight(graph.num_edges) if weighted else None
    return Sheaf(graph, maps, edge_weight=weight)


def random_directed(
    graph: Graph, d: int, *, weighted: bool = False, seed: int = 0
) -> DirectedSheaf:
    m = graph.num_edges
    weight = random_weight(m) if weighted else None
    return DirectedSheaf(
        graph,
        random_maps(m, d, d, seed=seed),
        random_maps(m, d, d, seed=seed + 5),
        edge_weight=weight,
    )


def random_flat(
    graph: Graph, d: int, *, conformal: bool = True, weighted: bool = False, seed: int = 0
) -> FlatSheaf:
    n = graph.num_nodes
    weight = random_weight(graph.num_edges) if weighted else None
    if conformal:
        source, target = random_conformal(n, d, seed), random_conformal(n, d, seed + 10)
        return FlatSheaf(graph, source, target, edge_weight=weight)
    source_maps, target_maps = random_maps(n, d, d, seed=seed), random_maps(n, d, d, seed=seed + 10)
    return FlatSheaf(graph, source_maps, target_maps, edge_weight=weight)
