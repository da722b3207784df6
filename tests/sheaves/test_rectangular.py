"""Stalks of edges of another dimension than those of nodes."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_weight
from laws import DIRECTED, EXACT, UNDIRECTED, check_operator, check_sheaf
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import DirectedSheaf, Graph, Sheaf, sheaf_laplacian, spectrum
from coopsheaf.sheaves import (
    NonlinearLaplacian,
    coboundary,
    cohomology,
    magnetic_sheaf,
    sheaf_adjacency,
)

SIZES = [(1, 2), (3, 2), (2, 3)]  # of the stalks of edges and of nodes
EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)


def undirected(name: str, e: int, d: int) -> Sheaf:
    n, edges = ODD_GRAPHS[name]
    m = edges.shape[1]
    return Sheaf(edges, randn(m, 2, e, d), n, edge_weight=random_weight(m))


def directed(name: str, e: int, d: int) -> DirectedSheaf:
    n, edges = ODD_GRAPHS[name]
    m = edges.shape[1]
    weight = random_weight(m)
    return DirectedSheaf(edges, randn(m, e, d), randn(m, e, d, seed=1), n, edge_weight=weight)


def squared_coboundary(sheaf: Sheaf) -> Tensor:
    """δᵀ W δ, row by row of δ."""
    m, (e, d) = sheaf.num_edges, sheaf.maps.shape[-2:]
    delta = torch.zeros(m, e, sheaf.num_nodes, d).double()
    for k, (u, v) in enumerate(sheaf.edge_index.T.tolist()):
        delta[k, :, v] += sheaf.maps[k, 1]
        delta[k, :, u] -= sheaf.maps[k, 0]
    flat = delta.view(m * e, sheaf.num_nodes * d)
    return flat.T @ (sheaf.edge_weight.repeat_interleave(e)[:, None] * flat)


@EACH_GRAPH
@pytest.mark.parametrize(("e", "d"), SIZES)
def test_the_laplacian_is_the_square_of_the_coboundary(name: str, e: int, d: int) -> None:
    sheaf = undirected(name, e, d)
    assert (sheaf.stalk_dim, sheaf.edge_stalk_dim) == (d, e)
    laplacian = sheaf_laplacian(sheaf)
    assert_close(laplacian.to_dense(), squared_coboundary(sheaf), **EXACT)
    delta = coboundary(sheaf)
    check_operator(delta)
    assert delta.codomain == (sheaf.num_edges, e)
    assert_close((delta.T @ delta).to_dense(), laplacian.to_dense(), **EXACT)
    assert spectrum(laplacian).min() > -1e-10
    values = spectrum(sheaf_laplacian(sheaf, "augmented"))
    assert values.min() > -1e-10
    assert values.max() < 2 + 1e-10


@pytest.mark.parametrize("name", ["random-directed", "self-loops", "parallel", "no-edges"])
@pytest.mark.parametrize(("e", "d"), SIZES)
def test_all_laws(name: str, e: int, d: int) -> None:
    for kind, build in UNDIRECTED.items():
        # A block diagonal of low rank has no inverse root that a derivative can be taken of twice.
        if kind != "sheaf-plain":
            check_sheaf(undirected(name, e, d), build)
    for kind, build in DIRECTED.items():
        if not kind.endswith("plain"):
            check_sheaf(directed(name, e, d), build)


@pytest.mark.parametrize(("e", "d"), SIZES)
def test_what_is_made_of_such_sheaves(e: int, d: int) -> None:
    sheaf = undirected("random-directed", e, d)
    x = randn(sheaf.num_nodes, d, 2)
    laplacian, adjacency = sheaf_laplacian(sheaf), sheaf_adjacency(sheaf)
    assert_close(NonlinearLaplacian(sheaf, lambda y: y)(x), laplacian.mv(x), **EXACT)
    blocks = (laplacian + adjacency).to_dense().view(9, d, 9, d)  # D is what is left
    off = ~torch.eye(9, dtype=torch.bool)
    assert blocks.permute(0, 2, 1, 3)[off].abs().max() < 1e-12
    turned = magnetic_sheaf(sheaf, torch.zeros(sheaf.num_edges), 0.3)
    assert (turned.stalk_dim, turned.edge_stalk_dim) == (2 * d, 2 * e)
    assert_close(sheaf_laplacian(turned).mv(torch.cat([x, x], 1))[:, :d], laplacian.mv(x), **EXACT)


@pytest.mark.parametrize(("e", "d"), SIZES)
def test_both_cohomologies_count_what_euler_says(e: int, d: int) -> None:
    sheaf = undirected("random-directed", e, d)
    found = cohomology(sheaf)
    n, m = sheaf.num_nodes, sheaf.num_edges
    assert found.sections.shape[-1] - found.obstructions.shape[-1] == n * d - m * e
    assert found.obstructions.shape[:2] == (m, e)
    if found.obstructions.shape[-1]:
        explained = coboundary(sheaf).T.mv(found.obstructions)
        assert_close(explained, torch.zeros_like(explained), **EXACT)


def test_a_coarse_question_has_more_sections() -> None:
    """One number per edge, the first coordinate of both ends: the second is free."""
    edges = torch.tensor([[0, 1], [1, 2]])
    first = torch.tensor([[1.0, 0.0]]).double().expand(2, 2, 1, 2)
    assert cohomology(Sheaf(edges, first)).sections.shape[-1] == 1 + 3


def test_a_doubled_list_is_folded() -> None:
    graph = Graph(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    maps = randn(4, 3, 2)
    sheaf = Sheaf.from_bidirected(graph, maps)
    assert sheaf.maps.shape == (2, 2, 3, 2)
    assert torch.equal(sheaf.maps[0], torch.stack([maps[0], maps[1]]))
