"""P5: with identity maps the sheaf Laplacians are the graph Laplacians."""

from __future__ import annotations

import pytest
import torch
from graphs import bidirected, graphs
from hypothesis import given
from hypothesis import strategies as st
from paper.operators import DIFFUSIONS, EXACT, FEW, matrix
from torch import Tensor

from coopsheaf import (
    ConformalMaps,
    DirectedSheaf,
    FlatSheaf,
    Graph,
    in_laplacian,
    out_laplacian,
    spectrum,
)


def adjacency(graph: Graph) -> Tensor:
    """A_ij: the number of edges i → j, ``(n, n)``."""
    n = graph.num_nodes
    ones = torch.ones(graph.num_edges, dtype=torch.float64)
    counts = torch.zeros(n, n, dtype=torch.float64)
    return counts.index_put((graph.source, graph.target), ones, accumulate=True)


def on_stalks(graph_matrix: Tensor, d: int) -> Tensor:
    """M ⊗ I_d."""
    return torch.kron(graph_matrix.contiguous(), torch.eye(d, dtype=torch.float64))


def identities(count: int, d: int) -> ConformalMaps:
    eye = torch.eye(d, dtype=torch.float64)
    return ConformalMaps(torch.ones(count, dtype=torch.float64), eye.repeat(count, 1, 1))


@FEW
@given(graph=graphs(), d=st.integers(1, 3))
def test_directed_graphs(graph: Graph, d: int) -> None:
    """L_out = (D_out - A)ᵀ ⊗ I and L_in = (D_in - A) ⊗ I, on any directed multigraph."""
    a = adjacency(graph)
    at_nodes, at_edges = identities(graph.num_nodes, d), identities(graph.num_edges, d).orthogonal
    for sheaf in (
        FlatSheaf(graph, at_nodes, at_nodes),
        DirectedSheaf(graph, at_edges, at_edges),
    ):
        expected = on_stalks((a.sum(1).diag() - a).T, d)
        torch.testing.assert_close(matrix(out_laplacian(sheaf)), expected, **EXACT)
        expected = on_stalks(a.sum(0).diag() - a, d)
        torch.testing.assert_close(matrix(in_laplacian(sheaf)), expected, **EXACT)


def test_one_neighbourhood_for_both_sums_needs_both_directions() -> None:
    """On the one-way path 0 → 1 → 2 the sums run over out- and over in-neighbours."""
    graph = Graph(torch.tensor([[0, 1], [1, 2]]))
    sheaf = FlatSheaf(graph, identities(3, 1), identities(3, 1))
    one_way = torch.tensor([[1.0, 0, 0], [-1, 1, 0], [0, -1, 0]], dtype=torch.float64)
    torch.testing.assert_close(matrix(out_laplacian(sheaf)), one_way, **EXACT)
    both = torch.tensor([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]], dtype=torch.float64)
    graph = Graph(bidirected(graph.edge_index))
    sheaf = FlatSheaf(graph, identities(3, 1), identities(3, 1))
    torch.testing.assert_close(matrix(out_laplacian(sheaf)), both, **EXACT)


@pytest.mark.parametrize("name", DIFFUSIONS)
@FEW
@given(graph=graphs(), d=st.integers(1, 3))
def test_bidirected_graphs(name: str, graph: Graph, d: int) -> None:
    """P = R = (L ⊗ I)², symmetric and positive semi-definite; augmented, with (D + I)^(-1/2)."""
    graph = Graph(bidirected(graph.edge_index), graph.num_nodes)
    a = adjacency(graph)
    degree = a.sum(0)
    laplacian = degree.diag() - a
    if name.endswith("augmented"):
        root = (degree + 1).rsqrt()
        laplacian = root[:, None] * laplacian * root
    maps = identities(graph.num_nodes, d)
    operator = DIFFUSIONS[name](graph, maps, maps)
    dense = matrix(operator)
    torch.testing.assert_close(dense, on_stalks(laplacian @ laplacian, d), **EXACT)
    torch.testing.assert_close(dense, dense.T, **EXACT)
    assert torch.linalg.eigvalsh(dense).min() > -1e-10


def test_both_laplacians_agree_on_bidirected_graphs() -> None:
    """Bidirected with identity maps, L_out = L_in = L ⊗ I, with real spectrum from 0 upwards."""
    graph = Graph(bidirected(torch.tensor([[0, 1, 2, 0], [1, 2, 3, 2]])))
    sheaf = FlatSheaf(graph, identities(4, 2), identities(4, 2))
    a = adjacency(graph)
    expected = on_stalks(a.sum(0).diag() - a, 2)
    for laplacian in (out_laplacian(sheaf), in_laplacian(sheaf)):
        torch.testing.assert_close(matrix(laplacian), expected, **EXACT)
        values = spectrum(laplacian)
        assert not values.is_complex()
        torch.testing.assert_close(values[:2], torch.zeros(2).double(), rtol=0, atol=1e-12)
        assert (values[2:] > 0.1).all()
