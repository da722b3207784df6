"""Waves on learned sheaves against their modes, and the networks made of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from allocations import LargestTensor
from coboundaries import atlas, inverse_roots
from graphs import generator, path, randn
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis.hops import hop_distances
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves import propagate
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.train.recipes import load_recipe
from coopsheaf.zoo.waves import NSP, ONDA, DirectionalONDA, DirectionalWaveConv, WaveConv

N, EDGES = atlas()[-2]
F_IN, D, H, OUT = 5, 2, 4, 3
MAPS = pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])
ARCS = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 2, 0, 3, 1, 0]])


def wave(kind: type[WaveConv] = WaveConv, **options: Any) -> WaveConv:
    torch.manual_seed(0)
    conv = kind(H, D, **options).double()
    if conv.left is not None:
        torch.nn.init.normal_(conv.left.weight)
    return conv


def conservative(**options: Any) -> WaveConv:
    return wave(left_weights=False, right_weights=False, **options)


# --- a block of steps


@MAPS
@pytest.mark.parametrize("steps", [1, 5, 12])
def test_modes_are_multiplied_as_leapfrog_says(maps: str, steps: int) -> None:
    """cos((l + 1/2) θ) / cos(θ / 2) with θ = 2 arcsin(s √λ / 2), from rest."""
    conv = conservative(maps=maps, num_steps=steps, step_size=0.7)
    x = randn(N, D, H)
    laplacian = conv.laplacian(x, EDGES)
    values, vectors = torch.linalg.eigh(laplacian.to_dense())
    theta = 2 * torch.arcsin(0.7 * values.clamp(min=0).sqrt() / 2)
    factor = torch.cos((steps + 0.5) * theta) / torch.cos(theta / 2)
    want = (vectors @ (factor[:, None] * (vectors.T @ x.flatten(0, 1)))).view_as(x)
    got = conv(x, EDGES, laplacian=laplacian)
    assert_close(got, want, rtol=0, atol=1e-9)
    assert_close(got, propagate(laplacian, x, steps, 0.7).x, **EXACT)


def test_energy_is_kept_and_time_can_be_turned_round() -> None:
    s, x = 1.3, randn(N, D, H)
    conv = conservative(maps="general", step_size=s)
    laplacian = conv.laplacian(x, EDGES)
    places, energies = [x], []
    with torch.no_grad():
        for steps in range(1, 60):
            conv.num_steps = steps
            places.append(conv(x, EDGES, laplacian=laplacian))
            y, v = places[-1], (places[-1] - places[-2]) / s
            pull = laplacian.mv(y)
            energies.append(float(v.square().sum() + (y * pull).sum() - s * (v * pull).sum()))
        assert max(energies) - min(energies) < 1e-10 * max(energies)
        # Back, from the last two places alone.
        after, now = places[-1], places[-2]
        for want in reversed(places[:-2]):
            after, now = now, 2 * now - after - s**2 * laplacian.mv(now)
            assert_close(now, want, rtol=0, atol=1e-9)


def slow_wave(conv: WaveConv, x: Tensor, edges: Tensor, weight: Tensor | None) -> Tensor:
    matrix = conv.laplacian(x, edges, weight).to_dense()
    s, v = conv.step_size, torch.zeros_like(x)
    for _ in range(conv.num_steps):
        mixed = torch.stack([conv.left.weight @ row @ conv.right.weight.T for row in x])
        push = -(matrix @ mixed.flatten(0, 1)).view_as(x)
        if conv.dissipation is not None:
            push = push - F.softplus(x @ conv.dissipation.weight.T + conv.dissipation.bias) * v
        if conv.forcing is not None:
            push = push + (x @ conv.forcing.weight.T + conv.forcing.bias).tanh()
        v = v + s * push
        x = x + s * v
    return x


@MAPS
@pytest.mark.parametrize(
    "extra", [{}, {"dissipation": True}, {"forcing": True, "dissipation": True}]
)
def test_steps_follow_the_equation(maps: str, extra: dict[str, bool]) -> None:
    conv, x = wave(maps=maps, num_steps=3, step_size=0.5, **extra), randn(N, D, H).requires_grad_()
    laplacian = conv.laplacian(x, EDGES)
    leaves = [x, *conv.parameters()]
    grads = []
    for out in (conv(x, EDGES, laplacian=laplacian), slow_wave(conv, x, EDGES, None)):
        grads.append([out, *torch.autograd.grad((out * randn(*out.shape, seed=1)).sum(), leaves)])
    for got, want in zip(*grads, strict=True):
        assert_close(got, want, rtol=1e-9, atol=1e-9)
    # Learned anew in every step, the sheaf is another one from the second step on.
    anew = conv(x, EDGES)
    assert maps == "identity" or not torch.allclose(anew, grads[0][0])
    once = wave(maps=maps, num_steps=1, **extra)
    assert_close(once(x, EDGES), once(x, EDGES, laplacian=once.laplacian(x, EDGES)), **EXACT)


def test_a_block_reaches_as_many_hops_as_it_has_steps() -> None:
    graph, n = Graph(path(8)), 8
    conv = wave(maps="general", num_steps=3)
    laplacian = conv.laplacian(randn(n, D, H), graph)
    reach = torch.func.jacrev(lambda x: conv(x, graph, laplacian=laplacian))(randn(n, D, H))
    size = reach.abs().amax((1, 2, 4, 5))
    distance = hop_distances(graph, list(range(n)))
    assert size[distance > 3].max() == 0
    assert size[distance == 3].min() > 0


# --- maps of arcs


def slow_directional(conv: DirectionalWaveConv, x: Tensor, weight: Tensor | None) -> Tensor:
    n, kind = x.shape[0], conv.edge_maps
    own = torch.zeros(n, D, D).double()
    heard = torch.zeros(n, D, n, D).double()
    for e, (j, i) in enumerate(ARCS.T.tolist()):
        pair = torch.cat([x[i].flatten(), x[j].flatten()])
        listen, send = (
            kind.dense(kind.make(conv.map_act(learner.lin(pair))[None]))[0]
            for learner in (conv.map_learner, conv.sender_learner)
        )
        size = 1.0 if weight is None else weight[e]
        own[i] += size * listen.T @ listen
        heard[i, :, j] -= size * listen.T @ send
    for i in range(n):
        heard[i, :, i] += own[i]
    if conv.normalization == "augmented":
        roots = inverse_roots(own + torch.eye(D).double())
        heard = torch.einsum("iab,ibjc,jcd->iajd", roots, heard, roots)
    return heard.reshape(n * D, n * D)


@pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general"])
@pytest.mark.parametrize("normalization", ["augmented", None])
@pytest.mark.parametrize("weighted", [False, True])
def test_maps_of_arcs(maps: str, normalization: str | None, weighted: bool) -> None:
    conv = wave(DirectionalWaveConv, maps=maps, normalization=normalization)
    x = randn(5, D, H)
    weight = 0.5 + torch.rand(6, generator=generator(0)).double() if weighted else None
    operator = conv.laplacian(x, Graph(ARCS, 5), weight)
    check_operator(operator)
    matrix = operator.to_dense()
    assert_close(matrix, slow_directional(conv, x, weight), **EXACT)
    assert (matrix - matrix.T).abs().max() > 0.01


# --- the networks


def test_propagation_follows_the_equation() -> None:
    torch.manual_seed(0)
    model = NSP(F_IN, H, 3, OUT, stalk_dim=D, maps="general", add_lp=True).double().eval()
    x = randn(N, F_IN)
    state = before = F.elu(model.encoder(x)).view(N, D + 1, H)
    for conv in model.convs:
        state, before = 2 * state - before - F.elu(conv(state, EDGES)), state
    assert_close(model(x, EDGES), model.readout(state.flatten(1)), **EXACT)


def test_propagation_without_an_activation_is_a_wave() -> None:
    torch.manual_seed(0)
    options = {"left_weights": False, "right_weights": False, "act": "identity", "maps_once": True}
    model = NSP(F_IN, H, 6, OUT, stalk_dim=D, **options).double().eval()
    x = randn(N, F_IN)
    start = model.encoder(x).view(N, D, H)
    end = propagate(model.convs[0].laplacian(start, EDGES), start, 6, 1.0).x
    assert_close(model(x, EDGES), model.readout(end.flatten(1)), **EXACT)


@pytest.mark.parametrize("each_step", [False, True])
@pytest.mark.parametrize("kind", [ONDA, DirectionalONDA])
def test_blocks_follow_the_equation(kind: type[ONDA], each_step: bool) -> None:
    torch.manual_seed(0)
    options: dict[str, Any] = {"num_steps": 3, "dissipation": True, "maps_each_step": each_step}
    model = kind(F_IN, H, 2, OUT, stalk_dim=D, **options).double().eval()
    x, n = randn(N, F_IN), N
    state = F.elu(model.encoder(x)).view(n, D, H)
    for conv, mlp in zip(model.convs, model.mlps, strict=True):
        laplacian = None if each_step else conv.laplacian(state, EDGES)
        state = conv(state, EDGES, laplacian=laplacian)
        state = mlp.lin_out(F.gelu(mlp.lin_in(state.flatten(1)))).view(n, D, H)
    assert_close(model(x, EDGES), model.readout(state.flatten(1)), **EXACT)


def test_directional_maps_are_all_learned() -> None:
    torch.manual_seed(0)
    model = DirectionalONDA(F_IN, H, 2, OUT, stalk_dim=D).double()
    assert len(model.map_learners()) == 4
    one_way = model(randn(5, F_IN), ARCS)
    assert not torch.allclose(one_way, model(randn(5, F_IN), ARCS.flip(0)))


@pytest.mark.parametrize("kind", [WaveConv, DirectionalWaveConv])
def test_blocks_are_all_that_edges_have(kind: type[WaveConv], monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    n, h, d = 20, 32, 3
    nodes = torch.ones(n, n).fill_diagonal_(0).nonzero().T
    graph, m = Graph(nodes, n), nodes.shape[1]
    torch.manual_seed(0)
    conv = kind(h, d, maps="general", num_steps=3).double()
    x = randn(n, d, h).requires_grad_()
    graph.partners()
    with LargestTensor() as guard:
        laplacian = conv.laplacian(x, graph)
        conv(x, graph, laplacian=laplacian).sum().backward()
    assert guard.numel <= m * d * d


def test_steps_that_grow_are_refused() -> None:
    for step in (math.sqrt(2), 3.0):
        with pytest.raises(ValueError, match=r"`step_size` must be below √2 = 1\.414"):
            make_settings("onda", step_size=step).build(F_IN, OUT)
    with pytest.raises(ValueError, match="`step_size` must be positive"):
        make_settings("onda", step_size=0.0).build(F_IN, OUT)
    make_settings("onda", step_size=2.0, normalization="none").build(F_IN, OUT)
    # At the bound nothing decays and nothing grows; just beyond it, a mode at 2 would.
    for step, grows in ((1.41, False), (1.45, True)):
        edges = Graph(torch.tensor([[0, 1], [1, 0]]), 2)
        conv = conservative(maps="identity", num_steps=400, step_size=1.0, normalization=None)
        conv.step_size = step
        half = conv.laplacian(randn(2, D, H), edges)  # its largest eigenvalue is 2
        out = conv(randn(2, D, H), edges, laplacian=half)
        assert bool(out.abs().max() > 1e6) == grows


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`normalization` must be 'augmented'"):
        NSP(F_IN, H, 2, OUT, normalization="none")
    with pytest.raises(ValueError, match="`num_steps` must be"):
        make_settings("onda", num_steps=0).build(F_IN, OUT)
    with pytest.raises(ValueError, match="exclude each other"):
        ONDA(F_IN, H, 2, OUT, maps_each_step=True, maps_once=True)
    with pytest.raises(ValueError, match="`add_lp` must not be given: maps of arcs"):
        DirectionalONDA(F_IN, H, 2, OUT, add_lp=True)
    conv = conservative(maps="diagonal")
    with pytest.raises(ValueError, match="`edge_weight` must be None with a `laplacian`"):
        conv(randn(N, D, H), EDGES, torch.ones(EDGES.shape[1]).double(), laplacian=conv.laplacian(randn(N, D, H), EDGES))  # fmt: skip


def test_settings_and_recipes() -> None:
    assert not hasattr(make_settings("nsp"), "normalization")
    assert not hasattr(make_settings("onda-directional"), "add_lp")
    assert load_recipe("nsp/texas").model.num_layers == 4
    assert load_recipe("onda/texas").model.maps == "general"
