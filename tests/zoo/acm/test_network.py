"""ACM-GCN against its equations with dense matrices, and what its sheet says of it."""

from __future__ import annotations

import pytest
import torch
from allocations import LargestTensor
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.acm import ACMGCN, ACMConv, ACMGCNPlus
from coopsheaf.zoo.plain.averaging import Averaging

N = 8
EDGES = torch.randint(0, N - 1, (2, 22), generator=generator(6)).unique(dim=1)  # loops, one alone


def adjacency(weight: Tensor | None = None) -> Tensor:
    a = torch.zeros(N, N).double()
    a[EDGES[1], EDGES[0]] = 1.0 if weight is None else weight
    return a


def low_pass(a: Tensor) -> Tensor:
    tilde = a + torch.eye(N).double()
    return tilde / tilde.sum(1, keepdim=True)


def slow_conv(conv: ACMConv, x: Tensor, a: Tensor) -> Tensor:
    """Node by node, with the matrices written out."""
    low = low_pass(a)
    high = torch.eye(N).double() - low
    w_low, w_high, w_own = conv.weight.split(conv.out_channels, dim=1)
    if conv.act_first:
        parts = [low @ (x @ w_low).relu(), high @ (x @ w_high).relu(), (x @ w_own).relu()]
    else:
        parts = [(low @ x @ w_low).relu(), (high @ x @ w_high).relu(), (x @ w_own).relu()]
    if conv.structure is not None:
        parts.append((a @ conv.structure).relu())
    rows = []
    for i in range(N):
        seen = [norm(part[i]) for norm, part in zip(conv.norms, parts, strict=True)]
        score = torch.stack([torch.sigmoid(s @ v) for s, v in zip(seen, conv.score, strict=True)])
        alpha = torch.softmax(score @ conv.mix / len(parts), 0)
        total = sum(alpha[c] * part[i] for c, part in enumerate(parts))
        rows.append(3 * total if len(parts) == 3 else total)
    return torch.stack(rows)


@pytest.mark.parametrize("act_first", [False, True])
@pytest.mark.parametrize("num_nodes", [None, N])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_layer_is_its_equations(act_first: bool, num_nodes: int | None, weighted: bool) -> None:
    torch.manual_seed(0)
    conv = ACMConv(
        5, 4, act_first=act_first, num_nodes=num_nodes, norm_scores=act_first and weighted
    ).double()
    weight = 0.2 + torch.rand(EDGES.shape[1], generator=generator(1)).double()
    given, graph, x = weight if weighted else None, Graph(EDGES, N), randn(N, 5)
    left, right = x.clone().requires_grad_(), x.clone().requires_grad_()
    got = conv(left, graph, Averaging(graph, x, given), given)
    want = slow_conv(conv, right, adjacency(given))
    assert_close(got, want, rtol=0, atol=1e-12)
    probe = randn(N, 4, seed=3)
    found = [torch.autograd.grad((out * probe).sum(), leaf) for out, leaf in ((got, left), (want, right))]  # fmt: skip
    assert_close(found[0], found[1], rtol=0, atol=1e-11)


def test_low_and_high_are_the_identity_together() -> None:
    """A_L + A_H = I: with equal weights the three channels before the ReLU sum to 2 H W."""
    torch.manual_seed(0)
    conv, graph, x = ACMConv(5, 4, act_first=True).double(), Graph(EDGES, N), randn(N, 5).abs()
    with torch.no_grad():
        one = torch.rand(5, 4, generator=generator(2)).double()  # positive: the ReLU does nothing
        conv.weight.copy_(one.repeat(1, 3))
    low, high, own = conv.channels(x, graph, Averaging(graph, x))
    assert_close(low + high, own)
    assert_close(low + high + own, 2 * x @ one)
    assert_close(low, low_pass(adjacency()) @ x @ one)


def test_means_are_means() -> None:
    graph = Graph(EDGES, N)
    ones = torch.ones(N, 2).double()
    assert_close(Averaging(graph, ones)(ones), ones)
    x = randn(N, 3)
    assert_close(Averaging(graph, x)(x), low_pass(adjacency()) @ x)
    assert_close(Averaging(graph, x, raw=True)(x), adjacency() @ x)


def test_shares_sum_to_one_at_every_node() -> None:
    torch.manual_seed(0)
    conv = ACMConv(5, 4, num_nodes=N).double()
    graph, x = Graph(EDGES, N), randn(N, 5)
    shares = conv.shares(conv.channels(x, graph, Averaging(graph, x)))
    assert shares.shape == (N, 4)
    assert_close(shares.sum(1), torch.ones(N).double())


def test_the_network_is_its_layers_and_outputs_are_not_negative() -> None:
    torch.manual_seed(1)
    model, x = ACMGCN(5, 6, 3, 3).double().eval(), randn(N, 5)
    want = x
    for conv in model.convs:
        want = slow_conv(conv, want.relu() if want is not x else want, adjacency())
    assert_close(model(x, EDGES), model(x, Graph(EDGES, N)))
    assert_close(model(x, Graph(EDGES, N)), want, rtol=0, atol=1e-12)
    assert (model(x, Graph(EDGES, N)) >= 0).all()


def test_without_structure_plus_is_the_plain_network() -> None:
    torch.manual_seed(1)
    plain = ACMGCN(5, 6, 2, 3).double().eval()
    torch.manual_seed(1)
    plus = ACMGCNPlus(5, 6, 2, 3, num_nodes=N, structure=False).double().eval()
    assert torch.equal(plain(randn(N, 5), EDGES), plus(randn(N, 5), EDGES))
    with_structure = ACMGCNPlus(5, 6, 2, 3, num_nodes=N).double().eval()
    x, names = randn(N, 5), torch.randperm(N, generator=generator(0))
    old = names.argsort()
    moved = with_structure(x[old], names[EDGES])
    assert not torch.allclose(moved, with_structure(x, EDGES)[old])  # it knows nodes by place


def test_nothing_has_the_size_of_edges_times_width() -> None:
    n, m, width = 200, 6000, 24
    graph = Graph(torch.randint(0, n, (2, m), generator=generator(2)), n)
    model = ACMGCNPlus(width, width, 2, width, num_nodes=n)
    x = randn(n, width).float().requires_grad_()
    with LargestTensor() as largest:
        model(x, graph).sum().backward()
    assert largest.numel < m * width // 4, largest.where
