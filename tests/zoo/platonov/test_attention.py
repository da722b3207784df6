"""Attention along edges against one message per edge."""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor
from graphs import ODD_GRAPHS, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.platonov.attention import attend, edge_scores, edge_softmax

HEADS, C = 3, 4


def softmax_target_by_target(scores: Tensor, target: Tensor, n: int) -> Tensor:
    out = torch.zeros_like(scores)
    for i in range(n):
        out = (
            torch.where((target == i).unsqueeze(-1), scores, -torch.inf)
            .softmax(0)
            .where((target == i).unsqueeze(-1), out)
        )
    return out


def same_gradients(got: Tensor, expected: Tensor, leaves: list[Tensor]) -> None:
    assert_close(got, expected, rtol=0, atol=1e-12)
    cotangent = randn(*expected.shape, seed=9)
    ours = torch.autograd.grad(got, leaves, cotangent, materialize_grads=True)
    theirs = torch.autograd.grad(expected, leaves, cotangent, materialize_grads=True)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_weights_into_a_node_sum_to_one(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    graph = Graph(edges, n)
    weights = edge_softmax(100 * randn(graph.num_edges, HEADS), graph)
    assert (weights >= 0).all()
    total = torch.zeros(n, HEADS, dtype=torch.float64).index_add(0, graph.target, weights)
    heard = (graph.in_degree > 0).double().unsqueeze(-1).expand(n, HEADS)
    assert_close(total, heard, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["random-directed", "parallel", "isolated", "self-loops"])
def test_softmax_is_that_of_each_target(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    scores = randn(edges.shape[1], HEADS).requires_grad_()
    expected = softmax_target_by_target(scores, edges[1], n)
    same_gradients(edge_softmax(scores, Graph(edges, n)), expected, [scores])


def test_scores_without_bound_stay_finite() -> None:
    n, edges = ODD_GRAPHS["parallel"]
    scores = torch.full((edges.shape[1], 1), 1e6, dtype=torch.float64)
    weights = edge_softmax(scores, Graph(edges, n))
    assert_close(weights.flatten(), torch.tensor([1, 1, 1, 3, 3], dtype=torch.float64) / 3)


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_scores_and_sums_are_those_of_messages(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    graph, (source, target) = Graph(edges, n), edges
    k, q = randn(n, HEADS, C).requires_grad_(), randn(n, HEADS, C, seed=1).requires_grad_()
    same_gradients(edge_scores(k, q, graph), (k[target] * q[source]).sum(-1), [k, q])
    weights = randn(graph.num_edges, HEADS, seed=2).requires_grad_()
    messages = weights.unsqueeze(-1) * q[source]
    expected = torch.zeros_like(q).index_add(0, target, messages)
    same_gradients(attend(q, weights, graph), expected, [q, weights])


def test_nothing_has_the_size_of_edges_times_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    from coopsheaf.sheaves.kernels import sparse

    n, m, heads, c = 20, 2_000, 4, 16
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 4 * n * heads * c)
    graph = Graph(torch.randint(0, n, (2, m)), n)
    k, q, v = (randn(n, heads, c, seed=seed).requires_grad_() for seed in range(3))
    with LargestTensor() as largest:
        weights = edge_softmax(edge_scores(k, q, graph), graph)
        attend(v, weights, graph).sum().backward()
    assert largest.numel <= m * heads, largest.where
