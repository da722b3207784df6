"""The normalised adjacency matrix against the dense one, and against PyG's."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_weight
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from zoo.dense import adjacency, symmetric

from coopsheaf import Graph
from coopsheaf.zoo.plain.perceptron import Perceptron
from coopsheaf.zoo.plain.propagation import Propagation

EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)


@EACH_GRAPH
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_it_is_the_dense_matrix(name: str, loops: bool, weighted: bool) -> None:
    n, edges = ODD_GRAPHS[name]
    weight = random_weight(edges.shape[1]).requires_grad_() if weighted else None
    x, probe = randn(n, 3).requires_grad_(), randn(n, 3, seed=1)
    got = Propagation(Graph(edges, n), x, weight, loops=loops)(x)
    want = symmetric(adjacency(n, edges, weight), loops=loops) @ x
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves = [x] if weight is None else [x, weight]
    for a, b in zip(
        torch.autograd.grad((got * probe).sum(), leaves, allow_unused=True),
        torch.autograd.grad((want * probe).sum(), leaves, allow_unused=True),
        strict=True,
    ):
        assert_close(a, b, rtol=0, atol=1e-10)


@EACH_GRAPH
def test_weights_of_edges_come_on_top(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    weight, gate, x = random_weight(edges.shape[1]), random_weight(edges.shape[1], 3), randn(n, 3)
    root = torch.diag(adjacency(n, edges, weight).sum(1).clamp(min=1) ** -0.5)
    propagate = Propagation(Graph(edges, n), x, weight, loops=False, least=1.0)
    want = root @ adjacency(n, edges, weight * gate) @ root @ x
    assert_close(propagate.with_weights(x, gate), want, rtol=0, atol=1e-12)


def pygs(n: int, edges: Tensor) -> Tensor:
    edges, weight = gcn_norm(edges, None, n, dtype=torch.float64)
    return adjacency(n, edges, weight)


def test_pyg_gives_a_node_with_a_loop_no_second_one() -> None:
    n, edges = ODD_GRAPHS["self-loops"]
    x, without = randn(n, 3), edges[:, edges[0] != edges[1]]
    ours = [Propagation(Graph(listed, n), x)(x) for listed in (edges, without)]
    assert not torch.allclose(ours[0], pygs(n, edges) @ x)
    assert_close(ours[1], pygs(n, edges) @ x, rtol=0, atol=1e-12)


def test_a_node_without_edges_hears_nothing_and_no_degree_divides_by_zero() -> None:
    n, edges = ODD_GRAPHS["one-way"]
    x = randn(n, 3)
    heard = Propagation(Graph(edges, n), x, loops=False)(x)
    assert torch.equal(heard[0], torch.zeros(3).double())  # nothing ends there
    assert torch.equal(heard[1], torch.zeros(3).double())  # and what starts there weighs nothing
    bounded = Propagation(Graph(edges, n), x, loops=False, least=1.0)(x)
    assert_close(bounded[1:], x[:-1])


def test_the_perceptron_puts_the_norm_after_the_activation() -> None:
    torch.manual_seed(0)
    net = Perceptron([5, 4, 4, 2], norm="batch", dropout=0.5).double().eval()
    for norm in net.norms:
        torch.nn.init.normal_(norm.running_mean)
        torch.nn.init.normal_(norm.bias)
    x = h = randn(7, 5)
    for lin, norm in zip(net.lins[:2], net.norms, strict=True):
        h = (h @ lin.weight.T + lin.bias).relu()
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        h = (h - norm.running_mean) * scale + norm.bias
    assert_close(net(x), h @ net.lins[2].weight.T + net.lins[2].bias, rtol=0, atol=1e-12)
    assert not torch.equal(net.train()(x), net(x))
    assert repr(net) == "Perceptron([5, 4, 4, 2])"
