"""PairNorm and its GCN against their equations and PyG's norm."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn
from graphs import ODD_GRAPHS, randn, random_weight
from torch.testing import assert_close
from zoo.dense import adjacency, symmetric

from coopsheaf.zoo.pairnorm import PairNorm, PairNormGCN

N, EDGES = ODD_GRAPHS["random-directed"]
X = randn(8, 5) + 3
BATCH = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])


def build(num_layers: int = 3, **options: Any) -> PairNormGCN:
    torch.manual_seed(0)
    return PairNormGCN(5, 6, num_layers, 3, **options).double().eval()


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_columns_are_centred_and_the_mean_norm_is_kept(scale: float) -> None:
    y = PairNorm(scale, eps=0.0)(X)
    assert_close(y.mean(0), torch.zeros(5).double(), rtol=0, atol=1e-12)
    assert_close(y.square().sum(1).mean(), torch.tensor(scale**2).double())
    # So the mean squared distance of pairs is 2 s².
    assert_close(torch.cdist(y, y).square().mean(), torch.tensor(2 * scale**2).double())


def test_the_modes_are_their_equations() -> None:
    centred = X - X.mean(0)
    norm = (1e-6 + centred.square().sum(1).mean()).sqrt()
    assert_close(PairNorm(2.0)(X), 2 * centred / norm)
    assert_close(PairNorm(2.0, "si", 0.0)(X), 2 * centred / centred.norm(dim=1, keepdim=True))
    # The mean that is taken off is that of the features as they were.
    assert_close(PairNorm(2.0, "scs", 0.0)(X), 2 * X / X.norm(dim=1, keepdim=True) - X.mean(0))


def test_it_is_pygs_but_for_eps() -> None:
    for batch in (None, BATCH):
        want = torch_geometric.nn.PairNorm(2.0, eps=1e-6)(X, batch)
        assert_close(PairNorm(2.0)(X, batch), want)
        default = torch_geometric.nn.PairNorm(2.0)(1e-3 * X, batch)
        assert not torch.allclose(PairNorm(2.0)(1e-3 * X, batch), default, rtol=1e-3)
    theirs = torch_geometric.nn.PairNorm(1.0, scale_individually=True, eps=1e-6)
    assert_close(PairNorm(1.0, "si")(X), theirs(X), rtol=1e-5, atol=0)


@pytest.mark.parametrize("mode", ["pn", "si", "scs"])
def test_every_graph_of_a_batch_is_normed_by_itself(mode: str) -> None:
    norm = PairNorm(mode=mode)
    assert_close(norm(X, BATCH), torch.cat([norm(X[:3]), norm(X[3:])]))


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_and_gradients_are_those_of_the_equation(name: str, weighted: bool) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(), randn(n, 5).requires_grad_()
    weight = random_weight(edges.shape[1]) if weighted else None
    s, h = symmetric(adjacency(n, edges, weight)), x
    for t, lin in enumerate(model.convs):
        h = s @ h @ lin.weight.T + lin.bias
        if t < 2:
            h = h - h.mean(0)
            h = (h / (1e-6 + h.square().sum(1).mean()).sqrt()).relu()
    got = model(x, edges, weight)
    assert_close(got, h, rtol=0, atol=1e-11)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, h)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_however_deep_nodes_stay_apart() -> None:
    """Without the norm a GCN of 60 layers leaves nothing of the differences."""
    model, x = build(60), randn(N, 5)
    seen = []
    model.norm.register_forward_hook(lambda module, inputs, out: seen.append(out))
    model(x, EDGES)
    assert len(seen) == 59
    assert min(float(y.square().sum(1).mean().detach()) for y in seen) > 0.5


def test_how_it_starts_and_what_it_says() -> None:
    torch.manual_seed(0)
    model = PairNormGCN(50, 16, 2, 4)
    first, second = model.convs
    assert 0.24 < first.weight.abs().max() <= 0.25
    assert 0.4 < second.weight.abs().max() <= 0.5
    assert repr(build()) == "PairNormGCN(5, 6, num_layers=3, out_channels=3, mode='pn')"
    assert repr(PairNorm()) == "PairNorm(scale=1.0, mode='pn')"
    with pytest.raises(ValueError, match="`mode` must be one of 'pn', 'si', 'scs'"):
        build(mode="?")
    noisy = build(1, dropout=0.5).train()  # also before the only layer
    assert not torch.equal(noisy(randn(N, 5), EDGES), noisy(randn(N, 5), EDGES))
