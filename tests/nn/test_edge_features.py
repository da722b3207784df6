"""Means of the features of edges at the nodes, beside loops that say what they are."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, generator, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.nn import EdgeMeans, edge_means

K = 3


def loop_means(edges: Tensor, attr: Tensor, n: int) -> EdgeMeans:
    """The equation, node by node and edge by edge."""
    sides = []
    for end in (1, 0):  # the targets for the edges into a node, the sources for those out of it
        rows = []
        for node in range(n):
            own = [attr[e] for e in range(edges.shape[1]) if int(edges[end, e]) == node]
            rows.append(sum(own) / len(own) if own else attr.new_zeros(attr.shape[1]))
        sides.append(torch.stack(rows) if rows else attr.new_zeros(0, attr.shape[1]))
    return EdgeMeans(*sides)


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_means_are_those_of_a_loop_and_so_are_their_gradients(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    attr, weights = randn(edges.shape[1], K), randn(n, 2 * K, seed=1)
    values, gradients = [], []
    for means in (edge_means(Graph(edges, n), attr.requires_grad_()), loop_means(edges, attr, n)):
        joined = torch.cat(means, dim=1)
        values.append(joined)
        loss = (joined.square() * weights).sum()
        used = edges.shape[1] > 0
        gradients.append(torch.autograd.grad(loss, attr)[0] if used else attr)
    assert_close(values[0], values[1], rtol=0, atol=1e-14)
    assert_close(gradients[0], gradients[1], rtol=0, atol=1e-14)


def test_means_by_hand() -> None:
    """A loop is on both sides, parallel edges count one by one, and nobody is at node 3."""
    edges = torch.tensor([[0, 0, 1, 2], [1, 1, 0, 2]])
    attr = torch.tensor([[1.0], [3.0], [5.0], [7.0]])
    means = edge_means(Graph(edges, 4), attr)
    assert means.into.flatten().tolist() == [5, 2, 7, 0]
    assert means.out.flatten().tolist() == [2, 5, 7, 0]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_order_of_the_edges_does_not_count(seed: int) -> None:
    rng = generator(seed)
    edges, attr = torch.randint(0, 5, (2, 12), generator=rng), randn(12, K, seed=seed)
    order = torch.randperm(12, generator=rng)
    got, want = (
        edge_means(Graph(edges[:, order], 7), attr[order]),
        edge_means(Graph(edges, 7), attr),
    )
    assert_close(torch.cat(got), torch.cat(want), rtol=0, atol=1e-14)


def test_sums_of_halves_go_on_growing() -> None:
    edges = torch.zeros(2, 4096, dtype=torch.int64)
    means = edge_means(Graph(edges, 1), torch.ones(4096, 1, dtype=torch.bfloat16))
    assert means.into.item() == means.out.item() == 1


def test_what_does_not_fit_is_refused() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), 2)
    with pytest.raises(ValueError, match=r"`edge_attr` must have shape \(m, k\) with m = 2"):
        edge_means(graph, randn(3, K))
    with pytest.raises(ValueError, match="`edge_attr` must have a floating point dtype"):
        edge_means(graph, torch.ones(2, K, dtype=torch.int64))
