"""What edges carry of a Laplacian."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, random_directed, random_flat, random_sheaf
from laws import EXACT, check_operator, check_sheaf
from torch.testing import assert_close

from coopsheaf import Graph, Sheaf, out_laplacian, sheaf_laplacian
from coopsheaf.sheaves import along_edges, paper_diffusion, sheaf_adjacency
from coopsheaf.sheaves.laplacian import GraphOperator
from coopsheaf.sheaves.operator import BlockDiagonal

ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)


@ALL_GRAPHS
@pytest.mark.parametrize("normalization", [None, "augmented", "plain"])
def test_a_laplacian_is_its_diagonal_minus_the_adjacency(name: str, normalization) -> None:
    n, edge_index = ODD_GRAPHS[name]
    graph = Graph(edge_index, n)
    undirected = random_sheaf(graph, 2, weighted=True)
    check_sheaf(undirected, lambda sheaf: sheaf_adjacency(sheaf, normalization))
    flat = random_flat(graph, 2, weighted=True)
    for laplacian in (
        sheaf_laplacian(undirected, normalization),
        out_laplacian(flat, normalization),
        out_laplacian(random_directed(graph, 2), normalization),
        GraphOperator(graph, torch.rand(n).double(), None, 2),
    ):
        carried = along_edges(laplacian)
        check_operator(carried)
        own = BlockDiagonal(laplacian.diagonal, 2).to_dense() if n else laplacian.to_dense()
        assert_close(own - carried.to_dense(), laplacian.to_dense(), **EXACT)


def test_identity_maps_give_the_graph() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    adjacency = sheaf_adjacency(Sheaf.constant(edges, 1, dtype=torch.float64)).to_dense()
    assert adjacency.tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_augmented_it_does_not_expand() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    adjacency = sheaf_adjacency(random_sheaf(Graph(edge_index, n), 3), "augmented").to_dense()
    values = torch.linalg.eigvalsh(adjacency)
    assert values.abs().max() <= 1


def test_products_are_refused() -> None:
    n, edge_index = ODD_GRAPHS["path"]
    flat = random_flat(Graph(edge_index, n), 2)
    with pytest.raises(ValueError, match="`operator` must be a Laplacian; got Product"):
        along_edges(paper_diffusion(flat.graph, flat.source, flat.target))
