"""The prepared graph."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from graphs import graphs
from hypothesis import given, settings
from torch_geometric import EdgeIndex
from torch_geometric.utils import degree

from coopsheaf import Graph
from coopsheaf.sheaves.graph import as_graph

EDGES = torch.tensor([[2, 0, 0, 2], [1, 1, 2, 2]])


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_compressed_lists_hold_every_edge_once(graph: Graph) -> None:
    n = graph.num_nodes
    for csr, rows, others in (
        (graph.by_target, graph.target, graph.source),
        (graph.by_source, graph.source, graph.target),
    ):
        assert csr.ptr[0] == 0
        assert csr.ptr[-1] == graph.num_edges
        assert torch.equal(csr.edge.sort().values, torch.arange(graph.num_edges))
        assert torch.equal(csr.other, others[csr.edge])
        for i in range(n):
            assert (rows[csr.edge[csr.ptr[i] : csr.ptr[i + 1]]] == i).all()
    assert torch.equal(graph.in_degree, degree(graph.target, n, torch.int64))
    assert torch.equal(graph.out_degree, degree(graph.source, n, torch.int64))


def test_reverse_is_the_graph_of_the_reversed_edges() -> None:
    graph, expected = Graph(EDGES, 4).reverse(), Graph(EDGES.flip(0), 4)
    assert torch.equal(graph.edge_index, expected.edge_index)
    for got, want in zip(
        (*graph.by_target, *graph.by_source),
        (*expected.by_target, *expected.by_source),
        strict=True,
    ):
        assert torch.equal(got, want)


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_self_loops_come_last_in_the_list_and_in_every_row(graph: Graph) -> None:
    n = graph.num_nodes
    loops = torch.arange(n).expand(2, n)
    got, expected = graph.with_self_loops(), Graph(torch.cat([graph.edge_index, loops], dim=1), n)
    assert torch.equal(got.edge_index, expected.edge_index)
    for one, other in zip(
        (*got.by_target, *got.by_source),
        (*expected.by_target, *expected.by_source),
        strict=True,
    ):
        assert torch.equal(one, other)


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_partners_are_the_reversed_edges(graph: Graph) -> None:
    both_ways = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
    doubled = Graph(both_ways, graph.num_nodes)
    partner = doubled.partners()
    assert torch.equal(both_ways[:, partner], both_ways.flip(0))
    assert torch.equal(partner[partner], torch.arange(doubled.num_edges))


def test_a_lone_edge_has_no_partner() -> None:
    with pytest.raises(ValueError, match=r"both ways; \(2, 1\) is there without its reverse"):
        Graph(EDGES).partners()
    with pytest.raises(ValueError, match="a parallel edge occurs more often"):
        Graph(torch.tensor([[0, 0, 1], [1, 1, 0]])).partners()


def test_what_is_derived_is_derived_once_and_not_copied() -> None:
    graph = Graph(EDGES, 4)
    assert graph.with_self_loops() is graph.with_self_loops()
    calls = []
    for _ in range(2):
        graph.remember("count", lambda graph: calls.append(graph))
    assert calls == [graph]
    assert graph.reverse().with_self_loops() is not graph.with_self_loops()
    assert copy.deepcopy(graph)._memo == {}


def test_what_is_derived_in_inference_mode_can_be_trained_on() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 2]]))
    with torch.inference_mode():
        kept = graph.remember("degree", lambda graph: graph.in_degree.double())
    assert not kept.is_inference()
    x = torch.ones(3).double().requires_grad_()
    (graph.remember("degree", lambda graph: torch.zeros(3)) * x).sum().backward()
    assert torch.equal(x.grad, torch.tensor([0.0, 1.0, 1.0]).double())


def test_what_is_derived_remembers_no_gradients() -> None:
    weight = torch.ones(3).requires_grad_()
    graph = Graph(torch.tensor([[0, 1], [1, 2]]))
    assert not graph.remember("scaled", lambda graph: graph.in_degree * weight).requires_grad


def test_edges_keep_their_order_and_number_of_nodes() -> None:
    graph = Graph(EDGES)
    assert torch.equal(graph.edge_index, EDGES)
    assert graph.num_nodes == 3
    assert repr(Graph(EDGES, 5)) == "Graph(num_nodes=5, num_edges=4)"
    assert Graph(torch.empty(2, 0, dtype=torch.int64)).num_nodes == 0


def test_accepts_int32_and_edge_index_objects() -> None:
    assert torch.equal(Graph(EDGES.int()).edge_index, EDGES)
    assert torch.equal(Graph(EdgeIndex(EDGES)).edge_index, EDGES)


def test_moves_between_devices() -> None:
    moved = Graph(EDGES, 4).to("cpu")
    assert torch.equal(moved.edge_index, EDGES)
    assert moved.device == torch.device("cpu")
    assert Graph(EDGES, 4).to("meta").by_target.ptr.device.type == "meta"


def test_is_immutable() -> None:
    with pytest.raises(AttributeError, match="num_nodes"):
        Graph(EDGES).num_nodes = 7


def test_the_callers_tensor_may_change_afterwards() -> None:
    edges = EDGES.clone()
    graph = Graph(edges, 4)
    edges.zero_()
    assert torch.equal(graph.edge_index, EDGES)


def test_nothing_can_be_deleted() -> None:
    with pytest.raises(AttributeError, match="'source' cannot be deleted"):
        del Graph(EDGES).source


def test_numpy_integers_count_as_integers() -> None:
    assert Graph(EDGES, np.int64(4)).num_nodes == 4


def test_copies_and_pickles() -> None:
    graph = Graph(EDGES, 4)
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert torch.equal(other.edge_index, EDGES)
        assert other.num_nodes == 4
        assert torch.equal(other.by_source.ptr, graph.by_source.ptr)


def test_as_graph_prepares_once() -> None:
    graph = Graph(EDGES, 4)
    assert as_graph(graph) is graph
    assert as_graph(graph, 4) is graph
    with pytest.raises(ValueError, match="a graph of 4 nodes; expected 5 nodes"):
        as_graph(graph, 5)


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "message"),
    [
        (EDGES.tolist(), None, "`edge_index` must be a torch.Tensor; got list"),
        (EDGES.float(), None, "`edge_index` must have dtype int64 or int32; got torch.float32"),
        (EDGES.bool(), None, "dtype int64 or int32; got torch.bool"),
        (EDGES.T, None, r"shape \(2, m\): sources above targets; got shape \(4, 2\)"),
        (EDGES[0], None, r"got shape \(4,\)"),
        (EDGES - 1, None, "must not hold negative node indices; got -1"),
        (EDGES, 2, "below the number of nodes, 2; got 2"),
        (EDGES, -1, "`num_nodes` must be an integer of at least 0; got -1"),
        (EDGES, 3.0, "`num_nodes` must be an integer of at least 0; got 3.0"),
        (torch.eye(3).long().to_sparse(), 4, r"shape \(4, 4\) as a sparse matrix"),
    ],
)
def test_bad_input(edge_index: object, num_nodes: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph(edge_index, num_nodes)  # type: ignore[arg-type]
