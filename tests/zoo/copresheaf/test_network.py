"""Copresheaf attention against multi-head attention and against its equation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from allocations import LargestTensor
from graphs import generator, randn
from laws import EXACT
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.zoo.copresheaf import Copresheaf, CopresheafAttention

C, HEADS, N, F_IN, OUT = 6, 2, 5, 4, 3
P = C // HEADS
ARCS = torch.tensor([[0, 1, 1, 2, 3, 3, 2], [1, 2, 0, 3, 1, 0, 3]])
GRAPH = Graph(ARCS, N)
KINDS = pytest.mark.parametrize("maps", ["fc", "spd", "diagonal"])


def attention(maps: str = "fc") -> CopresheafAttention:
    torch.manual_seed(0)
    conv = CopresheafAttention(C, num_heads=HEADS, maps=maps).double()
    for kind in conv.maps:
        torch.nn.init.normal_(kind.lin.weight)
    return conv


def slow_map(conv: CopresheafAttention, maps: str, k: int, q: Tensor, key: Tensor) -> Tensor:
    kind = conv.maps[k]
    z = kind.lin.weight @ torch.cat([q, key])
    if maps == "fc":
        return torch.eye(P).double() + z.view(P, P).tanh()
    if maps == "spd":
        return torch.eye(P).double() + z.view(P, P) @ z.view(P, P).T
    return torch.sigmoid(kind.last(torch.relu(z + kind.bias))).diag()


def slow(conv: CopresheafAttention, maps: str, x: Tensor) -> Tensor:
    q, key, v = ((linear(x)).view(N, HEADS, P) for linear in (conv.query, conv.key, conv.value))
    rows = []
    for i in range(N):
        senders, parts = [j for j, t in ARCS.T.tolist() if t == i], []
        for k in range(HEADS):
            if not senders:
                parts.append(torch.zeros(P).double())
                continue
            scores = torch.stack([q[i, k] @ key[j, k] for j in senders]) / P**0.5
            share = torch.softmax(scores, dim=0)
            parts.append(
                sum(
                    a * slow_map(conv, maps, k, q[i, k], key[j, k]) @ v[j, k]
                    for a, j in zip(share, senders, strict=True)
                )
            )
        rows.append(conv.out.weight @ torch.cat(parts))
    return torch.stack(rows)


@KINDS
def test_values_and_gradients_are_those_of_the_equation(maps: str) -> None:
    conv, x = attention(maps), randn(N, C).requires_grad_()
    leaves, grads = [x, *conv.parameters()], []
    for out in (conv(x, GRAPH), slow(conv, maps, x)):
        grads.append([out, *torch.autograd.grad((out * randn(*out.shape, seed=1)).sum(), leaves)])
    for got, want in zip(*grads, strict=True):
        assert_close(got, want, **EXACT)


@pytest.mark.parametrize("maps", ["fc", "spd"])
def test_without_maps_it_is_multi_head_attention(maps: str) -> None:
    """As ``fc`` starts; everybody hears everybody."""
    torch.manual_seed(0)
    conv = CopresheafAttention(C, num_heads=HEADS, maps=maps).double()
    for kind in conv.maps:
        assert (kind.lin.weight == 0).all() == (maps == "fc")
        torch.nn.init.zeros_(kind.lin.weight)
    theirs = torch.nn.MultiheadAttention(C, HEADS, bias=False, batch_first=True).double()
    theirs.in_proj_weight.data = torch.cat(
        [linear.weight.data for linear in (conv.query, conv.key, conv.value)]
    )
    theirs.out_proj.weight.data = conv.out.weight.data
    x, everybody = randn(N, C), torch.ones(N, N).nonzero().T
    want, _ = theirs(x[None], x[None], x[None])
    assert_close(conv(x, Graph(everybody, N)), want[0], **EXACT)


def test_maps_there_and_back_are_not_transposed_and_positive_ones_do_not_shrink() -> None:
    there_and_back = Graph(torch.tensor([[0, 1], [1, 0]]), 2)
    q, key = randn(2, P), randn(2, P, seed=1)
    there, back = attention("fc").maps[0](q, key, there_and_back)
    assert (there - back.T).abs().max() > 0.1
    for rho in attention("spd").maps[0](q, key, there_and_back):
        assert torch.linalg.eigvalsh(rho).min() >= 1 - 1e-12
    numbers = attention("diagonal").maps[0](q, key, there_and_back)
    assert numbers.min() > 0
    assert numbers.max() < 1


@KINDS
def test_the_network_is_its_layers(maps: str) -> None:
    torch.manual_seed(0)
    model = Copresheaf(F_IN, C, 2, OUT, num_heads=HEADS, maps=maps).double().eval()
    x = randn(N, F_IN)
    state = F.gelu(model.encoder(x))
    for conv, mlp, norm in zip(model.convs, model.mlps, model.norms, strict=True):
        state = norm(state + mlp.lin_out(F.gelu(mlp.lin_in(conv(state, GRAPH)))))
    assert_close(model(x, GRAPH), model.readout(state), **EXACT)
    assert len(model.map_learners()) == 2 * HEADS


@pytest.mark.parametrize("maps", ["fc", "diagonal"])
def test_maps_are_all_that_arcs_have(maps: str, monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    n, c, heads = 20, 64, 16
    graph = Graph(torch.randint(0, n, (2, 380), generator=generator(0)), n)
    conv, x = CopresheafAttention(c, num_heads=heads, maps=maps).double(), randn(n, c)
    with LargestTensor() as guard:
        conv(x.requires_grad_(), graph).sum().backward()
    assert guard.numel <= max(380 * (c // heads) ** 2, n * c)  # one head at a time


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`maps` must be one of 'fc', 'spd', 'diagonal'"):
        make_settings("copresheaf", maps="other").build(F_IN, OUT)
    with pytest.raises(ValueError, match="`num_heads`"):
        make_settings("copresheaf", num_heads=5).build(F_IN, OUT)
