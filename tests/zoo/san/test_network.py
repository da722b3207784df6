"""SAN against sums over all pairs, written out; what γ decides; batches, padding, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from graphs import ODD_GRAPHS, generator, path, randn
from torch import Tensor
from torch.testing import assert_close
from zoo.norms import normed, shake_norms

from coopsheaf import Graph
from coopsheaf.zoo.san import SAN, SANAttention, pair_blocks, pairs

EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)
N, EDGES = ODD_GRAPHS["random-directed"]
M = EDGES.shape[1]


def build(num_layers: int = 2, **options: Any) -> SAN:
    torch.manual_seed(0)
    options = {"num_heads": 2, "gamma": 0.3, "edge_channels": 3} | options
    return shake_norms(SAN(5, 8, num_layers, 3, **options).double().eval())  # type: ignore[return-value]


def attention(gamma: float = 0.3, scale: float = 1.0) -> SANAttention:
    torch.manual_seed(0)
    module = SANAttention(8, num_heads=2, gamma=gamma).double()
    for part in (module.query, module.far_query):
        torch.nn.init.normal_(part.weight, std=scale)
    return module


def slow_attention(
    module: SANAttention, x: Tensor, edges: Tensor, e: Tensor, f: Tensor, batch: Tensor
) -> Tensor:
    """Head by head and pair by pair."""
    n, gamma, rows = x.shape[0], module.gamma, []
    ends = edges.T.tolist()

    def take(linear: torch.nn.Module, row: Tensor, h: int) -> Tensor:
        return (linear.weight @ row)[4 * h : 4 * h + 4]

    def score(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
        return ((q * k * w).sum() / 2.0).clamp(-5, 5).exp()

    for i in range(n):
        heads = []
        for h in range(2):
            total, weight = torch.zeros(4).double(), torch.zeros(()).double()
            for j in range(n):
                if batch[i] != batch[j]:
                    continue
                here = [m for m, (s, t) in enumerate(ends) if (s, t) == (j, i)]
                v = take(module.value, x[j], h)
                for m in here:
                    parts = (module.query, x[i]), (module.key, x[j]), (module.edge, e[m])
                    s = score(*(take(a, b, h) for a, b in parts)) / (1 + gamma)
                    total, weight = total + s * v, weight + s
                if not here:
                    parts = (
                        (module.far_query, x[i]),
                        (module.far_key, x[j]),
                        (module.far_edge, f[0]),
                    )
                    s = score(*(take(a, b, h) for a, b in parts)) * gamma / (1 + gamma)
                    total, weight = total + s * v, weight + s
            heads.append(total / (weight + 1e-6))
        rows.append(torch.cat(heads))
    return torch.stack(rows)


@EACH_GRAPH
def test_attention_is_that_of_the_equation(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    module, x = attention(scale=2.0), randn(n, 8).requires_grad_()  # some scores are clamped
    e, f = randn(edges.shape[1], 8, seed=1), randn(1, 8, seed=2)
    graph, batch = Graph(edges, n), torch.zeros(n).long()
    got = module(x, graph, e, f, pair_blocks(graph))
    want = slow_attention(module, x, edges, e, f, batch)
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *module.parameters()], randn(n, 8, seed=3)
    grads = [
        torch.autograd.grad((y * probe).sum(), leaves, materialize_grads=True) for y in (got, want)
    ]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize("together", [1, 30, 1 << 20])
def test_blocks_are_all_pairs_without_an_edge(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of a graph may stand anywhere, and a number of a batch may have no node."""
    monkeypatch.setattr(pairs, "PAIRS", together)
    batch = torch.tensor([3, 0, 3, 0, 1, 3, 3, 1, 0, 3])
    n = batch.numel()
    drawn = torch.randint(0, n, (2, 60), generator=generator(0))
    edges = drawn[:, batch[drawn[0]] == batch[drawn[1]]]
    found: list[tuple[int, int]] = []
    for block in pair_blocks(Graph(edges, n), batch):
        for g, i, j in block.apart.nonzero().tolist():
            found.append((int(block.nodes[g, i]), int(block.nodes[g, j])))
    joined = {(t, s) for s, t in edges.T.tolist()}
    same = {(i, j) for i in range(n) for j in range(n) if batch[i] == batch[j]}
    assert len(found) == len(set(found))
    assert set(found) == same - joined


@pytest.mark.parametrize("together", [1, 1 << 20])
def test_attention_of_a_batch_is_that_of_the_equation(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "PAIRS", together)
    batch = torch.tensor([2, 0, 2, 0, 1, 2, 2, 0])
    drawn = torch.randint(0, 8, (2, 30), generator=generator(1))
    edges = drawn[:, batch[drawn[0]] == batch[drawn[1]]]
    module, x, graph = attention(), randn(8, 8), Graph(edges, 8)
    e, f = randn(edges.shape[1], 8, seed=1), randn(1, 8, seed=2)
    got = module(x, graph, e, f, pair_blocks(graph, batch))
    assert_close(got, slow_attention(module, x, edges, e, f, batch), rtol=0, atol=1e-12)


def edge_attention(module: SANAttention, x: Tensor, edges: Tensor, e: Tensor) -> Tensor:
    """Attention along the edges and nothing else, as a matrix per head; no parallel edges."""
    out = []
    for h in range(2):
        part = slice(4 * h, 4 * h + 4)
        q, k, v = ((x @ m.weight.T)[:, part] for m in (module.query, module.key, module.value))
        w = (e @ module.edge.weight.T)[:, part]
        weights = torch.zeros(x.shape[0], x.shape[0]).double()
        scores = ((q[edges[1]] * k[edges[0]] * w).sum(1) / 2).clamp(-5, 5).exp()
        weights[edges[1], edges[0]] = scores
        out.append(weights @ v / (weights.sum(1, keepdim=True) + 1e-6))
    return torch.cat(out, 1)


def test_without_a_share_for_others_it_is_attention_along_the_edges() -> None:
    edges = EDGES.T.unique(dim=0).T
    x, e, f = randn(N, 8), randn(edges.shape[1], 8, seed=1), randn(1, 8, seed=2)
    graph = Graph(edges, N)
    want = edge_attention(attention(), x, edges, e)
    gaps = []
    for gamma in (0.1, 1e-7, 1e-8, 0.0):
        got = attention(gamma)(x, graph, e, f, pair_blocks(graph))
        gaps.append((got - want).abs().max().item())
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert 9.5 < gaps[1] / gaps[2] < 10.5  # in proportion to the share
    assert gaps[3] < 1e-12
    assert gaps[0] > 1e-3


def test_a_layer_is_that_of_the_equation() -> None:
    model, x = build(1), randn(N, 5)
    attr, graph = randn(M, 3, seed=4), Graph(EDGES, N)
    (layer,) = model.layers
    h, e = model.encoder(x), model.edge_encoder(attr, graph)
    zeros = torch.zeros(N).long()
    heard = slow_attention(layer.attention, h, EDGES, e, model.other, zeros)
    z = normed(layer.norm, h + heard @ layer.out.weight.T + layer.out.bias)
    inner = (z @ layer.lin_in.weight.T + layer.lin_in.bias).relu()
    want = normed(layer.last_norm, z + inner @ layer.lin_out.weight.T + layer.lin_out.bias)
    assert_close(model.embed(x, graph, edge_attr=attr), want, rtol=0, atol=1e-12)


def test_graphs_may_be_renamed_and_padded() -> None:
    """The output of a graph knows neither the order of its nodes nor how large the others are."""
    model, x, attr = build(pool="mean"), randn(N, 5), randn(M, 3, seed=1)
    want = model(x, EDGES, edge_attr=attr)
    names = torch.randperm(N, generator=generator(0))
    assert_close(model(x[names.argsort()], names[EDGES], edge_attr=attr), want, rtol=0, atol=1e-12)
    for n in (2, 40):
        edges, more = path(n) + N, randn(n, 5, seed=2)
        together = model(
            torch.cat([x, more]),
            torch.cat([EDGES, edges], 1),
            edge_attr=torch.cat([attr, randn(edges.shape[1], 3, seed=3)]),
            batch=torch.tensor([0] * N + [1] * n),
            batch_size=2,
        )
        assert_close(together[:1], want, rtol=0, atol=1e-12)


def test_one_graph_object_serves_several_batches() -> None:
    model, x = build(edge_channels=0), randn(6, 5)
    edges = torch.cat([path(3), path(3) + 3], 1)
    graph, halves = Graph(edges, 6), torch.tensor([0, 0, 0, 1, 1, 1])
    apart, one = model(x, graph, batch=halves), model(x, graph)
    assert not torch.allclose(apart, one)  # the halves attend to each other
    assert torch.equal(model(x, graph, batch=halves.clone()), apart)
    assert torch.equal(model(x, Graph(edges, 6)), one)


def test_everybody_hears_everybody() -> None:
    model, n = build(1, edge_channels=0), 6
    x = randn(n, 5)
    edges = torch.tensor([[0, 1], [1, 0]])
    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, edges), x)
    assert (jacobian.abs().sum((1, 3)) > 1e-12).all()


def test_features_of_edges_are_used() -> None:
    model, x, attr = build(), randn(N, 5), randn(M, 3, seed=1)
    assert not torch.allclose(model(x, EDGES, edge_attr=attr), model(x, EDGES, edge_attr=2 * attr))
    order = torch.randperm(M, generator=generator(1))
    got = model(x, EDGES[:, order], edge_attr=attr[order])
    assert_close(got, model(x, EDGES, edge_attr=attr), rtol=0, atol=1e-12)


def test_large_graphs_are_refused_before_anything_is_made() -> None:
    model = build(most_nodes=20, edge_channels=0).float()
    for batch in (None, torch.tensor([0] * 21 + [1])):
        n = 21 if batch is None else 22
        rule = r"`x` must have at most 20 nodes per graph .*`most_nodes`.*; got 21"
        with pytest.raises(ValueError, match=rule) as caught:
            model(torch.zeros(n, 5), path(n), batch=batch)
        assert "\n" not in str(caught.value)
    with LargestTensor() as seen, pytest.raises(ValueError, match="at most 5000 nodes"):
        build(edge_channels=0).float()(torch.zeros(6000, 5), path(6000))
    assert seen.numel < 6000 * 100


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"gamma": -1.0}, "`gamma` must be finite and not negative; got -1.0"),
        ({"num_heads": 3}, "`num_heads` must divide the number of channels, 8; got 3"),
        ({"encoder": "atoms", "edge_channels": 2}, "`in_channels` must be 9"),
        ({"pe_kind": "rwse"}, "`pe_channels` must be the number of columns"),
        (
            {"pe_kind": "rwse", "pe_channels": 4, "pe_steps": 5, "pe_width": 2},
            "`pe_steps` must be None but for random walks",
        ),
        (
            {"pe_kind": "lappe", "pe_channels": 4, "pe_steps": 2, "pe_width": 2},
            "`pe_steps` must be None but for random walks",
        ),
    ],
)
def test_what_it_cannot_do_is_said(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        build(**options)


def test_fewer_steps_of_random_walks() -> None:
    model = build(pe_kind="rwse", pe_channels=6, pe_steps=4, pe_width=2, edge_channels=0)
    x, pe = randn(N, 5), randn(N, 6, seed=3)
    other = torch.cat([pe[:, :4], pe[:, 4:] + 1], 1)
    assert torch.equal(model(x, EDGES, pe=pe), model(x, EDGES, pe=other))
    assert not torch.allclose(model(x, EDGES, pe=pe), model(x, EDGES, pe=pe + 1))


def test_codes_of_molecules() -> None:
    torch.manual_seed(0)
    model = SAN(9, 8, 1, 2, num_heads=2, encoder="atoms", edge_channels=3, pool="mean").eval()
    x = torch.randint(0, 2, (4, 9), generator=generator(0)).float()
    attr = torch.randint(0, 2, (6, 3), generator=generator(1)).float()
    out = model(x, path(4), edge_attr=attr)
    assert out.shape == (1, 2)
    assert not torch.allclose(model(x, path(4), edge_attr=1 - attr), out)
    with pytest.raises(ValueError, match="`edge_channels` must be 3 for `encoder` 'atoms'"):
        SAN(9, 8, 1, 2, num_heads=2, encoder="atoms", edge_channels=4)
