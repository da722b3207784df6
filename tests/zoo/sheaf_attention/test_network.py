"""Sheaf attention against graph attention and against its equation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from allocations import LargestTensor
from coboundaries import atlas, reverse_of
from graphs import randn
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import GATConv

from coopsheaf import Graph
from coopsheaf.models.registry import make_settings
from coopsheaf.sheaves.kernels import sparse
from coopsheaf.zoo.sheaf_attention import SheafAttention, SheafAttentionConv

N, EDGES = atlas()[-2]
D, H, F_IN, OUT = 2, 4, 5, 3
KINDS = pytest.mark.parametrize("maps", ["diagonal", "orthogonal", "general", "identity"])


def layer(d: int = D, **options: Any) -> SheafAttentionConv:
    torch.manual_seed(0)
    conv = SheafAttentionConv(H, d, **options).double()
    if conv.left is not None:
        torch.nn.init.normal_(conv.left.weight)
    return conv


def slow(conv: SheafAttentionConv, x: Tensor) -> Tensor:
    z = torch.stack([conv.left.weight @ row @ conv.right.weight.T for row in x])
    back, kind = reverse_of(EDGES), conv.edge_maps
    maps = []
    for j, i in EDGES.T.tolist():
        pair, f = torch.cat([x[i].flatten(), x[j].flatten()]), torch.eye(D).double()
        if conv.map_learner is not None:
            f = kind.dense(kind.make(conv.map_act(conv.map_learner.lin(pair))[None]))[0]
        maps.append(f)
    rows = []
    for i in range(N):
        heard = [(i, torch.eye(D).double())]
        for e, (j, target) in enumerate(EDGES.T.tolist()):
            if target == i:
                heard.append((j, maps[e].T @ maps[back[e]]))
        scores = [conv.score.lin(torch.cat([z[i].flatten(), z[j].flatten()])) for j, _ in heard]
        share = torch.softmax(F.leaky_relu(torch.cat(scores), 0.2), dim=0)
        rows.append(sum(a * block @ z[j] for a, (j, block) in zip(share, heard, strict=True)))
    y = torch.stack(rows)
    return y - z if conv.residual else y


@KINDS
@pytest.mark.parametrize("residual", [False, True])
def test_values_and_gradients_are_those_of_the_equation(maps: str, residual: bool) -> None:
    conv, x = layer(maps=maps, residual=residual), randn(N, D, H).requires_grad_()
    leaves, grads = [x, *conv.parameters()], []
    for out in (conv(x, EDGES), slow(conv, x)):
        grads.append([out, *torch.autograd.grad((out * randn(*out.shape, seed=1)).sum(), leaves)])
    for got, want in zip(*grads, strict=True):
        assert_close(got, want, **EXACT)
    check_operator(conv.attention(x.detach(), randn(N, D, H, seed=2), Graph(EDGES, N)))


def test_stalks_of_one_dimension_and_identities_are_graph_attention() -> None:
    conv = layer(1, maps="identity", left_weights=False)
    theirs = GATConv(H, H, heads=1, bias=False).double()
    theirs.lin.weight.data = conv.right.weight.data
    at_target, at_source = conv.score.lin.weight.data.split(H, dim=1)
    theirs.att_dst.data, theirs.att_src.data = at_target[None], at_source[None]
    x = randn(N, H)
    assert_close(conv(x.unsqueeze(1), EDGES).squeeze(1), theirs(x, EDGES), **EXACT)


@pytest.mark.parametrize("residual", [False, True])
def test_the_network_is_its_layers(residual: bool) -> None:
    torch.manual_seed(0)
    model = SheafAttention(F_IN, H, 2, OUT, stalk_dim=D, residual=residual).double().eval()
    x = randn(N, F_IN)
    state = F.elu(model.encoder(x)).view(N, D, H)
    for conv in model.convs:
        out = F.elu(conv(state, EDGES))
        state = state + out if residual else out
    assert_close(model(x, EDGES), model.readout(state.flatten(1)), **EXACT)


def test_blocks_are_all_that_edges_have(monkeypatch) -> None:
    monkeypatch.setattr(sparse, "SLICE_NUMEL", 1000)
    n, h, d = 20, 32, 3
    edges = torch.ones(n, n).fill_diagonal_(0).nonzero().T
    torch.manual_seed(0)
    conv, x = SheafAttentionConv(h, d).double(), randn(n, d, h).requires_grad_()
    graph = Graph(edges, n)
    conv(x, graph)
    with LargestTensor() as guard:
        conv(x, graph).sum().backward()
    assert guard.numel <= edges.shape[1] * d * d


def test_what_belongs_to_laplacians_is_refused() -> None:
    settings = make_settings("sheaf-attention")
    assert not any(hasattr(settings, name) for name in ("normalization", "add_lp", "maps_once"))
    with pytest.raises(ValueError, match="`add_lp` must not be given: attention has no such thing"):
        SheafAttention(F_IN, H, 2, OUT, add_lp=True)
    with pytest.raises(ValueError, match="must be None: attention has neither"):
        layer()(randn(N, D, H), EDGES, torch.ones(EDGES.shape[1]).double())
