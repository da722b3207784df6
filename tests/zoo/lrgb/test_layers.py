"""Layers against their equations, written out edge by edge, and against PyG's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import ODD_GRAPHS, randn
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.nn import GCNConv, GINEConv
from torch_geometric.utils import to_dense_batch

from coopsheaf import Graph
from coopsheaf.zoo.lrgb import (
    GatedGCNLayer,
    GINELayer,
    GPSLayer,
    PaddedAttention,
    ResidualGCNLayer,
)
from coopsheaf.zoo.lrgb.attention import make_tables
from coopsheaf.zoo.lrgb.gps import Places
from coopsheaf.zoo.lrgb.network import make_head, normalize
from coopsheaf.zoo.plain.propagation import Propagation

WIDTH = 6
EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)


def inputs(name: str) -> tuple[Tensor, Tensor, Graph]:
    n, edges = ODD_GRAPHS[name]
    return randn(n, WIDTH), randn(edges.shape[1], WIDTH, seed=1), Graph(edges, n)


def build(kind: Any, **options: Any) -> Any:
    torch.manual_seed(0)
    layer = kind(WIDTH, **options).double().eval()
    for norm in layer.modules():  # norms that do something
        if isinstance(norm, nn.BatchNorm1d):
            norm.running_mean.copy_(randn(WIDTH, seed=5))
            norm.running_var.copy_(randn(WIDTH, seed=6).square() + 0.5)
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
    return layer


@EACH_GRAPH
def test_gcn_is_that_of_pyg_with_a_residual(name: str) -> None:
    x, _, graph = inputs(name)
    keep = graph.source != graph.target  # of loops PyG makes something else
    graph = Graph(graph.edge_index[:, keep], graph.num_nodes)
    layer, theirs = build(ResidualGCNLayer), GCNConv(WIDTH, WIDTH).double()
    theirs.lin.weight, theirs.bias = layer.linear.weight, layer.linear.bias
    got, e = layer(x, None, Propagation(graph, x))
    assert e is None
    assert_close(got, x + F.gelu(theirs(x, graph.edge_index)), rtol=0, atol=1e-12)


@EACH_GRAPH
def test_gine_is_that_of_pyg_with_a_residual(name: str) -> None:
    x, e, graph = inputs(name)
    layer = build(GINELayer)
    theirs = GINEConv(nn.Sequential(layer.inner, nn.GELU(), layer.outer), eps=0.0)
    got, same = layer(x, e, graph)
    assert same is e
    assert_close(got, x + theirs(x, graph.edge_index, e), rtol=0, atol=1e-12)


def slow_gated(layer: GatedGCNLayer, x: Tensor, e: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
    """Edge by edge."""
    total, gates = torch.zeros_like(x), torch.zeros_like(x)
    edges = []
    for k, (j, i) in enumerate(graph.edge_index.T.tolist()):
        f = layer.target(x[i]) + layer.source(x[j]) + layer.edge(e[k])
        total[i] += f.sigmoid() * layer.sent(x[j])
        gates[i] += f.sigmoid()
        edges.append(f)
    y = layer.own(x) + total / (gates + 1e-6)
    return y, torch.stack(edges) if edges else e


def slow_norm(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


@EACH_GRAPH
@pytest.mark.parametrize("act", [F.relu, F.gelu])
def test_gated_gcn_is_its_equations(name: str, act: Any) -> None:
    x, e, graph = inputs(name)
    layer = build(GatedGCNLayer, act=act)
    with torch.no_grad():
        y, f = slow_gated(layer, x, e, graph)
        got_x, got_e = layer(x, e, graph)
        assert_close(got_x, x + act(slow_norm(layer.node_norm, y)), rtol=0, atol=1e-12)
        assert_close(got_e, e + act(slow_norm(layer.edge_norm, f)), rtol=0, atol=1e-12)


def test_attention_is_that_of_pytorch_on_the_padded_batch() -> None:
    torch.manual_seed(0)
    sizes = torch.tensor([3, 7, 1, 5, 2])
    batch = torch.repeat_interleave(torch.arange(5), sizes)
    x = randn(int(sizes.sum()), 8)
    layer = PaddedAttention(8, 4).double().eval()
    theirs = nn.MultiheadAttention(8, 4, batch_first=True).double()
    nn.init.normal_(layer.project.bias)
    nn.init.normal_(layer.out.bias)
    theirs.in_proj_weight, theirs.in_proj_bias = layer.project.weight, layer.project.bias
    theirs.out_proj.weight, theirs.out_proj.bias = layer.out.weight, layer.out.bias
    dense, there = to_dense_batch(x, batch)
    want = theirs(dense, dense, dense, key_padding_mask=~there)[0][there]
    for at_once in (1, 2, 5, 16):
        assert_close(layer(x, make_tables(batch, at_once)), want, rtol=0, atol=1e-12)
    alone = [layer(part) for part in x.split(sizes.tolist())]
    assert_close(torch.cat(alone), want, rtol=0, atol=1e-12)


def test_nodes_of_a_batch_may_stand_in_any_order_and_graphs_be_empty() -> None:
    torch.manual_seed(0)
    batch = torch.tensor([4, 0, 4, 2, 0, 4, 2, 2, 2])  # 1 and 3 have no nodes
    x, layer = randn(9, 8).requires_grad_(), PaddedAttention(8, 2).double()
    got = layer(x, make_tables(batch, 2))
    for graph in batch.unique():
        assert_close(got[batch == graph], layer(x[batch == graph]), rtol=0, atol=1e-12)
    got.sum().backward()
    assert bool(x.grad.isfinite().all())


def test_padding_is_never_seen() -> None:
    """A graph beside larger ones: neither its outputs nor its gradients change."""
    torch.manual_seed(0)
    layer = PaddedAttention(8, 4).double().eval()
    x, others = randn(3, 8).requires_grad_(), randn(20, 8, seed=1)
    batch = torch.cat([torch.zeros(3), torch.ones(20)]).long()
    beside = layer(torch.cat([x, others]), make_tables(batch))[:3]
    (got,) = torch.autograd.grad(beside.square().sum(), x)
    (want,) = torch.autograd.grad(layer(x).square().sum(), x)
    assert_close(beside, layer(x), rtol=0, atol=1e-12)
    assert_close(got, want, rtol=0, atol=1e-12)


def test_gps_is_its_equations() -> None:
    x, e, graph = inputs("random-directed")
    layer = build(GPSLayer, num_heads=2)
    with torch.no_grad():
        near, edges = layer.local(x, e, graph)
        y, _ = slow_gated(layer.local, x, e, graph)
        assert_close(near, x + F.gelu(slow_norm(layer.local.node_norm, y)), rtol=0, atol=1e-12)
        u = slow_norm(layer.local_norm, near)
        u = u + slow_norm(layer.global_norm, x + layer.attention(x))
        want = slow_norm(layer.last_norm, u + layer.outer(F.gelu(layer.inner(u))))
        got, got_edges = layer(x, e, Places(graph, None))
    assert_close(got, want, rtol=0, atol=1e-12)
    assert torch.equal(got_edges, edges)


def test_attention_dropout_is_on_the_weights_in_training_only() -> None:
    torch.manual_seed(0)
    layer, x = PaddedAttention(8, 4, dropout=0.5).double(), randn(30, 8)
    assert not torch.allclose(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


@pytest.mark.parametrize("rows", [0, 1])
def test_a_norm_of_one_row_or_none_is_by_what_was_seen_before(rows: int) -> None:
    norm = nn.BatchNorm1d(4).double().train()
    norm.running_mean.fill_(2.0)
    x = randn(rows, 4)
    assert_close(normalize(norm, x), (x - 2) / (1 + norm.eps) ** 0.5, rtol=0, atol=1e-12)
    assert bool(norm.running_mean.isfinite().all())


def test_the_head_has_dropout_before_each_of_its_layers() -> None:
    assert [type(part) for part in make_head(4, 2, 3, 0.1)] == [
        *(nn.Dropout, nn.Linear, nn.GELU) * 2, nn.Dropout, nn.Linear,
    ]  # fmt: skip
    assert isinstance(make_head(4, None, 3, 0.1), nn.Identity)
    with pytest.raises(ValueError, match="`head_layers` must be"):
        make_head(4, 2, 0, 0.1)


def test_heads_divide_the_width() -> None:
    with pytest.raises(ValueError, match="`hidden_channels` must be a multiple of num_heads = 4"):
        PaddedAttention(6, 4)
    assert repr(PaddedAttention(8, 4)) == "PaddedAttention(8, num_heads=4)"
