"""Dir-GNN against its equations and PyG's layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, randn
from torch.testing import assert_close
from torch_geometric.nn import DirGNNConv, GCNConv, SAGEConv
from zoo.dense import adjacency

from coopsheaf import Graph
from coopsheaf.zoo.dirgnn import DirGCNConv, DirGNN, DirSAGEConv

N, EDGES = ODD_GRAPHS["random-directed"]
EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)
SIZES = pytest.mark.parametrize(("before", "after"), [(5, 3), (3, 5)])


def mean_matrix(a: torch.Tensor) -> torch.Tensor:
    return a / a.sum(1, keepdim=True).clamp(min=1)


def power(degree: torch.Tensor) -> torch.Tensor:
    return torch.where(degree > 0, degree.clamp(min=1) ** -0.5, torch.zeros_like(degree))


@EACH_GRAPH
@SIZES
@pytest.mark.parametrize("kind", [DirSAGEConv, DirGCNConv])
def test_values_and_gradients_are_those_of_the_equation(
    name: str, before: int, after: int, kind: Any
) -> None:
    n, edges = ODD_GRAPHS[name]
    torch.manual_seed(0)
    conv, x = kind(before, after, alpha=0.3).double(), randn(n, before).requires_grad_()
    a = adjacency(n, edges)  # row i: who points to i
    if kind is DirSAGEConv:
        along, against = mean_matrix(a), mean_matrix(a.T)
    else:
        along = power(a.sum(1))[:, None] * a * power(a.sum(0))[None, :]
        against = along.T
    want = 0.3 * conv.lin_out(against @ x) + 0.7 * conv.lin_in(along @ x)
    want = want if conv.lin is None else want + conv.lin(x)
    got = conv(x, Graph(edges, n))
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *conv.parameters()], randn(n, after, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for g, w in zip(*grads, strict=True):
        assert_close(g, w, rtol=0, atol=1e-11)


@EACH_GRAPH
@SIZES
def test_it_is_pygs_layer_around_sage(name: str, before: int, after: int) -> None:
    n, edges = ODD_GRAPHS[name]
    conv = DirSAGEConv(before, after, alpha=0.3).double()
    theirs = DirGNNConv(SAGEConv(before, after, root_weight=False), alpha=0.3).double()
    theirs.conv_in.lin_l, theirs.conv_out.lin_l = conv.lin_in, conv.lin_out
    theirs.lin = conv.lin
    x = randn(n, before)
    assert_close(conv(x, Graph(edges, n)), theirs(x, edges), rtol=0, atol=1e-12)


def test_pygs_layer_around_gcn_counts_other_degrees() -> None:
    conv = DirGCNConv(5, 4, alpha=0.3).double()
    theirs = DirGNNConv(GCNConv(5, 4), alpha=0.3, root_weight=False).double()
    for ours, other in ((conv.lin_in, theirs.conv_in), (conv.lin_out, theirs.conv_out)):
        other.lin.weight, other.bias = ours.weight, ours.bias
    x = randn(N, 5)
    both = torch.cat([EDGES, EDGES.flip(0)], dim=1)  # then in- and out-degrees are one
    assert_close(conv(x, Graph(both, N)), theirs(x, both), rtol=0, atol=1e-12)
    assert not torch.allclose(conv(x, Graph(EDGES, N)), theirs(x, EDGES))


@pytest.mark.parametrize("conv", ["sage", "gcn"])
def test_the_network_is_its_layers(conv: str) -> None:
    torch.manual_seed(0)
    model = DirGNN(5, 6, 2, 3, conv=conv, normalize_rows=True, jk="cat").double().eval()
    x, graph, layers = randn(N, 5), Graph(EDGES, N), []
    h = x
    for layer in model.convs:
        h = layer(h, graph).relu()
        h = h / h.norm(dim=1, keepdim=True).clamp(min=1e-12)
        layers.append(h)
    assert_close(model(x, EDGES), model.readout(torch.cat(layers, 1)), rtol=0, atol=1e-12)


def test_alpha_chooses_the_direction() -> None:
    x = randn(4, 5)
    one_way = torch.tensor([[0, 1, 2], [1, 2, 3]])
    for alpha, deaf in ((0.0, 0), (1.0, 3)):  # nobody points to the first, the last to nobody
        conv = DirGCNConv(5, 4, alpha=alpha).double()
        out = conv(x, Graph(one_way, 4))
        bias = conv.lin_in.bias if alpha == 0 else conv.lin_out.bias
        heard = (out - bias).abs().sum(1) > 1e-12
        assert heard.tolist() == [node != deaf for node in range(4)]


def test_bad_arguments_are_named_and_repr_states_the_transformation() -> None:
    for option, value in (("alpha", 2.0), ("conv", "gat"), ("dropout", 1.0), ("jk", "mean")):
        with pytest.raises(ValueError, match=f"`{option}`"):
            DirGNN(5, 6, 2, 3, **{option: value})
    want = "DirGNN(5, 6, num_layers=2, out_channels=3, conv='sage', alpha=0.5)"
    assert repr(DirGNN(5, 6, 2, 3)) == want
    assert repr(DirGCNConv(5, 6, alpha=1.0)) == "DirGCNConv(5, 6, alpha=1.0)"
