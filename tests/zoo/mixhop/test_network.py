"""MixHop in both forms against its equations and PyG's layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn
from graphs import ODD_GRAPHS, randn, random_weight
from torch.testing import assert_close
from zoo.dense import adjacency, symmetric

from coopsheaf import Graph
from coopsheaf.zoo.mixhop import MixHop, MixHopConv, MixHopLINKX
from coopsheaf.zoo.mixhop.conv import split_width
from coopsheaf.zoo.plain.propagation import Propagation

N, EDGES = ODD_GRAPHS["random-directed"]
BOTH = pytest.mark.parametrize("kind", [MixHop, MixHopLINKX])


def build(kind: Any, num_layers: int = 2, **options: Any) -> Any:
    torch.manual_seed(0)
    model = kind(5, 8, num_layers, 3, **options).double().eval()
    for norm in model.norms:
        torch.nn.init.normal_(norm.bias)
    return model


def slow_conv(conv: MixHopConv, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    bias = torch.zeros(sum(conv.widths)).double() if conv.lin.bias is None else conv.lin.bias
    weights = zip(conv.lin.weight.split(conv.widths), bias.split(conv.widths), strict=True)
    powers = [torch.linalg.matrix_power(s, p) @ (x @ w.T + b) for p, (w, b) in enumerate(weights)]
    return torch.cat(powers, 1)


def slow(model: Any, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    original = isinstance(model, MixHop)
    h = x / x.norm(dim=1, keepdim=True) if original else x
    for conv, norm in zip(model.convs, model.norms, strict=False):
        h = slow_conv(conv, h, s)
        if original:
            h = (h - h.mean(0)) / (h.var(0, correction=0) + 1e-3).sqrt() + norm.bias
        else:
            scale = norm.weight / (norm.running_var + norm.eps).sqrt()
            h = (h - norm.running_mean) * scale + norm.bias
        h = h.relu()
    h = slow_conv(model.convs[-1], h, s)
    if not original:
        return h @ model.readout.weight.T + model.readout.bias
    share = model.mixture.exp() / model.mixture.exp().sum()
    return sum(a * z for a, z in zip(share, h.split(3, dim=1), strict=True))


@BOTH
@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equations(
    kind: Any, name: str, weighted: bool
) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(kind), randn(n, 5).requires_grad_()
    if kind is MixHop:
        torch.nn.init.normal_(model.mixture)
    weight = random_weight(edges.shape[1]) if weighted else None
    got = model(x, edges, weight)
    want = slow(model, x, symmetric(adjacency(n, edges, weight)))
    assert_close(got, want, rtol=0, atol=1e-11)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_the_convolution_is_pygs_but_for_its_bias() -> None:
    x, edges = randn(N, 5), EDGES[:, EDGES[0] != EDGES[1]]
    theirs = torch_geometric.nn.MixHopConv(5, 4, powers=[0, 1, 2]).double()
    torch.nn.init.normal_(theirs.bias)
    conv = MixHopConv(5, [4, 4, 4], bias=True).double()
    conv.lin.weight.data = torch.cat([lin.weight.detach() for lin in theirs.lins])
    conv.lin.bias.data.zero_()
    propagate = Propagation(Graph(edges, N), x)
    want = theirs(x, edges)
    assert_close(conv(x, propagate) + theirs.bias, want, rtol=0, atol=1e-12)
    conv.lin.bias.data.copy_(theirs.bias)  # here it comes before the powers
    assert not torch.allclose(conv(x, propagate), want)
    assert_close(conv(x, propagate)[:, :4], want[:, :4])


@BOTH
def test_without_higher_powers_no_edge_matters(kind: Any) -> None:
    model, x = build(kind), randn(N, 5)
    assert not torch.allclose(model(x, EDGES), model(x, EDGES[:, :0]))
    with torch.no_grad():
        for conv in model.convs:
            conv.lin.weight[conv.widths[0] :] = 0
            if conv.lin.bias is not None:
                conv.lin.bias[conv.widths[0] :] = 0
    assert_close(model(x, EDGES), model(x, EDGES[:, :0]), rtol=0, atol=1e-12)
    assert_close(build(kind, num_hops=0)(x, EDGES), build(kind, num_hops=0)(x, EDGES[:, :0]))


def test_outputs_start_as_the_mean_of_the_powers() -> None:
    model = build(MixHop)
    assert_close(model.mixture.softmax(0), torch.full((3,), 1 / 3).double())
    assert split_width(64, 2) == [21, 21, 22]
    assert split_width(192, 2) == [64, 64, 64]
    with pytest.raises(ValueError, match="`hidden_channels` must be enough for 3 powers; got 2"):
        MixHop(5, 2, 2, 3)


def test_statistics_are_those_at_hand_in_evaluation_too() -> None:
    model, x = build(MixHop, input_dropout=0.0, dropout=0.0), randn(N, 5)
    assert_close(model.eval()(x, EDGES), model.train()(x, EDGES))


def test_weight_decay_is_the_penalty_of_the_mixture_and_spares_biases() -> None:
    model = build(MixHop, mix_penalty=3e-3)
    mixture, biases = model.parameter_groups()
    torch.nn.init.normal_(model.mixture)
    (want,) = torch.autograd.grad(3e-3 * model.mixture.square().mean(), model.mixture)
    assert mixture["params"] == [model.mixture]
    assert_close(mixture["weight_decay"] * model.mixture.detach(), want)
    assert biases["weight_decay"] == 0
    assert biases["params"][0] is model.norms[0].bias
    assert len(build(MixHop, 1).parameter_groups()) == 1


def test_dropout_is_felt() -> None:
    x, quiet = randn(N, 5), {"input_dropout": 0.0, "dropout": 0.0}
    for name in quiet:
        model = build(MixHop, **(quiet | {name: 0.5})).train()
        assert not torch.equal(model(x, EDGES), model(x, EDGES)), name
    model = build(MixHopLINKX, dropout=0.5).train()
    assert not torch.equal(model(x, EDGES), model(x, EDGES))


@BOTH
def test_bad_arguments_are_named_and_repr_states_the_transformation(kind: Any) -> None:
    with pytest.raises(ValueError, match="`num_hops`"):
        build(kind, num_hops=-1)
    with pytest.raises(ValueError, match="`mix_penalty`"):
        build(MixHop, mix_penalty=-1.0)
    want = f"{kind.__name__}(5, 8, num_layers=2, out_channels=3, num_hops=2)"
    assert repr(build(kind)) == want
    assert repr(build(MixHop).convs[0]) == "MixHopConv(5, [3, 3, 2])"
    assert repr(build(MixHop).norms[0]) == "CentredNorm(8)"
