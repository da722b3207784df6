"""Places of nodes against matrices that are multiplied and decomposed as the definitions say."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, path
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from coopsheaf.data.encodings import encode_graphs, laplacian_eigenpairs, random_walks

UNDIRECTED = {
    "path": (14, path(14)),
    "bidirected": ODD_GRAPHS["bidirected"],
    "two parts": (12, torch.cat([path(5), path(6) + 5], dim=1)),  # and a node alone
    "no-edges": ODD_GRAPHS["no-edges"],
    "single-node": ODD_GRAPHS["single-node"],
}
EACH = pytest.mark.parametrize("name", UNDIRECTED)


def dense(n: int, edges: Tensor) -> Tensor:
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for u, v in edges.T.tolist():
        matrix[u, v] += 1
    return matrix


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_walks_return_as_powers_of_the_matrix_say(name: str, steps: int) -> None:
    n, edges = ODD_GRAPHS[name]
    a = dense(n, edges)
    p = a / a.sum(1, keepdim=True).clamp(min=1)
    want = torch.stack([torch.linalg.matrix_power(p, t).diag() for t in range(1, steps + 1)], 1)
    got = random_walks(edges, n, steps)
    assert got.dtype == torch.float32
    assert_close(got.double(), want, rtol=0, atol=1e-6)


def test_walks_are_those_of_pyg() -> None:
    data = Data(edge_index=path(11), num_nodes=11, x=torch.zeros(11, 1))
    want = AddRandomWalkPE(20, attr_name="pe")(data).pe
    assert_close(random_walks(path(11), 11), want, rtol=0, atol=1e-6)


@EACH
def test_eigenpairs_are_the_smallest_of_the_laplacian(name: str) -> None:
    n, edges = UNDIRECTED[name]
    a = dense(n, edges)
    laplacian = a.sum(1).diag() - a
    pe, k = laplacian_eigenpairs(edges, n), min(10, n)
    assert pe.shape == (n, 20)
    assert pe.dtype == torch.float32
    vectors, values = pe[:, :10].double(), pe[:, 10:].double()
    assert bool(vectors[:, k:].isnan().all())
    assert bool(values[:, k:].isnan().all())
    v, w = vectors[:, :k], values[0, :k]
    assert torch.equal(values[:, :k], w.expand(n, k))
    assert_close(w, torch.linalg.eigvalsh(laplacian)[:k].clamp(min=0), rtol=0, atol=1e-5)
    assert_close(laplacian @ v, v * w, rtol=0, atol=1e-5)
    assert_close(v.T @ v, torch.eye(k).double(), rtol=0, atol=1e-5)


def test_the_spectrum_of_a_ring_is_known() -> None:
    n = 12
    edges = bidirected(torch.stack([torch.arange(n), (torch.arange(n) + 1) % n]))
    want = np.sort(2 - 2 * np.cos(2 * np.pi * np.arange(n) / n))[:10]
    assert_close(laplacian_eigenpairs(edges, n)[3, 10:].double().numpy(), want, rtol=0, atol=1e-6)
    theirs = nx.laplacian_spectrum(nx.cycle_graph(n))[:10]
    assert_close(np.sort(theirs), want, rtol=0, atol=1e-9)


def test_a_directed_graph_has_no_such_eigenvectors() -> None:
    with pytest.raises(ValueError, match="`edge_index` must hold every edge both ways"):
        laplacian_eigenpairs(torch.tensor([[0], [1]]), 2)
    graphs = [Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0], [1]]))]
    with pytest.raises(ValueError, match="mine: graph 0: `edge_index` must"):
        encode_graphs(graphs, "lappe", "mine")
    with pytest.raises(ValueError, match="`pe` must be one of 'rwse', 'lappe'"):
        encode_graphs(graphs, "laplace", "mine")
