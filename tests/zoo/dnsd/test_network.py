"""Deep Neural Sheaf Diffusion against its equations, arc by arc."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from coboundaries import atlas
from graphs import generator, randn
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close
from zoo.dense import adjacency, symmetric

from coopsheaf import Graph
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.train.recipes import load_recipe
from coopsheaf.zoo.dnsd import DNSD, ArcConv, ArcLearner, DNSDLayer

D, H, N, F_IN, OUT = 2, 3, 6, 5, 3
# One way, both ways, twice, a loop, and a node alone.
ARCS = torch.tensor([[0, 1, 1, 2, 3, 3, 2, 4], [1, 2, 0, 3, 1, 0, 3, 4]])
GRAPH = Graph(ARCS, N)
KINDS = pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])


def slow(conv: ArcConv, x: Tensor, weight: Tensor | None) -> Tensor:
    size = torch.ones(ARCS.shape[1]).double() if weight is None else weight
    into, out = adjacency(N, ARCS, size).sum(1), adjacency(N, ARCS, size).sum(0)
    heard, kind = [torch.zeros(D, H).double() for _ in range(N)], conv.edge_maps
    for e, (j, i) in enumerate(ARCS.T.tolist()):
        pair = torch.cat([x[i].flatten(), x[j].flatten()])
        listen = send = torch.eye(D).double()
        if conv.map_learner is not None:
            listen, send = (
                kind.dense(kind.make(learner.lin(pair).tanh()[None]))[0]
                for learner in (conv.map_learner, conv.sender_learner)
            )
        message = listen.T @ send @ x[j]
        if conv.kind == "laplacian":
            message = listen.T @ listen @ x[i] - message
        heard[i] = heard[i] + size[e] / (into[i] * out[j]).sqrt() * message
    return torch.stack(heard)


@KINDS
@pytest.mark.parametrize("operator", ["adjacency", "laplacian"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_heard_and_its_gradients(maps: str, operator: str, weighted: bool) -> None:
    torch.manual_seed(0)
    conv, x = ArcConv(H, D, maps=maps, operator=operator).double(), randn(N, D, H).requires_grad_()
    leaves, weight = [x, *conv.parameters()], None
    if weighted:
        weight = 0.5 + torch.rand(ARCS.shape[1], generator=generator(0), dtype=torch.float64)
        leaves.append(weight.requires_grad_())
    grads = []
    for out in (conv(x, GRAPH, weight), slow(conv, x, weight)):
        grads.append([out, *torch.autograd.grad((out * randn(*out.shape, seed=1)).sum(), leaves)])
    for got, want in zip(*grads, strict=True):
        assert_close(got, want, **EXACT)
    check_operator(conv.operator(x, GRAPH, None if weight is None else weight.detach()))


def test_identity_maps_are_the_normalised_adjacency() -> None:
    n, edges = atlas()[-2]
    conv = ArcConv(H, D, maps="identity")
    matrix = conv.operator(randn(n, D, H), Graph(edges, n)).to_dense()
    want = symmetric(adjacency(n, edges), loops=False)
    assert_close(matrix, torch.kron(want, torch.eye(D).double()), **EXACT)


def test_weights_of_nothing_are_no_division_by_nothing() -> None:
    weight = torch.zeros(ARCS.shape[1]).double().requires_grad_()
    out = ArcConv(H, D).double()(randn(N, D, H), GRAPH, weight)
    assert (out == 0).all()
    out.sum().backward()
    assert torch.isfinite(weight.grad).all()


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("act", [torch.tanh, torch.relu])
def test_a_layer_follows_the_equation(gate: bool, act: Any) -> None:
    torch.manual_seed(0)
    layer, x = DNSDLayer(H, D, gate=gate, act=act).double(), randn(N, D, H)
    for parameter in (layer.epsilon, layer.left.weight, layer.norm.weight, layer.norm.bias):
        torch.nn.init.normal_(parameter)
    if gate:
        torch.nn.init.normal_(layer.gate.weight)
    rows = []
    for i, m in enumerate(layer.conv(x, GRAPH)):
        push = act(layer.left.weight @ m @ layer.right.weight.T)
        if gate:
            seen = torch.cat([x[i], m], dim=1)
            push = torch.sigmoid(seen @ layer.gate.weight.T + layer.gate.bias) * push
        row = ((1 + layer.epsilon) * x[i] - push).flatten()
        row = (row - row.mean()) / (row.var(unbiased=False) + layer.norm.eps).sqrt()
        rows.append((row * layer.norm.weight + layer.norm.bias).view(D, H))
    assert_close(layer(x, GRAPH), torch.stack(rows), **EXACT)


def test_how_it_starts() -> None:
    torch.manual_seed(0)
    layer = DNSDLayer(H, D)
    heard = randn(N, D, 2 * H).float()
    assert (torch.sigmoid(layer.gate(heard)) == 0.5).all()
    for linear in (layer.left, layer.right):
        off = linear.weight - torch.eye(linear.in_features)
        assert 0 < off.abs().max() < 0.05
    assert (layer.epsilon == 0).all()
    # Bounds of linear layers are 1/√in; here 1/√(2 in).
    learner = ArcLearner(50, 200)
    assert 0.9 < learner.lin.weight.abs().max() * (2 * 100) ** 0.5 <= 1.0


def test_the_network_is_its_layers() -> None:
    torch.manual_seed(0)
    model = DNSD(F_IN, H, 3, OUT, stalk_dim=D).double()
    x = randn(N, F_IN)
    state = model.encoder(x).view(N, D, H)
    for layer in model.layers:
        state = layer(state, GRAPH)
    assert_close(model(x, GRAPH), model.readout(state.flatten(1)), **EXACT)
    assert len(model.map_learners()) == 6


def test_depth_does_not_explode() -> None:
    torch.manual_seed(0)
    model = DNSD(F_IN, H, 64, OUT, stalk_dim=D).double()
    x = randn(N, F_IN).requires_grad_()
    model(x, GRAPH).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("kind", ["diagonal", "general"])
def test_blocks_are_all_that_arcs_have(kind: str, monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    n, h, d = 20, 32, 3
    graph = Graph(torch.randint(0, n, (2, 400), generator=generator(0)), n)
    conv, x = ArcConv(h, d, maps=kind).double(), randn(n, d, h).requires_grad_()
    with LargestTensor() as guard:
        conv(x, graph).sum().backward()
    assert guard.numel <= max(400 * d * (d if kind == "general" else 1), n * d * h)


def test_settings_and_bad_arguments() -> None:
    recipe = load_recipe("dnsd/minesweeper")
    assert (recipe.model.stalk_dim, recipe.model.hidden_channels) == (8, 8)
    assert (recipe.train.schedule, recipe.train.plateau_patience) == ("plateau", 20)
    with pytest.raises(ValueError, match="`operator` must be one of 'adjacency', 'laplacian'"):
        make_settings("dnsd", operator="other").build(F_IN, OUT)
    assert repr(ArcConv(H, D)) == (
        "ArcConv(3, stalk_dim=2, maps=GeneralMaps(2), operator='adjacency')"
    )
