"""GloGNN: the closed form against dense matrices, and the dense ones against the minimum."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from allocations import LargestTensor
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.glognn import GloGNN, global_step

N, C = 9, 3
EDGES = torch.randint(0, N - 1, (2, 22), generator=generator(6)).unique(dim=1)  # loops, one alone
HOPS = torch.tensor([0.7, -0.4, 0.2], dtype=torch.float64)
SETTINGS = [(0.0, 10.0, 0.01), (0.5, 0.0, 1.0), (0.1, 0.0, 1000.0), (0.7, 1.0, 0.1)]


def adjacency(kind: str, weight: Tensor | None = None) -> Tensor:
    a = torch.zeros(N, N).double()
    a[EDGES[1], EDGES[0]] = 1.0 if weight is None else weight
    if kind == "raw":
        return a
    a = a + torch.eye(N).double()
    return a / a.sum(1, keepdim=True)


def powers(a: Tensor, weights: Tensor) -> Tensor:
    return sum(w * torch.linalg.matrix_power(a, k) for k, w in enumerate(weights, start=1))


def coefficients(
    h: Tensor, first: Tensor, hops: Tensor, gamma: float, b1: float, b2: float
) -> Tensor:
    """Z*, n × n."""
    eye = torch.eye(len(h)).double()
    left = (1 - gamma) * h @ h.T + b2 * hops - gamma * (1 - gamma) * first @ h.T
    return left @ torch.linalg.inv((1 - gamma) ** 2 * h @ h.T + (b1 + b2) * eye)


@pytest.mark.parametrize(("gamma", "b1", "b2"), SETTINGS)
def test_a_step_is_the_dense_formula(gamma: float, b1: float, b2: float) -> None:
    a, first = adjacency("row-normalized"), randn(N, C, seed=2)
    leaves = [randn(N, C).requires_grad_() for _ in range(2)]
    step = partial(global_step, gamma=gamma, beta1=b1, beta2=b2)
    got = step(leaves[0], first, lambda x: a @ x, HOPS)
    z = coefficients(leaves[1], first, powers(a, HOPS), gamma, b1, b2)
    want = (1 - gamma) * z @ leaves[1] + gamma * first
    assert_close(got, want, rtol=1e-10, atol=1e-10)
    probe = randn(N, C, seed=5)
    found = [torch.autograd.grad((o * probe).sum(), x) for o, x in zip((got, want), leaves, strict=True)]  # fmt: skip
    assert_close(found[0], found[1], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("gamma", "b1", "b2"), SETTINGS)
def test_the_dense_formula_is_the_minimum(gamma: float, b1: float, b2: float) -> None:
    """The gradient of what shall be small vanishes there."""
    h, first, hops = randn(N, C), randn(N, C, seed=2), powers(adjacency("raw"), HOPS)
    z = coefficients(h, first, hops, gamma, b1, b2).requires_grad_()
    loss = (h - (1 - gamma) * z @ h - gamma * first).square().sum()
    loss = loss + b1 * z.square().sum() + b2 * (z - hops).square().sum()
    (gradient,) = torch.autograd.grad(loss, z)
    assert gradient.abs().max() < 1e-9 * max(1.0, b2)


def dense_network(model: GloGNN, x: Tensor, a: Tensor) -> Tensor:
    h = torch.zeros(()).double()
    if model.lin is not None:
        h = h + model.delta * (x @ model.lin.weight.T + model.lin.bias)
    if model.links is not None:
        h = h + (1 - model.delta) * (a @ model.links.weight + model.links.bias)
    for layer in model.mlp:
        h = h.relu() @ layer.weight.T + layer.bias
    first, hops = h, powers(a, model.hop_weights)
    gamma, b1, b2 = model.gamma, model.beta1, model.beta2
    for _ in range(model.num_layers):
        if model.scale is None:
            h = (1 - gamma) * coefficients(h, first, hops, gamma, b1, b2) @ h + gamma * first
            continue
        inverse = torch.linalg.inv((1 - gamma) ** 2 * h @ h.T + (b1 + b2) * torch.eye(N).double())
        w = torch.diag(model.scale)
        q = (1 - gamma) * inverse @ h @ w
        between = w @ h.T @ q
        h = (1 - gamma) * h @ between + b2 * hops @ q - gamma * (1 - gamma) * first @ between + gamma * first  # fmt: skip
    return h


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("delta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(("kind", "mlp_layers"), [("row-normalized", 1), ("raw", 2)])
def test_the_network_is_its_equations(
    scaled: bool, delta: float, kind: str, mlp_layers: int
) -> None:
    torch.manual_seed(0)
    options = {"delta": delta, "adjacency": kind, "mlp_layers": mlp_layers, "scaled": scaled}
    model = GloGNN(5, 6, 2, C, num_nodes=N, gamma=0.3, beta1=0.5, num_hops=3, **options)
    model, x = model.double().eval(), randn(N, 5)
    with torch.no_grad():
        model.hop_weights.add_(HOPS)
    assert_close(model(x, EDGES), dense_network(model, x, adjacency(kind)), rtol=1e-9, atol=1e-9)
    weight = 0.2 + torch.rand(EDGES.shape[1], generator=generator(1)).double()
    want = dense_network(model, x, adjacency(kind, weight))
    assert_close(model(x, EDGES, weight), want, rtol=1e-9, atol=1e-9)


def test_shares_start_equal() -> None:
    model = GloGNN(5, 6, 2, C, num_nodes=N, num_hops=4, scaled=True)
    assert_close(model.hop_weights.detach(), torch.full((4,), 0.25))
    assert model.scale is not None
    assert_close(model.scale.detach(), torch.full((C,), 1 / C))


def test_it_knows_its_nodes_by_place_and_refuses_another_graph() -> None:
    torch.manual_seed(0)
    model, x = GloGNN(5, 6, 2, C, num_nodes=N).double().eval(), randn(N, 5)
    names = torch.randperm(N, generator=generator(0))
    old = names.argsort()
    assert not torch.allclose(model(x[old], names[EDGES]), model(x, EDGES)[old])
    with pytest.raises(ValueError, match=r"`x` must have 9 rows.* got 10"):
        model(randn(10, 5), EDGES)


def test_nothing_has_the_size_of_edges_times_width_or_of_all_pairs() -> None:
    n, m, width = 300, 6000, 24
    graph = Graph(torch.randint(0, n, (2, m), generator=generator(2)), n)
    model = GloGNN(width, width, 2, width, num_nodes=n)
    x = randn(n, width).float().requires_grad_()
    with LargestTensor() as largest:
        model(x, graph).sum().backward()
    assert largest.numel < m * width // 4, largest.where
    assert largest.numel < n * n // 4, largest.where


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gamma": 1.0}, "`gamma` must be at least 0 and below 1; got 1.0"),
        ({"delta": 1.5}, "`delta` must be between 0 and 1; got 1.5"),
        ({"beta2": 0.0}, "`beta1` and `beta2` must not both be 0"),
        ({"beta1": -1.0}, "`beta1` must be finite and not negative; got -1"),
        ({"adjacency": "squared"}, "`adjacency` must be one of"),
    ],
)
def test_what_cannot_be_is_named(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GloGNN(5, num_nodes=N, **options)
