"""Exphormer against sums written out; routes, virtual nodes, expanders; batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, generator, path, randn
from torch import Tensor
from torch.testing import assert_close
from zoo.norms import normed, shake_norms

from coopsheaf import Graph
from coopsheaf.zoo.exphormer import Exphormer, ExphormerAttention, expander_edges
from coopsheaf.zoo.exphormer.routes import make_routes

EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)
N, EDGES = ODD_GRAPHS["random-directed"]
M = EDGES.shape[1]


def build(num_layers: int = 2, **options: Any) -> Exphormer:
    torch.manual_seed(0)
    options = {"num_heads": 2, "edge_channels": 3, "num_virtual": 2} | options
    model = Exphormer(5, 8, num_layers, 3, **options).double().eval()
    return shake_norms(model)  # type: ignore[return-value]


def slow_attention(module: ExphormerAttention, x: Tensor, ends: Tensor, said: Tensor) -> Tensor:
    """Head by head and edge by edge."""
    rows = []
    for i in range(x.shape[0]):
        heads = []
        for h in range(2):
            part = slice(4 * h, 4 * h + 4)
            total, weight = torch.zeros(4).double(), torch.zeros(()).double()
            for m, (j, target) in enumerate(ends.T.tolist()):
                if target != i:
                    continue
                q, k = (module.query.weight @ x[i])[part], (module.key.weight @ x[j])[part]
                w, v = (module.edge.weight @ said[m])[part], (module.value.weight @ x[j])[part]
                s = ((k * q * w).sum() / 2.0).clamp(-5, 5).exp()
                total, weight = total + s * v, weight + s
            heads.append(total / (weight + 1e-6))
        rows.append(torch.cat(heads))
    return torch.stack(rows)


def slow_gated(layer: Any, x: Tensor, ends: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """GatedGCN edge by edge: what it makes of nodes and of edges."""

    def linear(part: Any, row: Tensor) -> Tensor:
        return part.weight @ row + part.bias

    raw = []
    for m, (j, i) in enumerate(ends.T.tolist()):
        raw.append(
            linear(layer.target, x[i]) + linear(layer.source, x[j]) + linear(layer.edge, e[m])
        )
    rows = []
    for i in range(x.shape[0]):
        top, bottom = torch.zeros(8).double(), torch.zeros(8).double()
        for m, (j, target) in enumerate(ends.T.tolist()):
            if target == i:
                gate = torch.sigmoid(raw[m])
                top, bottom = top + gate * linear(layer.sent, x[j]), bottom + gate
        rows.append(linear(layer.own, x[i]) + top / (bottom + 1e-6))
    new = x + normed(layer.node_norm, torch.stack(rows)).relu()
    return new, e + normed(layer.edge_norm, torch.stack(raw)).relu()


@EACH_GRAPH
def test_attention_is_that_of_the_equation(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    torch.manual_seed(0)
    module = ExphormerAttention(8, num_heads=2).double()
    torch.nn.init.normal_(module.query.weight, std=2.0)  # some scores are clamped
    x, said = randn(n, 8).requires_grad_(), randn(edges.shape[1], 8, seed=1)
    got, want = module(x, *edges, said), slow_attention(module, x, edges, said)
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *module.parameters()], randn(n, 8, seed=3)
    if edges.shape[1]:
        grads = [
            torch.autograd.grad((y * probe).sum(), leaves, materialize_grads=True)
            for y in (got, want)
        ]
        for a, b in zip(*grads, strict=True):
            assert_close(a, b, rtol=0, atol=1e-10)


def slow(model: Exphormer, x: Tensor, edges: Tensor, attr: Tensor) -> Tensor:
    """The whole network on one graph, its virtual nodes written out."""
    n, count = x.shape[0], model.num_virtual
    h = model.encoder(x)
    e = attr @ model.edge_encoder.features.weight.T + model.edge_encoder.features.bias
    ends, said = edges.T.tolist(), list(e)
    for v in range(count):
        for i in range(n):
            ends += [[i, n + v], [n + v, i]]
            said += [model.inward[v], model.outward[v]]
    virtual = model.virtual if count else h[:0]
    for layer in model.layers:
        near, e_new = slow_gated(layer.gated, h, edges, e)
        heard = slow_attention(
            layer.attention, torch.cat([h, virtual]), torch.tensor(ends).T, torch.stack(said)
        )
        z = normed(layer.gated_norm, near) + normed(layer.attention_norm, h + heard[:n])
        inner = (z @ layer.lin_in.weight.T + layer.lin_in.bias).relu()
        h = normed(layer.out_norm, z + inner @ layer.lin_out.weight.T + layer.lin_out.bias)
        virtual, e = heard[n:], e_new  # what was said of the routes stays
    return h @ model.readout.weight.T + model.readout.bias


@pytest.mark.parametrize("num_virtual", [0, 1, 2])
def test_the_network_is_that_of_the_equations(num_virtual: int) -> None:
    model, x, attr = build(num_virtual=num_virtual), randn(N, 5), randn(M, 3, seed=1)
    got = model(x, EDGES, edge_attr=attr)
    assert_close(got, slow(model, x, EDGES, attr), rtol=0, atol=1e-11)


def test_without_virtual_nodes_and_expander_routes_are_the_edges() -> None:
    graph = Graph(EDGES, N)
    routes = make_routes(graph)
    assert torch.equal(torch.stack([routes.source, routes.target]), EDGES)
    edges = randn(M, 8)
    assert torch.equal(routes.features(edges, None, None, None), edges)


def test_virtual_nodes_bring_everybody_together() -> None:
    """Without them, two layers reach two hops."""
    n = 8
    for num_virtual, far in ((0, False), (1, True)):
        model, x = build(2, num_virtual=num_virtual, edge_channels=0), randn(n, 5)
        jacobian = torch.autograd.functional.jacobian(lambda x: model(x, path(n)), x)  # noqa: B023
        heard = jacobian.abs().sum((1, 3)) > 1e-14
        hops = (torch.arange(n).view(-1, 1) - torch.arange(n)).abs() <= 2
        assert torch.equal(heard, torch.ones_like(heard) if far else hops)


@pytest.mark.parametrize("expander_degree", [0, 2])
def test_a_batch_is_its_graphs_one_by_one(expander_degree: int) -> None:
    """Also where the nodes of a graph stand apart, and where a number has no node."""
    model = build(pool="mean", edge_channels=0, expander_degree=expander_degree)
    sizes = (5, 1, 7)
    parts = [(randn(n, 5, seed=n), path(n)) for n in sizes]
    alone = torch.cat([model(*part) for part in parts])
    batch = torch.tensor([0, 3, 1, 0, 3, 3, 0, 0, 3, 3, 0, 3, 3])
    x = torch.zeros(13, 5).double()
    edges = []
    for number, (features, ends) in zip((0, 1, 3), parts, strict=True):
        place = (batch == number).nonzero().squeeze(1)
        x[place] = features
        edges.append(place[ends])
    together = model(x, torch.cat(edges, 1), batch=batch, batch_size=4)
    assert_close(together[[0, 1, 3]], alone, rtol=0, atol=1e-11)


def test_the_order_of_nodes_matters_with_an_expander_alone() -> None:
    names = torch.randperm(N, generator=generator(0))
    for degree, same in ((0, True), (3, False)):
        model = build(pool="mean", expander_degree=degree)
        x, attr = randn(N, 5), randn(M, 3, seed=1)
        want = model(x, EDGES, edge_attr=attr)
        got = model(x[names.argsort()], names[EDGES], edge_attr=attr)
        assert torch.allclose(got, want, rtol=0, atol=1e-11) == same


def test_an_expander_is_nearly_regular_and_always_the_same() -> None:
    edges = expander_edges(50, 3)
    assert torch.equal(edges, expander_edges(50, 3))
    assert not torch.equal(edges, expander_edges(50, 3, seed=1))
    assert (edges[0] != edges[1]).all()
    there, back = ({tuple(e) for e in ends.T.tolist()} for ends in (edges, edges.flip(0)))
    assert there == back
    degree = torch.bincount(edges[1], minlength=50)
    assert int(degree.max()) <= 6
    assert degree.sum() >= 6 * 50 - 2 * 12  # few fixed points
    # Every node is near every other one: that is what it is for.
    near = torch.eye(50)
    matrix = torch.zeros(50, 50)
    matrix[edges[1], edges[0]] = 1
    for _ in range(5):
        near = ((near + matrix @ near) > 0).float()
    assert near.all()
    assert expander_edges(1, 4).shape == (2, 0)


def test_expander_edges_have_a_vector_of_their_own() -> None:
    model, x = build(expander_degree=2, edge_channels=0), randn(N, 5)
    before = model(x, EDGES)
    with torch.no_grad():
        model.expander += 1
    assert not torch.allclose(model(x, EDGES), before)
    assert build(expander_degree=0).expander is None


def test_attention_sees_the_first_features_of_edges_in_all_layers() -> None:
    """The gates have their own, which change: with the gates shut off, edges stay what they are."""
    model, x, attr = build(3, num_virtual=0), randn(N, 5), randn(M, 3, seed=1)
    seen: list[Tensor] = []
    for layer in model.layers:
        layer.attention.register_forward_pre_hook(lambda module, args: seen.append(args[3]))
    model(x, EDGES, edge_attr=attr)
    assert len(seen) == 3
    assert all(torch.equal(said, model.edge_encoder(attr, Graph(EDGES, N))) for said in seen)


def test_nothing_has_the_size_of_all_pairs() -> None:
    from allocations import LargestTensor

    n = 3000
    model = build(1, edge_channels=0, num_virtual=1).float()
    with LargestTensor() as seen:
        model(torch.zeros(n, 5), path(n))
    assert seen.numel < n * n / 10, seen.where


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"num_virtual": -1}, "`num_virtual` must be an integer of at least 0"),
        ({"expander_degree": -2}, "`expander_degree` must be an integer of at least 0"),
        ({"num_heads": 5}, "`num_heads` must divide the number of channels, 8; got 5"),
        ({"pe_kind": "sine"}, "`pe_kind` must be one of 'none', 'rwse', 'lappe'"),
    ],
)
def test_what_it_cannot_do_is_said(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        build(**options)


def test_missing_eigenvectors_do_not_count() -> None:
    """A graph with fewer nodes than eigenvectors has NaN for the others."""
    model = build(pe_kind="lappe", pe_channels=6, pe_width=3, edge_channels=0, pool="mean")
    x, pe = randn(4, 5), randn(4, 6, seed=2)
    pe[:, [2, 5]] = float("nan")
    out = model(x, bidirected(torch.tensor([[0, 1, 2], [1, 2, 3]])), pe=pe)
    assert torch.isfinite(out).all()
