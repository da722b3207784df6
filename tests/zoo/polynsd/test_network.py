"""Polynomial Neural Sheaf Diffusion against eigenvalues."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from coboundaries import atlas
from graphs import path, randn
from laws import EXACT
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis.hops import hop_distances
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves.operator import Operator
from coopsheaf.train.recipes import load_recipe
from coopsheaf.zoo.polynsd import PolyNSD

N, EDGES = atlas()[-2]
F_IN, H, OUT, K = 5, 4, 3, 4


def network(**settings: Any) -> PolyNSD:
    torch.manual_seed(0)
    options = {"stalk_dim": 2, "num_hops": K} | settings
    model = PolyNSD(F_IN, H, 2, OUT, **options).double().eval()
    for parameter in (*model.epsilons, model.eta, model.alpha):
        torch.nn.init.normal_(parameter)
    return model


def slow_filter(model: PolyNSD, laplacian: Operator, bound: float) -> Tensor:
    """Σ softmax(η)_k cos(k arccos λ̂) + α (1 - λ/b) at every eigenvalue λ."""
    values, vectors = torch.linalg.eigh(laplacian.to_dense())
    angle = (2 * values / bound - 1).clamp(-1, 1).arccos()
    share = torch.softmax(model.eta, dim=0)
    p = sum(share[k] * (k * angle).cos() for k in range(model.num_hops + 1))
    p = p + model.alpha * (1 - values / bound)
    return vectors @ p.diag() @ vectors.T


@pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])
@pytest.mark.parametrize("weights", [False, True])
def test_layers_follow_the_equation(maps: str, weights: bool) -> None:
    model = network(maps=maps, left_weights=weights, right_weights=weights, add_hp=True)
    x = randn(N, F_IN)
    state = F.elu(model.encoder(x)).view(N, 3, H)
    for conv, epsilon in zip(model.convs, model.epsilons, strict=True):
        matrix = slow_filter(model, conv.laplacian(state, EDGES), 2.0)
        mixed = conv.left.weight @ conv.right(state) if weights else state
        z = (matrix @ mixed.flatten(0, 1)).view_as(state)
        state = (1 + epsilon.tanh()) * state - F.elu(z)
    assert_close(model(x, EDGES), model.readout(state.flatten(1)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("normalization", ["none", "degree"])
@pytest.mark.parametrize("maps", ["diagonal", "general"])
def test_other_laplacians_are_within_their_bound(maps: str, normalization: str) -> None:
    """Twice the largest degree is none for general maps, whose squares exceed 1."""
    model = network(maps=maps, normalization=normalization, map_act="identity")
    for n, edges in atlas(40):
        if not edges.shape[1]:
            continue
        laplacian = model.convs[0].laplacian(3 * randn(n, 2, H), Graph(edges, n))
        found = model.filter(laplacian)
        largest = torch.linalg.eigvalsh(laplacian.to_dense()).max()
        assert largest <= found.interval[1] * (1 + 1e-12)
        want = slow_filter(model, laplacian, float(found.interval[1]))
        assert_close(found.to_dense(), want, rtol=0, atol=1e-8)


def test_without_edges_there_is_nothing_to_bound() -> None:
    model = network(normalization="none")
    assert torch.isfinite(model(randn(3, F_IN), torch.empty(2, 0, dtype=torch.int64))).all()


def test_the_filter_does_not_lengthen() -> None:
    model = network(maps="general")
    torch.nn.init.zeros_(model.alpha)
    for seed, (n, edges) in enumerate(atlas(40)):
        laplacian = model.convs[0].laplacian(9 * randn(n, 2, H, seed=seed), Graph(edges, n))
        assert torch.linalg.matrix_norm(model.filter(laplacian).to_dense(), ord=2) <= 1 + 1e-12


def test_it_reaches_as_many_hops_as_its_degree() -> None:
    graph, n = Graph(path(9)), 9
    distance = hop_distances(graph, list(range(n)))
    for hops in (1, 2, 3):
        model = network(num_hops=hops, maps="general")
        laplacian = model.convs[0].laplacian(randn(n, 2, H), graph)
        blocks = model.filter(laplacian).to_dense().view(n, 2, n, 2).abs().amax((1, 3))
        assert blocks[distance > hops].max() == 0
        assert blocks[distance == hops].min() > 0


def test_one_hop_is_affine_and_one_share_leaves_features_alone() -> None:
    model, x = network(num_hops=1, maps="diagonal"), randn(N, 2, H)
    laplacian = model.convs[0].laplacian(x, EDGES)
    first, second = torch.softmax(model.eta, dim=0)
    diffused = laplacian.mv(x)
    want = first * x + second * (diffused - x) + model.alpha * (x - diffused / 2)
    assert_close(model.filter(laplacian).mv(x), want, **EXACT)
    model = network(maps="diagonal")
    model.eta.data.copy_(torch.tensor([1e4, 0.0, 0.0, 0.0, 0.0]))
    want = x + model.alpha * (x - diffused / 2)
    assert_close(model.filter(laplacian).mv(x), want, **EXACT)


def test_how_it_starts() -> None:
    model = PolyNSD(F_IN, H, 2, OUT)
    assert (model.num_hops, model.convs[0].left, model.convs[0].right) == (15, None, None)
    assert_close(model.coefficients(), torch.full((16,), 1 / 16))
    assert load_recipe("polynsd/texas").model.num_hops == 15


def test_dropout_is_after_the_polynomial(monkeypatch) -> None:
    seen: list[tuple[int, ...]] = []

    def spy(x: Tensor, p: float, training: bool) -> Tensor:
        seen.append(tuple(x.shape)) if training and p > 0 else None
        return x

    model = network(dropout=0.5).train()
    monkeypatch.setattr(F, "dropout", spy)
    model(randn(N, F_IN), EDGES)
    # The encoder's output; Z of the first layer; what the second learner sees; its Z.
    assert seen == [(N, 2 * H), (N, 2, H), (N, 2, H), (N, 2, H)]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`num_hops` must be"):
        make_settings("polynsd", num_hops=0).build(F_IN, OUT)
