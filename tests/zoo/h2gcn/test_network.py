"""H2GCN in both forms against dense matrices; hops, and what is too large."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from graphs import ODD_GRAPHS, generator, randn
from torch import Tensor
from torch.testing import assert_close
from zoo.dense import adjacency, symmetric

from coopsheaf import Graph
from coopsheaf.zoo.h2gcn import H2GCN, H2GCNLINKX, HopPattern, hops, two_hops

N, EDGES = ODD_GRAPHS["random-directed"]
BOTH = pytest.mark.parametrize("kind", [H2GCN, H2GCNLINKX])
EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)


def build(kind: Any, num_layers: int = 2, **options: Any) -> Any:
    torch.manual_seed(0)
    model = kind(5, 4, num_layers, 3, **options).double().eval()
    for norm in model.norms:
        torch.nn.init.normal_(norm.bias)
        torch.nn.init.normal_(norm.running_mean)
    return model


def dense(pattern: HopPattern, n: int) -> Tensor:
    """Read by rows and, as a check, by columns."""
    matrices = []
    for ptr, other, _ in pattern:
        row = torch.repeat_interleave(torch.arange(n), ptr.diff())
        matrices.append(adjacency(n, torch.stack([other.long(), row])))
    assert torch.equal(matrices[0], matrices[1].T)
    return matrices[0]


def slow_hops(n: int, edges: Tensor, strict: bool) -> tuple[Tensor, Tensor]:
    a, eye = (adjacency(n, edges) > 0).double(), torch.eye(n).double()
    if not strict:
        return a, (a @ a - a > 0).double()
    a = a * (1 - eye)
    return a, ((a @ a > 0) & (a == 0) & (eye == 0)).double()


@EACH_GRAPH
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("few", [True, False])
def test_hops_are_those_of_dense_matrices(
    name: str, strict: bool, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if few:  # a row at a time
        monkeypatch.setattr(hops, "COUNTS", 1)
    n, edges = ODD_GRAPHS[name]
    found = two_hops(Graph(edges, n), strict=strict)
    want = slow_hops(n, edges, strict)
    assert torch.equal(dense(found.one, n), want[0])
    assert torch.equal(dense(found.two, n), want[1])


def test_strict_hops_are_apart_and_those_of_the_benchmark_are_not() -> None:
    """A square with one diagonal: the ends of the diagonal share two neighbours."""
    once = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    graph = Graph(torch.cat([once, once.flip(0)], 1), 5)  # and a node by itself
    one, two = (dense(pattern, 5) for pattern in two_hops(graph))
    assert (one * two).sum() == 0
    assert one.trace() == two.trace() == 0
    one, two = (dense(pattern, 5) for pattern in two_hops(graph, strict=False))
    assert two.diag().tolist() == [1, 1, 1, 1, 0]
    assert ((one * two) > 0).nonzero().tolist() == [[0, 2], [2, 0]]


@BOTH
@EACH_GRAPH
def test_values_and_gradients_are_those_of_the_equations(kind: Any, name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(kind), randn(n, 5).requires_grad_()
    near, far = (symmetric(a, loops=False) for a in slow_hops(n, edges, kind is H2GCN))
    h = x @ model.encoder.weight.T
    h = (h if model.encoder.bias is None else h + model.encoder.bias).relu()
    rounds = [h]
    for k in range(2):
        h = torch.cat([near @ h, far @ h], 1)
        if kind is H2GCNLINKX and k == 0:
            (norm,) = model.norms
            scale = norm.weight / (norm.running_var + norm.eps).sqrt()
            h = (h - norm.running_mean) * scale + norm.bias
        rounds.append(h)
    want = torch.cat(rounds, 1) @ model.readout.weight.T
    want = want if model.readout.bias is None else want + model.readout.bias
    got = model(x, edges)
    assert got.shape == (n, 3)
    assert model.embedding_channels == 4 * 7
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=0, atol=1e-11)


@BOTH
def test_without_the_rounds_it_is_a_perceptron(kind: Any) -> None:
    """Where the readout sees the first features alone, no edge matters."""
    model, x = build(kind), randn(N, 5)
    assert not torch.allclose(model(x, EDGES), model(x, EDGES[:, :0]))
    with torch.no_grad():
        model.readout.weight[:, 4:] = 0
    assert_close(model(x, EDGES), model(x, EDGES[:, :0]), rtol=0, atol=1e-13)


@BOTH
def test_too_many_pairs_are_refused_in_one_line(kind: Any) -> None:
    model, x = build(kind, most_pairs=3), randn(N, 5)
    rule = r"`graph` must have at most 3 pairs of nodes two hops apart .*raise it"
    with pytest.raises(ValueError, match=rule) as caught:
        model(x, EDGES)
    assert "\n" not in str(caught.value)


@BOTH
def test_hops_are_found_once_and_nothing_has_the_size_of_all_pairs(kind: Any) -> None:
    n = 3000
    nodes = torch.arange(n)
    once = torch.stack([nodes, (nodes + 1) % n])
    graph = Graph(torch.cat([once, once.flip(0)], 1), n)
    model, x = kind(5, 8, 2, 3), torch.randn(n, 5)
    model(x, graph)
    (name,) = (key for key in graph._memo if key.startswith("two hops"))
    kept = graph._memo[name]
    with LargestTensor() as seen:
        model(x, graph).sum().backward()
    assert graph._memo[name] is kept
    assert seen.numel <= n * 8 * 7, seen.where
    assert n * n > hops.COUNTS  # so the walks were counted in parts


def test_dropout_and_kinds_of_activation() -> None:
    x = randn(N, 5)
    for kind in (H2GCN, H2GCNLINKX):
        model = build(kind, dropout=0.5).train()
        assert not torch.equal(model(x, EDGES), model(x, EDGES))
        model = build(kind, 1, dropout=0.0).train()
        assert torch.equal(model(x, EDGES), model(x, EDGES))
    model = build(H2GCN, act="identity")
    assert_close(model(-x, EDGES), -model(x, EDGES))


@BOTH
def test_bad_arguments_are_named_and_repr_states_the_transformation(kind: Any) -> None:
    with pytest.raises(ValueError, match="`num_layers` must be at most 8: every round doubles"):
        build(kind, 9)
    with pytest.raises(ValueError, match="`most_pairs`"):
        build(kind, most_pairs=-1.0)
    assert repr(build(kind)) == f"{kind.__name__}(5, 4, num_layers=2, out_channels=3)"
    assert (build(kind).encoder.bias is None) == (kind is H2GCN)


def test_walks_of_hubs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A star: everybody is two hops from everybody, through one node; rows by walks, not by nodes."""
    monkeypatch.setattr(hops, "WALKS", 50)
    n = 40
    spokes = torch.stack([torch.zeros(n - 1, dtype=torch.int64), torch.arange(1, n)])
    edges = torch.cat([spokes, spokes.flip(0)], 1)[:, torch.randperm(2 * n - 2, generator=generator(0))]  # fmt: skip
    found = dense(two_hops(Graph(edges, n)).two, n)
    assert torch.equal(found, slow_hops(n, edges, True)[1])
