"""What the tests of the paper's statements share: the operators P and R, and their blocks.

With S and T the source and target maps, P = L_inᵀ L_out is the order of the paper and
R = L_out L_inᵀ that of the released code. The statements speak of graphs whose edges all go both
ways; there the two differ in the order alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

import torch
from graphs import bidirected, random_conformal
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from coopsheaf import ConformalMaps, FlatSheaf, Graph, in_laplacian, out_laplacian
from coopsheaf.sheaves.diffusion import paper_diffusion, released_diffusion
from coopsheaf.sheaves.operator import Operator

FEW = settings(deadline=None, max_examples=25, derandomize=True)

EXACT = {"rtol": 1e-12, "atol": 1e-12}

Diffusion = Callable[[Graph, ConformalMaps, ConformalMaps], Operator]


def paper_order(
    graph: Graph,
    source: ConformalMaps | Tensor,
    target: ConformalMaps | Tensor,
    normalization: str | None = None,
) -> Operator:
    """P, from the Laplacians of the validated sheaf."""
    sheaf = FlatSheaf(graph, source, target)
    return in_laplacian(sheaf, normalization).T @ out_laplacian(sheaf, normalization)


def released_order(
    graph: Graph,
    source: ConformalMaps | Tensor,
    target: ConformalMaps | Tensor,
    normalization: str | None = None,
) -> Operator:
    """R, from the Laplacians of the validated sheaf."""
    sheaf = FlatSheaf(graph, source, target)
    return out_laplacian(sheaf, normalization) @ in_laplacian(sheaf, normalization).T


DIFFUSIONS: dict[str, Diffusion] = {
    "paper": paper_order,
    "released": released_order,
    "paper-augmented": paper_diffusion,
    "released-augmented": released_diffusion,
}


def matrix(operator: Operator) -> Tensor:
    """The operator as ``(nd, nd)``, column by column from its own product."""
    n, d = operator.domain
    columns = torch.eye(n * d, dtype=torch.float64).reshape(n, d, n * d)
    return operator.mv(columns).reshape(n * d, n * d)


def blocks(operator: Operator) -> Tensor:
    """The d×d blocks, ``(n, n, d, d)``: how row node i depends on column node j."""
    n, d = operator.domain
    return matrix(operator).reshape(n, d, n, d).transpose(1, 2)


def depends(operator: Operator) -> Tensor:
    """``(n, n)``: whether block (i, j) is anything but exactly zero."""
    return (blocks(operator) != 0).any(-1).any(-1)


def silenced(maps: ConformalMaps, nodes: Iterable[int]) -> ConformalMaps:
    """The same maps, exactly zero at ``nodes``."""
    scale = maps.scale.clone()
    scale[list(nodes)] = 0
    return ConformalMaps(scale, maps.orthogonal)


def only(maps: ConformalMaps, nodes: Iterable[int]) -> ConformalMaps:
    """The same maps, exactly zero everywhere but at ``nodes``."""
    return silenced(maps, set(range(len(maps.scale))) - set(nodes))


def random_pair(n: int, d: int, seed: int = 0) -> tuple[ConformalMaps, ConformalMaps]:
    """Source and target maps, none of them zero."""
    return random_conformal(n, d, seed), random_conformal(n, d, seed + 10)


def simple(n: int, pairs: Iterable[tuple[int, int]]) -> Graph:
    """The graph of these undirected edges, each both ways."""
    return Graph(bidirected(torch.tensor(sorted(pairs)).T), n)


@st.composite
def simple_graphs(draw: st.DrawFn, min_nodes: int = 2, max_nodes: int = 6) -> Graph:
    """Bidirected, without loops and parallel edges, with at least one edge."""
    n = draw(st.integers(min_nodes, max_nodes))
    pairs = list(combinations(range(n), 2))
    return simple(n, draw(st.sets(st.sampled_from(pairs), min_size=1)))


def neighbours(graph: Graph) -> list[list[int]]:
    """N(i) of every node."""
    lists: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    for j, i in graph.edge_index.T.tolist():
        lists[i].append(j)
    return lists
