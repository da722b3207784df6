"""GCNII and GCNII* against their equations and PyG's layer."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, randn, random_weight
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import GCN2Conv
from zoo.dense import adjacency, symmetric

from coopsheaf import Graph
from coopsheaf.zoo.gcnii import GCNII, GCNIIConv, GCNIIStar, GCNIIStarConv
from coopsheaf.zoo.plain.propagation import Propagation

N, EDGES = ODD_GRAPHS["random-directed"]
LOOPLESS = EDGES[:, EDGES[0] != EDGES[1]].unique(dim=1)
KINDS = pytest.mark.parametrize("kind", [GCNII, GCNIIStar])


def build(kind: Any, num_layers: int = 3, **options: Any) -> Any:
    torch.manual_seed(0)
    return kind(5, 6, num_layers, 3, **options).double().eval()


def slow(model: Any, x: Tensor, s: Tensor) -> Tensor:
    """The equations, written out; the identity of the mapping as a matrix."""
    h = h0 = (x @ model.encoder.weight.T + model.encoder.bias).relu()
    a, eye = model.alpha, torch.eye(6).double()
    for layer, conv in enumerate(model.convs, 1):
        b = math.log(model.theta / layer + 1)
        mixed = (1 - a) * (s @ h) + a * h0
        if isinstance(model, GCNIIStar):
            h = (1 - b) * mixed + b * torch.cat([s @ h, h0], 1) @ conv.weight
        else:
            h = mixed @ ((1 - b) * eye + b * conv.weight)
        h = h.relu()
    return h @ model.readout.weight.T + model.readout.bias


@KINDS
@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equations(
    kind: Any, name: str, weighted: bool
) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(kind, alpha=0.3, theta=1.5), randn(n, 5).requires_grad_()
    weight = random_weight(edges.shape[1]) if weighted else None
    got = model(x, edges, weight)
    want = slow(model, x, symmetric(adjacency(n, edges, weight)))
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=0, atol=1e-11)


def test_the_convolution_is_pygs() -> None:
    torch.manual_seed(0)
    x, first = randn(N, 6), randn(N, 6, seed=1)
    conv = GCNIIConv(6, alpha=0.2, beta=math.log(1.5 / 3 + 1)).double()
    theirs = GCN2Conv(6, alpha=0.2, theta=1.5, layer=3).double()
    theirs.weight1 = conv.weight
    propagate = Propagation(Graph(LOOPLESS, N), x)
    assert_close(conv(x, first, propagate), theirs(x, first, LOOPLESS), rtol=0, atol=1e-12)
    # A loop of the list is the only one to PyG, and one of two here.
    propagate = Propagation(Graph(EDGES, N), x)
    assert not torch.allclose(conv(x, first, propagate), theirs(x, first, EDGES))


def test_the_other_convolution_is_pygs_with_factors_in_its_weights() -> None:
    torch.manual_seed(0)
    x, first = randn(N, 6), randn(N, 6, seed=1)
    conv = GCNIIStarConv(6, alpha=0.2, beta=math.log(1.5 / 3 + 1)).double()
    theirs = GCN2Conv(6, alpha=0.2, theta=1.5, layer=3, shared_weights=False).double()
    own, other = conv.weight.detach().split(6)
    theirs.weight1.data, theirs.weight2.data = own / 0.8, other / 0.2
    propagate = Propagation(Graph(LOOPLESS, N), x)
    assert_close(conv(x, first, propagate), theirs(x, first, LOOPLESS), rtol=0, atol=1e-12)


def test_with_alpha_one_no_edge_matters() -> None:
    model, x = build(GCNII, alpha=1.0), randn(N, 5)
    assert_close(model(x, EDGES), model(x, EDGES[:, :0]), rtol=0, atol=1e-14)
    starred = build(GCNIIStar, alpha=1.0)  # its product still sees the neighbours
    assert not torch.allclose(starred(x, EDGES), starred(x, EDGES[:, :0]))


@KINDS
def test_with_theta_zero_the_weights_are_idle_and_features_are_smoothed(kind: Any) -> None:
    """H_l = ReLU((1 - α) S H + α H₀), whose limit is personalised PageRank."""
    model, x = build(kind, 200, theta=0.0, alpha=0.1), randn(N, 5)
    s = symmetric(adjacency(N, EDGES))
    h0 = (x @ model.encoder.weight.T + model.encoder.bias).relu()
    limit = 0.1 * torch.linalg.solve(torch.eye(N).double() - 0.9 * s, h0)
    assert_close(model.embed(x, Graph(EDGES, N)), limit, rtol=0, atol=1e-8)


@KINDS
def test_a_norm_comes_before_the_activation(kind: Any) -> None:
    model, x = build(kind, 1, norm="layer"), randn(N, 5)
    with torch.no_grad():
        model.norms[0].bias.fill_(-100.0)
    assert torch.equal(model.embed(x, Graph(EDGES, N)), torch.zeros(N, 6).double())


@KINDS
def test_dropout_is_everywhere(kind: Any) -> None:
    x = randn(N, 5)
    assert torch.equal(*(build(kind, dropout=0.0).train()(x, EDGES) for _ in range(2)))
    model = build(kind, dropout=0.5).train()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))


def test_weights_start_within_their_bound() -> None:
    model = GCNII(5, 16, 4, 3)
    for conv in model.convs:
        assert 0.2 < conv.weight.abs().max() <= 0.25
    assert [round(conv.beta, 4) for conv in model.convs] == [0.4055, 0.2231, 0.1542, 0.1178]


@KINDS
def test_bad_arguments_are_named_and_repr_states_the_transformation(kind: Any) -> None:
    for option, value in (("alpha", 1.5), ("theta", -1.0), ("norm", "?"), ("dropout", 1.0)):
        with pytest.raises(ValueError, match=f"`{option}`"):
            build(kind, **{option: value})
    name = kind.__name__
    want = f"{name}(5, 6, num_layers=3, out_channels=3, alpha=0.5, theta=0.5)"
    assert repr(build(kind)) == want
    assert repr(build(kind).convs[0]) == f"{name}Conv(6, alpha=0.5, beta=0.4055)"
