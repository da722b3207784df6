"""Distances along the flow, shortest paths, and the bound by powers of the adjacency."""

from __future__ import annotations

from itertools import pairwise

import networkx
import pytest
import torch
from analysis.networks import gcn
from graphs import ODD_GRAPHS, graphs, path, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.analysis import adjacency_bound, average_by_hop, hop_distances, shortest_path

FEW = settings(deadline=None, max_examples=40, derandomize=True)


def reference(graph: Graph) -> Tensor:
    """``(n, n)``: networkx's distance from j to i, -1 without a path."""
    directed = networkx.DiGraph()
    directed.add_nodes_from(range(graph.num_nodes))
    directed.add_edges_from(graph.edge_index.T.tolist())
    out = torch.full((graph.num_nodes, graph.num_nodes), -1)
    for j, lengths in networkx.all_pairs_shortest_path_length(directed):
        for i, length in lengths.items():
            out[i, j] = length
    return out


@FEW
@given(graphs(max_nodes=9, max_edges=20))
def test_distances_are_those_of_networkx(graph: Graph) -> None:
    want = reference(graph)
    assert torch.equal(hop_distances(graph), want)
    assert torch.equal(hop_distances(graph, flow="target_to_source"), want.T)


def test_many_targets_are_searched_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    n, edges = ODD_GRAPHS["random-directed"]
    want = hop_distances(edges, num_nodes=n)
    monkeypatch.setattr("coopsheaf.analysis.hops._TOGETHER", 2)
    assert torch.equal(hop_distances(edges, num_nodes=n), want)
    assert torch.equal(hop_distances(edges, [7, 2, 2], num_nodes=n), want[[7, 2, 2]])


def test_direction_and_limit() -> None:
    one_way = torch.tensor([[0, 1, 2], [1, 2, 3]])
    assert hop_distances(one_way, 2).tolist() == [[2, 1, 0, -1]]
    assert hop_distances(one_way, 2, flow="target_to_source").tolist() == [[-1, -1, 0, 1]]
    assert hop_distances(one_way, 3, max_hops=2).tolist() == [[-1, 2, 1, 0]]
    assert hop_distances(one_way, 3, max_hops=0).tolist() == [[-1, -1, -1, 0]]


@FEW
@given(graphs(max_nodes=8, max_edges=20), st.data())
def test_shortest_paths_are_paths_and_shortest(graph: Graph, data: st.DataObject) -> None:
    node = st.integers(0, graph.num_nodes - 1)
    source, target = data.draw(node), data.draw(node)
    distance = int(reference(graph)[target, source])
    if distance < 0:
        with pytest.raises(ValueError, match="`target` must be reachable from `source`"):
            shortest_path(graph, source, target)
        return
    found = shortest_path(graph, source, target)
    edges = set(map(tuple, graph.edge_index.T.tolist()))
    assert len(found) == distance + 1
    assert (found[0], found[-1]) == (source, target)
    assert all(step in edges for step in pairwise(found))
    assert shortest_path(graph.reverse(), source, target, flow="target_to_source") == found


def dense_adjacency(n: int, edges: Tensor, loops: bool) -> Tensor:
    a = torch.zeros(n, n, dtype=torch.float64)
    for j, i in edges.T.tolist():
        a[i, j] += 1
    if loops:
        a.fill_diagonal_(1)
    degree = a.sum(1)
    root = torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0.0)
    return root[:, None] * a * root


@pytest.mark.parametrize("graph", ODD_GRAPHS)
@pytest.mark.parametrize("loops", [True, False])
def test_bound_is_the_power_of_a_dense_matrix(graph: str, loops: bool) -> None:
    n, edges = ODD_GRAPHS[graph]
    a = dense_adjacency(n, edges, loops)
    want = 8 * torch.linalg.matrix_power(a, 3)
    got = adjacency_bound(edges, 3, constant=2, num_nodes=n, self_loops=loops)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    mixed = adjacency_bound(
        edges, 2, constant=[2.0, 3.0], residual=0.5, num_nodes=n, targets=[0], self_loops=loops
    )
    eye = torch.eye(n, dtype=torch.float64)
    want = (0.5 * eye + 2 * a) @ (0.5 * eye + 3 * a)
    torch.testing.assert_close(mixed, want[:1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("act", ["relu", "tanh"])
def test_a_gcn_obeys_the_bound(act: str) -> None:
    """Spectral norms of every block are below ∏ ‖W_l‖₂ · (Â^t)_ij, for every pair."""
    n, edges = ODD_GRAPHS["bidirected"]
    model, x = gcn(3, act), randn(n, 5)
    weights = [layer.lin.weight.detach() for layer in model.layers]
    constants = [float(torch.linalg.matrix_norm(weight, 2)) for weight in weights]
    jacobian = torch.autograd.functional.jacobian(lambda z: model(z, edges), x)
    spectral = torch.linalg.matrix_norm(jacobian.transpose(1, 2), 2)  # (n, n)
    bound = adjacency_bound(edges, 3, constant=constants, num_nodes=n)
    assert (spectral <= bound * (1 + 1e-12)).all()
    assert (spectral > 0.01 * bound).any()  # and not by far


def test_averages_by_hop() -> None:
    distances = hop_distances(path(4), [0, 1])
    values = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]).double()
    assert average_by_hop(values, distances).tolist() == [3.5, (2 + 5 + 7) / 3, 5.5, 4.0]
    none = torch.full((1, 2), -1)
    assert average_by_hop(torch.ones(1, 2), none).tolist() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hop_distances(path(3), 3), r"`targets` must hold indices of the 3 nodes.*got 3"),
        (lambda: hop_distances(path(3), -1), "`targets` must hold indices"),
        (lambda: hop_distances(path(3), [0.5]), "`targets` must hold at least one integer"),
        (lambda: hop_distances(path(3), []), "`targets` must hold at least one integer"),
        (lambda: hop_distances(path(3), "ab"), "`targets` must hold at least one integer"),
        (lambda: hop_distances(path(3), flow="up"), "`flow` must be one of"),
        (lambda: hop_distances(path(3), max_hops=-1), "`max_hops` must be an integer"),
        (lambda: shortest_path(path(3), 5, 0), "`source` must hold indices"),
        (lambda: shortest_path(path(3), 0, 1.5), "`target` must be an integer"),
        (lambda: adjacency_bound(path(3), 2, constant=[1.0]), "`constant` must be a number or one"),
        (lambda: adjacency_bound(path(3), -1), "`num_layers` must be an integer"),
        (lambda: average_by_hop(torch.ones(2), torch.ones(3)), "`values` must have the shape"),
    ],
)
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
