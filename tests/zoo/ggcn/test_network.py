"""GGCN against its equations with dense matrices, and what its sheet says of it."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from allocations import LargestTensor
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.ggcn import GGCN, GGCNConv
from coopsheaf.zoo.ggcn.network import cosines, edge_numbers

N = 9
EDGES = torch.randint(0, N - 1, (2, 26), generator=generator(4)).unique(dim=1)  # loops, one alone


def adjacency(edges: Tensor, weight: Tensor | None = None, n: int = N) -> Tensor:
    """A[i, j]: what i hears of j; no edge of the list is repeated."""
    matrix = torch.zeros(n, n, dtype=torch.float64)
    matrix[edges[1], edges[0]] = 1.0 if weight is None else weight
    return matrix


def dense_conv(conv: GGCNConv, x: Tensor, a: Tensor) -> Tensor:
    """The equations of the layer, entry by entry of n × n matrices."""
    y = x @ conv.lin.weight.T + conv.lin.bias
    tilde = a + torch.eye(len(a), dtype=a.dtype)
    d = tilde.sum(1)
    s = tilde / (d.sqrt()[:, None] * d.sqrt()[None, :])
    norm = y.norm(dim=1)
    e = (y @ y.T) / (norm[:, None] * norm[None, :]).clamp(min=1e-9)
    e.fill_diagonal_(0)
    att = torch.zeros_like(s)
    for i, j in s.nonzero().tolist():
        tau = torch.ones((), dtype=a.dtype)
        if conv.degree_weight is not None:
            r = s[i, i] / s[i, j] - 1
            tau = F.softplus(conv.degree_weight[0] * r + conv.degree_weight[1])
        att[i, j] = e[i, j] * s[i, j] * tau
    w = torch.softmax(conv.mix, 0)
    positive, negative = F.relu(att) @ y, -F.relu(-att) @ y
    return F.softplus(conv.scale) * (w[0] * positive + w[1] * negative + w[2] * y)


def make_conv(**options: bool) -> GGCNConv:
    torch.manual_seed(0)
    conv = GGCNConv(5, 4, **options).double()
    with torch.no_grad():
        for parameter in (conv.degree_weight, conv.mix, conv.scale):
            if parameter is not None:
                parameter.add_(randn(*parameter.shape, seed=3) / 2)
    return conv


@pytest.mark.parametrize("degrees", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_layer_is_its_equation(degrees: bool, weighted: bool) -> None:
    conv, x, graph = make_conv(degrees=degrees), randn(N, 5), Graph(EDGES, N)
    weight = 0.2 + torch.rand(graph.num_edges, generator=generator(7)).double()
    weight[3] = 0
    given = weight if weighted else None
    left, right = x.clone().requires_grad_(), x.clone().requires_grad_()
    got = conv(left, graph, edge_numbers(graph, x, given))
    want = dense_conv(conv, right, adjacency(EDGES, given))
    assert_close(got, want, rtol=0, atol=1e-12)
    probe = randn(N, 4, seed=9)
    assert_close(
        torch.autograd.grad((got * probe).sum(), left),
        torch.autograd.grad((want * probe).sum(), right),
        rtol=0,
        atol=1e-11,
    )


def test_the_degree_correction_is_that_of_the_matrix_with_loops() -> None:
    """S_ii / S_ij - 1, where a node with a stored loop has 2 on the diagonal of A + I."""
    graph = Graph(EDGES, N)
    assert (EDGES[0] == EDGES[1]).any()
    tilde = adjacency(EDGES) + torch.eye(N).double()
    d = tilde.sum(1)
    entry, ratio = edge_numbers(graph, randn(1))
    for k, (j, i) in enumerate(EDGES.T.tolist()):
        s = tilde / (d[:, None] * d[None, :]).sqrt()
        wanted = (0.0, 0.0) if i == j else (s[i, j].item(), (s[i, i] / s[i, j] - 1).item())
        assert (entry[k].item(), ratio[k].item()) == pytest.approx(wanted, abs=1e-14)


def test_nodes_that_are_all_alike_are_never_subtracted() -> None:
    """Cosine 1 on every edge: the negative part is nothing, whatever its weight."""
    conv, graph = make_conv(), Graph(EDGES, N)
    x = randn(1, 5).expand(N, 5)
    edges = edge_numbers(graph, x)
    assert_close(cosines(conv.lin(x), graph), torch.ones(graph.num_edges).double())
    weights = torch.softmax(conv.mix, 0)
    with torch.no_grad():
        kept = conv(x, graph, edges) / F.softplus(conv.scale)
        conv.mix.copy_(torch.tensor([weights[0], 0.5, weights[2]]).log())  # another weight of N
        again = conv(x, graph, edges) / F.softplus(conv.scale)
    total = weights[0] + 0.5 + weights[2]
    assert_close(again * total, kept, rtol=0, atol=1e-12)


def test_lengths_do_not_change_the_cosine() -> None:
    y, graph = randn(N, 4), Graph(EDGES, N)
    scales = 0.1 + torch.rand(N, 1, generator=generator(1)).double()
    assert_close(cosines(scales * y, graph), cosines(y, graph))
    y[0] = 0  # no direction at all
    leaf = y.requires_grad_()
    cosines(leaf, graph).sum().backward()
    assert torch.isfinite(leaf.grad).all()


def dense_network(model: GGCN, x: Tensor, a: Tensor, decay: float | None) -> Tensor:
    h, total = dense_conv(model.convs[0], x, a), F.elu(model.encoder(x))
    for i in range(model.num_layers - 1):
        g = 1.0 if i == 0 or decay is None else math.log(decay / (i + 2) ** 3 + 1)
        h = F.elu(h)
        total = total + g * h
        h = dense_conv(model.convs[i + 1], total, a)
    return h


@pytest.mark.parametrize("decay", [0.7, None])
def test_the_network_adds_up_its_layers(decay: float | None) -> None:
    torch.manual_seed(1)
    model, x = GGCN(5, 6, 4, 3, decay=decay).double().eval(), randn(N, 5)
    assert_close(model(x, Graph(EDGES, N)), dense_network(model, x, adjacency(EDGES), decay))
    assert model.convs[0].scale.item() == (0.5 if decay is None else 2.0)


def test_one_layer_has_nothing_to_add_up() -> None:
    torch.manual_seed(1)
    model, x = GGCN(5, 6, 1, 3).double().eval(), randn(N, 5)
    assert model.encoder is None
    assert_close(model(x, Graph(EDGES, N)), dense_conv(model.convs[0], x, adjacency(EDGES)))


def test_nothing_has_the_size_of_edges_times_width_or_of_all_pairs() -> None:
    n, m, width = 300, 4000, 24
    graph = Graph(torch.randint(0, n, (2, m), generator=generator(2)), n)
    model, x = GGCN(width, width, 3, width), randn(n, width).float().requires_grad_()
    with LargestTensor() as largest:
        model(x, graph).sum().backward()
    assert largest.numel < m * width // 4, largest.where
    assert largest.numel < n * n // 2, largest.where


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match="`decay` must be finite and not negative; got -1"):
        GGCN(5, decay=-1.0)
    with pytest.raises(ValueError, match="`exponent` must be"):
        GGCN(5, exponent=math.inf)
