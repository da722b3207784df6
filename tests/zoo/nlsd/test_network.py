"""Nonlinear sheaf diffusion: against the equation, and what φ must be."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from coboundaries import atlas, inverse_roots, reverse_of, symmetric_weight
from graphs import generator, randn
from laws import EXACT, check_operator
from torch import Tensor, nn
from torch.testing import assert_close

from coopsheaf.sheaves import BoundedConfidence
from coopsheaf.zoo.nlsd import NLSD, NLSDConv, OddPerceptron
from coopsheaf.zoo.nsd import NSD, NSDConv

N, EDGES = atlas()[-2]
D, H, F_IN, OUT = 2, 4, 5, 3
KINDS = ["diagonal", "orthogonal", "general"]
PHIS = {"mlp": {"phi": "mlp"}, "bounded": {"phi": "bounded-confidence", "threshold": 0.7}}


def layer(**settings: Any) -> NLSDConv:
    torch.manual_seed(0)
    conv = NLSDConv(H, D, **settings).double()
    nn.init.normal_(conv.left.weight)
    return conv


def slow(conv: NLSDConv, x: Tensor, weight: Tensor) -> Tensor:
    """Every directed edge by itself, all matrices dense."""
    back = reverse_of(EDGES)
    maps = conv.edge_maps.dense(conv.maps(x, EDGES))
    if conv.weight_learner is not None:
        ends = torch.cat([x.flatten(1)[EDGES[1]], x.flatten(1)[EDGES[0]]], dim=1)
        z = torch.sigmoid(ends @ conv.weight_learner.lin.weight[0])
        weight = weight * (z * z[back]).square()
    degree = torch.zeros(N, D, D).double()
    for e, i in enumerate(EDGES[1].tolist()):
        degree[i] = degree[i] + weight[e] * maps[e].T @ maps[e]
    root = inverse_roots(degree + torch.eye(D).double())
    hat = root @ (conv.left.weight @ x @ conv.right.weight.T)
    out = [torch.zeros(D, H).double() for _ in range(N)]
    for e, (j, i) in enumerate(EDGES.T.tolist()):
        gap = weight[e].sqrt() * (maps[e] @ hat[i] - maps[back[e]] @ hat[j])
        out[i] = out[i] + weight[e].sqrt() * maps[e].T @ conv.phi(gap[None])[0]
    return root @ torch.stack(out)


@pytest.mark.parametrize("maps", KINDS)
@pytest.mark.parametrize("phi", PHIS)
def test_the_equation(maps: str, phi: str) -> None:
    """φ at both directions of an edge, where the layer computes it once."""
    conv, x, weight = layer(maps=maps, **PHIS[phi]), randn(N, D, H), symmetric_weight(EDGES)
    assert_close(conv(x, EDGES, weight), slow(conv, x, weight), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("maps", "normalization"),
    [*((maps, kind) for maps in KINDS for kind in ("augmented", None)), ("general", "degree")],
)
def test_the_identity_gives_nsd(maps: str, normalization: str | None) -> None:
    conv = layer(maps=maps, phi="identity", normalization=normalization)
    plain = NSDConv(H, D, maps=maps, normalization=normalization).double()
    plain.load_state_dict(conv.state_dict())
    x, weight = randn(N, D, H), symmetric_weight(EDGES)
    assert_close(conv(x, EDGES, weight), plain(x, EDGES, weight), rtol=0, atol=1e-12)
    root = conv.laplacian(x, EDGES, weight)
    check_operator(root)
    assert root.codomain == (EDGES.shape[1] // 2, D)
    square = root.to_dense().T @ root.to_dense()
    assert_close(square, plain.laplacian(x, EDGES, weight).to_dense(), **EXACT)


def test_a_network_with_the_identity_is_nsd() -> None:
    torch.manual_seed(0)
    bent = NLSD(F_IN, H, 3, OUT, stalk_dim=D, phi="identity").double().eval()
    plain = NSD(F_IN, H, 3, OUT, stalk_dim=D).double().eval()
    plain.load_state_dict(bent.state_dict())
    x = randn(N, F_IN)
    assert_close(bent(x, EDGES), plain(x, EDGES), **EXACT)


def test_the_perceptron_is_odd_and_bent() -> None:
    torch.manual_seed(0)
    phi, y = OddPerceptron(D * H).double(), randn(5, D, H)
    assert_close(phi(-y), -phi(y), rtol=0, atol=1e-14)
    assert not torch.allclose(phi(2 * y), 2 * phi(y))
    flat = y.flatten(1)

    def whole(flat: Tensor) -> Tensor:
        hidden = flat @ phi.first.weight.T + phi.first.bias
        return torch.where(hidden > 0, hidden, 0.01 * hidden) @ phi.second.weight.T

    assert_close(phi(y).flatten(1), (whole(flat) - whole(-flat)) / 2, **EXACT)


@pytest.mark.parametrize("phi", PHIS)
def test_the_order_and_names_of_nodes_do_not_matter(phi: str) -> None:
    """Renaming turns pairs round: φ is odd."""
    conv, x = layer(**PHIS[phi]), randn(N, D, H)
    names = torch.randperm(N, generator=generator(1))
    old = names.argsort()
    assert_close(conv(x[old], names[EDGES]), conv(x, EDGES)[old], **EXACT)


def test_a_convex_potential_does_not_increase() -> None:
    """φ = tanh is the gradient of Σ log cosh."""
    conv, x = layer(phi=torch.tanh, left_weights=True), randn(N, D, H)
    nn.init.eye_(conv.left.weight)
    nn.init.eye_(conv.right.weight)
    root = conv.laplacian(x, EDGES)

    def potential(x: Tensor) -> Tensor:
        return root.mv(x).cosh().log().sum()

    energies = [potential(x)]
    for _ in range(30):
        x = x - 0.5 * conv(x, EDGES, laplacian=root)
        energies.append(potential(x))
    assert all(after < before for before, after in pairwise(energies))


def test_those_too_far_apart_do_not_hear_each_other() -> None:
    conv, x = layer(phi="bounded-confidence", threshold=1e-3), randn(N, D, H)
    assert isinstance(conv.phi, BoundedConfidence)
    assert_close(conv(x, EDGES), torch.zeros(N, D, H).double(), **EXACT)
    near = 1e-5 * x
    wide = layer(phi="identity")
    wide.load_state_dict(conv.state_dict())
    laplacian = conv.laplacian(x, EDGES)
    got, want = (c(near, EDGES, laplacian=laplacian) for c in (conv, wide))
    assert_close(got, want, rtol=1e-3, atol=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layer(phi="cubic"), "`phi` must be one of 'mlp', 'bounded-confidence', 'identity'; got 'cubic'"),
        (lambda: layer(phi="bounded-confidence", threshold=0.0), "`threshold` must be positive"),
        (lambda: layer(add_lp=True), "`add_lp` and `add_hp` must be False"),
        (lambda: NLSD(F_IN, H, add_hp=True), "`add_lp` and `add_hp` must be False"),
        (lambda: layer()(randn(3, D, H), torch.tensor([[0, 1], [1, 2]])), "every edge both ways"),
        (lambda: layer()(randn(2, D, H), torch.tensor([[0, 0, 1], [0, 1, 0]])), "must not hold self-loops"),
    ],
)  # fmt: skip
def test_bad_input(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
