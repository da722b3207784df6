"""Dirichlet energy: zero where it must be, and its decay where that is known."""

from __future__ import annotations

import math

import pytest
import torch
from analysis.networks import Diffusion, build, csnn, ring
from graphs import ODD_GRAPHS, path, randn
from models.test_all import EACH_LAYERED, EDGES, F_IN, N
from torch import Tensor

from coopsheaf.analysis import (
    compare_energy,
    energy_by_layer,
    feature_energy,
    layer_features,
    rayleigh_by_layer,
)
from coopsheaf.analysis.energy import EnergyProfile


def plain_energy(x: Tensor, edges: Tensor, normalization: str | None) -> float:
    """Edge by edge, each pair of neighbours once."""
    pairs = {(min(u, v), max(u, v)) for u, v in edges.T.tolist() if u != v}
    degree = [sum(k in pair for pair in pairs) for k in range(len(x))]
    plus = {"augmented": 1, "plain": 0}.get(normalization)

    def scaled(k: int) -> Tensor:
        return x[k] if plus is None else x[k] / math.sqrt(degree[k] + plus)

    return sum(float((scaled(u) - scaled(v)).square().sum()) for u, v in pairs)


@pytest.mark.parametrize("graph", ODD_GRAPHS)
@pytest.mark.parametrize("normalization", [None, "augmented", "plain"])
def test_it_is_a_sum_over_neighbours(graph: str, normalization: str | None) -> None:
    n, edges = ODD_GRAPHS[graph]
    x = randn(n, 2, 3)
    got = feature_energy(x, edges, normalization)
    assert got.dtype == torch.float64
    want = plain_energy(x, edges, normalization)
    assert float(got) == pytest.approx(want, rel=1e-12, abs=1e-14)


def test_agreement_has_no_energy() -> None:
    n, edges = ODD_GRAPHS["bidirected"]
    constant = torch.ones(n, 3)
    assert float(feature_energy(constant, edges, None)) == 0
    assert float(feature_energy(constant, edges)) > 0.1
    pairs = {frozenset(pair) for pair in edges.T.tolist() if len(set(pair)) == 2}
    degree = torch.tensor([sum(k in pair for pair in pairs) for k in range(n)]).double()
    section = (degree + 1).sqrt()[:, None]
    assert float(feature_energy(section, edges)) < 1e-14
    assert float(feature_energy(torch.ones(3, 1), torch.empty(2, 0, dtype=torch.int64))) == 0


def test_direction_and_repetition_do_not_matter() -> None:
    x, one_way = randn(4, 3), torch.tensor([[0, 1, 2], [1, 2, 3]])
    twice = torch.cat([path(4), path(4), torch.tensor([[1], [1]])], dim=1)
    assert torch.equal(feature_energy(x, one_way), feature_energy(x, path(4)))
    assert torch.equal(feature_energy(x, twice), feature_energy(x, path(4)))


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_decay_of_a_linear_diffusion(share: float) -> None:
    """On a ring, cos(2πk i/n) is multiplied by 1 - a + a (1 + 2 cos 2πk/n)/3 in each layer.

    One frequency keeps its relative energy; its energy falls by the square of that factor.
    """
    n, k = 12, 2
    wave = (2 * math.pi * k / n * torch.arange(n).double()).cos()[:, None]
    factor = 1 - share + share * (1 + 2 * math.cos(2 * math.pi * k / n)) / 3
    profile = energy_by_layer(Diffusion(1, 4, share).double(), wave, ring(n))
    want = profile.energy[0] * factor ** (2 * torch.arange(5).double())
    torch.testing.assert_close(profile.energy, want, rtol=1e-12, atol=0)
    level = (2 - 2 * math.cos(2 * math.pi * k / n)) / 3  # the eigenvalue of Δ
    torch.testing.assert_close(profile.relative, torch.full((5,), level).double())
    assert profile.decay == pytest.approx(1)


def test_decay_of_two_frequencies() -> None:
    """The constant stays and the wave shrinks: E/‖X‖² = λ f^2t / (1 + f^2t) for equal shares."""
    n, k = 10, 1
    wave = (2 * math.pi * k / n * torch.arange(n).double()).cos()[:, None] * math.sqrt(2) + 1
    factor = (1 + 2 * math.cos(2 * math.pi * k / n)) / 3
    level = (2 - 2 * math.cos(2 * math.pi * k / n)) / 3
    profile = energy_by_layer(Diffusion(1, 30, 1.0).double(), wave, ring(n))
    falling = factor ** (2 * torch.arange(31).double())
    torch.testing.assert_close(profile.relative, level * falling / (1 + falling))
    assert 0.7 < profile.decay < 1
    assert profile.relative[-1] < 1e-3 * profile.relative[0]


@EACH_LAYERED
def test_every_model_has_a_profile(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    profile = energy_by_layer(model, x, EDGES)
    assert profile.energy.shape == (model.num_layers + 1,)
    assert ((profile.relative >= 0) & (profile.relative <= 2)).all()
    last = layer_features(model, x, EDGES)[-1].detach()
    assert float(profile.energy[-1]) == pytest.approx(plain_energy(last, EDGES, "augmented"))
    assert float(profile.squared_norm[-1]) == pytest.approx(float(last.square().sum()))


@pytest.mark.parametrize(
    "option", [{"step": "wave"}, {"semantics": "messages"}, {"block": "prenorm"}]
)
def test_options_of_csnn_have_the_profile_of_their_layers(option: dict[str, str]) -> None:
    model, x = csnn(**option), randn(N, F_IN)
    profile = energy_by_layer(model, x, EDGES)
    features = layer_features(model, x, EDGES)
    assert len(features) == model.num_layers + 1
    for energy, layer in zip(profile.energy, features, strict=True):
        assert float(energy) == pytest.approx(plain_energy(layer.detach(), EDGES, "augmented"))


def test_several_models() -> None:
    models = {"a": csnn(), "b": csnn(num_layers=3)}
    profiles = compare_energy(models, randn(N, F_IN), EDGES, normalization=None)
    assert [len(profile.energy) for profile in profiles.values()] == [3, 4]


def test_features_that_vanish() -> None:
    profile = EnergyProfile(torch.tensor([1.0, 0.0]), torch.tensor([2.0, 0.0]))
    assert profile.relative.tolist() == [0.5, 0.0]
    assert math.isnan(profile.decay)
    assert math.isnan(EnergyProfile(torch.ones(1), torch.ones(1)).decay)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"`x` must have shape \(n, ...\)"):
        feature_energy(randn(3), path(3))
    with pytest.raises(ValueError, match="`x` must have a floating point dtype"):
        feature_energy(torch.ones(3, 1, dtype=torch.int64), path(3))
    with pytest.raises(ValueError, match="`normalization` must be"):
        feature_energy(randn(3, 1), path(3), "no")
    with pytest.raises(ValueError, match="`edge_index` must"):
        feature_energy(randn(2, 1), path(3))


# ---- Rayleigh quotients


def test_rayleigh_quotients_are_those_of_dense_matrices() -> None:
    model = build("nsd-general").requires_grad_(False)
    x = randn(N, F_IN)
    found = rayleigh_by_layer(model, x, EDGES)
    constant = build("nsd-identity").convs[0].laplacian(randn(N, 3, 4), EDGES).to_dense()
    states = layer_features(model, x, EDGES)
    for t, conv in enumerate(model.convs):
        state = states[t].view(N, 3, 4)
        y = (conv.left.weight @ state @ conv.right.weight.T).flatten(0, 1)  # (n·d, h)
        own = conv.laplacian(state, EDGES).to_dense()
        for matrix, got in ((own, found.sheaf[t]), (constant, found.identity[t])):
            want = torch.trace(y.T @ matrix @ y) / torch.trace(y.T @ y)
            assert float(got) == pytest.approx(float(want), rel=1e-10)
        assert 0 <= found.sheaf[t] < 2


@pytest.mark.parametrize("name", ["isn", "nsd-identity"])
def test_of_identities_both_quotients_are_one(name: str) -> None:
    found = rayleigh_by_layer(build(name), randn(N, F_IN), EDGES)
    assert found.sheaf.shape == (2,)
    torch.testing.assert_close(found.sheaf, found.identity, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["conn-nsd", "quiver-nsd", "dsnn"])
def test_relatives_have_quotients(name: str) -> None:
    found = rayleigh_by_layer(build(name), randn(N, F_IN), EDGES)
    assert found.sheaf.shape == found.identity.shape == (2,)
    assert (found.sheaf >= 0).all()


def test_a_root_of_the_laplacian_has_the_quotient_of_its_square() -> None:
    """Nonlinear diffusion has δR for an operator: with φ = id it is Neural Sheaf Diffusion."""
    linear, bent = build("nsd-orthogonal"), build("nlsd", phi="identity")
    bent.load_state_dict(linear.state_dict())
    x = randn(N, F_IN)
    one, other = (rayleigh_by_layer(model, x, EDGES) for model in (linear, bent))
    torch.testing.assert_close(one.sheaf, other.sheaf, rtol=0, atol=1e-12)


def test_networks_without_such_layers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`model` must be Neural Sheaf Diffusion .* got CSNN"):
        rayleigh_by_layer(csnn(), randn(N, F_IN), EDGES)
