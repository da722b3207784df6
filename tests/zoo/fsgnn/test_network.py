"""FSGNN against its equation with dense powers; what is kept with the graph, and what is not."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from allocations import LargestTensor
from graphs import generator, randn
from torch import Tensor
from torch.func import jacrev
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.loop import _make_optimizer
from coopsheaf.zoo.fsgnn import FSGNN
from coopsheaf.zoo.fsgnn.network import HOPS

N, K = 8, 3
EDGES = torch.randint(0, N - 1, (2, 20), generator=generator(6)).unique(dim=1)  # one node alone


def dense_powers(x: Tensor, hops: str, edges: Tensor = EDGES, weight: Tensor | None = None) -> list:
    """X, A_n X, A_n² X, ... with row sums on both sides."""
    found = [x]
    for added in HOPS[hops]:
        a = torch.zeros(N, N).double()
        a[edges[1], edges[0]] = 1.0 if weight is None else weight
        a = a + torch.eye(N).double() if added else a
        root = a.sum(1).pow(-0.5)
        root[a.sum(1) == 0] = 0
        matrix = root[:, None] * a * root[None, :]
        found += [torch.linalg.matrix_power(matrix, k) @ x for k in range(1, K + 1)]
    return found


def dense(model: FSGNN, x: Tensor, **options: Tensor) -> Tensor:
    shares, parts = torch.softmax(model.attention, 0), []
    for m, hop in enumerate(dense_powers(x, model.hops, **options)):
        y = hop @ model.weight[m] + model.bias[m]
        parts.append(shares[m] * (y / y.norm(dim=1, keepdim=True) if model.hop_norm else y))
    out = torch.cat(parts, 1).relu()
    return out @ model.readout.weight.T + model.readout.bias


def make(hops: str = "no-loop", **options: bool) -> FSGNN:
    torch.manual_seed(0)
    model = FSGNN(5, 4, K, 3, hops=hops, **options).double().eval()
    with torch.no_grad():
        model.attention.add_(randn(*model.attention.shape))
    return model


@pytest.mark.parametrize("hops", HOPS)
@pytest.mark.parametrize("hop_norm", [True, False])
def test_the_network_is_its_equation(hops: str, hop_norm: bool) -> None:
    model, x, graph = make(hops, hop_norm=hop_norm), randn(N, 5), Graph(EDGES, N)
    want = dense(model, x)
    assert_close(model(x, graph), want, rtol=0, atol=1e-12)  # kept
    left, right = x.clone().requires_grad_(), x.clone().requires_grad_()
    probe = randn(N, 3, seed=2)
    found = [
        torch.autograd.grad((out * probe).sum(), leaf)
        for out, leaf in ((model(left, graph), left), (dense(model, right), right))
    ]
    assert_close(found[0], found[1], rtol=0, atol=1e-11)


def test_weights_of_edges_count() -> None:
    model, x = make("all"), randn(N, 5)
    weight = 0.2 + torch.rand(EDGES.shape[1], generator=generator(1)).double()
    assert_close(model(x, EDGES, weight), dense(model, x, weight=weight), rtol=0, atol=1e-12)


def test_shares_sum_to_one_and_start_equal() -> None:
    model = FSGNN(5, 4, K, 3, hops="all")
    assert_close(torch.softmax(model.attention, 0), torch.full((2 * K + 1,), 1 / (2 * K + 1)))
    assert_close(torch.softmax(make().attention, 0).sum(), torch.ones(()).double())


def test_with_all_weight_on_the_features_no_edge_matters() -> None:
    """Then it is a perceptron of two layers, rows normalised in between."""
    model, x = make(), randn(N, 5)
    with torch.no_grad():
        model.attention.copy_(torch.tensor([0.0] + K * [-1e9]))
    own = F.normalize(x @ model.weight[0] + model.bias[0], dim=1).relu()
    want = own @ model.readout.weight[:, :4].T + model.readout.bias
    for edges in (EDGES, EDGES.flip(0), EDGES[:, :2]):
        assert_close(model(x, Graph(edges, N)), want, rtol=0, atol=1e-12)


def test_hops_are_kept_for_the_same_features_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from coopsheaf.zoo.fsgnn import network

    calls = []
    plain = network._propagate
    monkeypatch.setattr(network, "_propagate", lambda *a: calls.append(1) or plain(*a))
    model, x, graph = make(), randn(N, 5), Graph(EDGES, N)
    first = model(x, graph)
    with torch.inference_mode():
        assert torch.equal(model(x, graph), first)
    assert len(calls) == 1
    other = randn(N, 5, seed=1)
    assert_close(model(other, graph), dense(model, other))  # other features
    assert_close(model(x, graph), first)
    x[0] += 1  # written into
    assert_close(model(x, graph), dense(model, x))
    assert len(calls) == 4
    jacrev(lambda x: model(x, graph))(x)
    assert_close(model(x, graph), dense(model, x))
    model(x, graph).sum().backward()


def test_parts_have_rates_and_decays_of_their_own() -> None:
    torch.manual_seed(0)
    model = FSGNN(5, 4, K, 3, attention_lr=0.04, attention_weight_decay=0.1, output_weight_decay=0.0)  # fmt: skip
    optimizer = _make_optimizer(model, TrainConfig(lr=0.01, weight_decay=1e-3))
    found = {id(p): (g["lr"], g["weight_decay"]) for g in optimizer.param_groups for p in g["params"]}  # fmt: skip
    assert found[id(model.attention)] == (0.04, 0.1)
    assert found[id(model.readout.weight)] == found[id(model.readout.bias)] == (0.01, 0.0)
    assert found[id(model.weight)] == (0.01, 1e-3)
    assert FSGNN(5, 4, K, 3).parameter_groups() == []


def test_nothing_has_the_size_of_edges_times_width() -> None:
    n, m, width = 100, 6000, 24
    graph = Graph(torch.randint(0, n, (2, m), generator=generator(2)), n)
    model, x = FSGNN(width, width, 2, width), randn(n, width).float()
    with LargestTensor() as largest:
        model(x, graph).sum().backward()
    assert largest.numel < m * width // 4, largest.where


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(ValueError, match="`hops` must be one of"):
        FSGNN(5, hops="some")
    with pytest.raises(ValueError, match="`attention_lr` must be finite and not negative; got -1"):
        FSGNN(5, attention_lr=-1.0)
    with pytest.raises(ValueError, match="`num_layers`"):
        FSGNN(5, num_layers=0)
