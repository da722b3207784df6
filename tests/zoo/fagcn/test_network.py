"""FAGCN against its equations and PyG's layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from graphs import ODD_GRAPHS, randn
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import FAConv
from zoo.dense import adjacency, symmetric

from coopsheaf import Graph
from coopsheaf.zoo.fagcn import FAGCN, FAGCNConv
from coopsheaf.zoo.plain.propagation import Propagation

N, EDGES = ODD_GRAPHS["random-directed"]


def build(num_layers: int = 3, **options: Any) -> FAGCN:
    torch.manual_seed(0)
    model = FAGCN(5, 6, num_layers, 3, **options).double().eval()
    for conv in model.convs:
        torch.nn.init.normal_(conv.gate.bias)
    return model


def slow(model: FAGCN, x: Tensor, n: int, edges: Tensor) -> Tensor:
    """One edge after the other: the gate sees the receiver first."""
    a = adjacency(n, edges)
    root = a.sum(1).clamp(min=1) ** -0.5
    h = h0 = (x @ model.encoder.weight.T + model.encoder.bias).relu()
    for conv in model.convs:
        rows = [model.eps * h0[i] for i in range(n)]
        for j, i in edges.T.tolist():
            gate = (conv.gate.weight[0] @ torch.cat([h[i], h[j]]) + conv.gate.bias[0]).tanh()
            rows[i] = rows[i] + gate * root[i] * root[j] * h[j]
        h = torch.stack(rows)
    return h @ model.readout.weight.T + model.readout.bias


@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_values_and_gradients_are_those_of_the_equations(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(), randn(n, 5).requires_grad_()
    got, want = model(x, edges), slow(model, x, n, edges)
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves, allow_unused=True) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        zero = torch.zeros(()).double()
        assert_close(zero if a is None else a.sum(), zero if b is None else b.sum())
        if a is not None and b is not None:
            assert_close(a, b, rtol=0, atol=1e-11)


def test_the_convolution_is_pygs_without_its_loops() -> None:
    torch.manual_seed(0)
    x, first = randn(N, 6), randn(N, 6, seed=1)
    edges = torch.cat([EDGES, EDGES.flip(0)], dim=1)
    edges = edges[:, edges[0] != edges[1]].unique(dim=1)
    conv = FAGCNConv(6, eps=0.2).double()
    torch.nn.init.zeros_(conv.gate.bias)
    theirs = FAConv(6, eps=0.2, add_self_loops=False).double()
    target, source = conv.gate.weight.detach().view(2, 1, 6)
    theirs.att_r.weight.data, theirs.att_l.weight.data = target, source
    propagate = Propagation(Graph(edges, N), x, loops=False, least=1.0)
    got = conv(x, first, propagate)
    want = theirs(x, first, edges)
    swapped = FAConv(6, eps=0.2, add_self_loops=False).double()
    swapped.att_l.weight.data, swapped.att_r.weight.data = target, source
    other = swapped(x, first, edges)
    # PyG's names say left and right: one of them is the receiver's.
    assert min((got - want).abs().max(), (got - other).abs().max()) < 1e-12
    assert max((got - want).abs().max(), (got - other).abs().max()) > 1e-3
    default = FAConv(6, eps=0.2).double()
    default.load_state_dict(theirs.state_dict())
    assert not torch.allclose(got, default(x, first, edges))  # it adds loops
    with torch.no_grad():
        conv.gate.bias.fill_(0.5)
    assert not torch.allclose(conv(x, first, propagate), got)  # it has no bias


def test_with_open_gates_it_is_the_plain_sum() -> None:
    x, first = randn(N, 6), randn(N, 6, seed=1)
    conv = FAGCNConv(6, eps=0.0).double()
    with torch.no_grad():
        conv.gate.weight.zero_()
        conv.gate.bias.fill_(40.0)  # tanh(40) = 1
    propagate = Propagation(Graph(EDGES, N), x, loops=False, least=1.0)
    want = symmetric(adjacency(N, EDGES), loops=False) @ x
    assert adjacency(N, EDGES).sum(1).min() >= 1  # nobody is without an edge
    assert_close(conv(x, first, propagate), want, rtol=0, atol=1e-12)


def test_nothing_has_the_size_of_edges_times_width() -> None:
    torch.manual_seed(0)
    n, m, h = 40, 1500, 64
    graph = Graph(torch.randint(0, n, (2, m)), n)
    model, x = FAGCN(5, h, 2, 3, dropout=0.5), torch.randn(n, 5)
    with LargestTensor() as seen:
        model(x, graph).sum().backward()
    assert seen.numel <= max(2 * m, n * h), seen.where


def test_dropout_acts_on_features_and_coefficients() -> None:
    x = randn(N, 5)
    quiet = build(dropout=0.0).train()
    assert torch.equal(quiet(x, EDGES), quiet(x, EDGES))
    conv = FAGCNConv(6, dropout=0.5).double().train()
    y, propagate = randn(N, 6), Propagation(Graph(EDGES, N), x, loops=False, least=1.0)
    torch.manual_seed(1)
    got = conv(y, y, propagate)
    torch.manual_seed(1)
    kept = torch.nn.functional.dropout(conv.gates(y, propagate.graph), 0.5)
    assert (kept == 0).any()
    assert_close(got, 0.3 * y + propagate.with_weights(y, kept))


def test_how_it_starts_and_what_it_says() -> None:
    torch.manual_seed(0)
    model = FAGCN(500, 300, 1, 3)
    # Xavier-normal with gain 1.414.
    assert float(model.encoder.weight.detach().std()) == pytest.approx(
        1.414 * (2 / 800) ** 0.5, rel=0.02
    )
    assert float(model.convs[0].gate.weight.detach().std()) == pytest.approx(
        1.414 * (2 / 601) ** 0.5, rel=0.2
    )
    assert repr(build()) == "FAGCN(5, 6, num_layers=3, out_channels=3, eps=0.3)"
    assert repr(model.convs[0]) == "FAGCNConv(300, eps=0.3)"
    with pytest.raises(ValueError, match="`eps`"):
        build(eps=float("nan"))
