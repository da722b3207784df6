"""DRew against shortest paths and sums written out; delays; what is too large."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import ODD_GRAPHS, bidirected, path, randn
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import GCNConv

from coopsheaf import Graph
from coopsheaf.zoo.drew import DRew, distances, pairs_by_distance

EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)
N, EDGES = ODD_GRAPHS["random-directed"]


def build(num_layers: int = 3, **options: Any) -> DRew:
    torch.manual_seed(0)
    model = DRew(5, 6, num_layers, 3, **options).double().eval()
    for conv in model.convs:
        for hop in conv.hops:
            torch.nn.init.normal_(hop.bias)
    return model


def shortest(n: int, edges: Tensor) -> list[list[float]]:
    """The length of the shortest path from j to i, by Floyd and Warshall."""
    far = [[0.0 if i == j else float("inf") for j in range(n)] for i in range(n)]
    for j, i in edges.T.tolist():
        if i != j:
            far[i][j] = 1.0
    for k in range(n):
        for i in range(n):
            for j in range(n):
                far[i][j] = min(far[i][j], far[i][k] + far[k][j])
    return far


def slow(model: DRew, x: Tensor, edges: Tensor) -> Tensor:
    """Node by node and pair by pair."""
    n, far = x.shape[0], shortest(x.shape[0], edges)
    states = [x @ model.encoder.features.weight.T + model.encoder.features.bias]
    for t, conv in enumerate(model.convs):
        heard = torch.zeros_like(states[0])
        for k in range(1, t + 2):
            late = 0 if model.nu is None else max(k - model.nu, 0)
            degree = [1 + sum(far[i][j] == k for j in range(n)) for i in range(n)]
            sent = states[t - late] @ conv.hops[k - 1].lin.weight.T
            for i in range(n):
                total = sent[i] / degree[i]
                for j in range(n):
                    if far[i][j] == k:
                        total = total + sent[j] / (degree[i] * degree[j]) ** 0.5
                row = torch.zeros(n, 1).double()
                row[i] = 1
                heard = heard + row * (total + conv.hops[k - 1].bias)
        new = states[-1] + heard.relu()
        states.append(new / new.norm(dim=1, keepdim=True).clamp(min=1e-12))
    return states[-1] @ model.readout.weight.T + model.readout.bias


@EACH_GRAPH
@pytest.mark.parametrize("steps", [1, 1 << 22])
def test_pairs_are_those_of_shortest_paths(
    name: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distances, "STEPS", steps)  # 1: a row at a time
    n, edges = ODD_GRAPHS[name]
    far = shortest(n, edges)
    for k, pattern in enumerate(pairs_by_distance(Graph(edges, n), 4), start=1):
        want = {(i, j) for i in range(n) for j in range(n) if far[i][j] == k}
        for csr, turned in zip(pattern, (False, True), strict=True):
            row = torch.repeat_interleave(torch.arange(n), csr.ptr.diff()).tolist()
            found = list(zip(row, csr.other.tolist(), strict=True))
            assert len(found) == len(set(found))
            assert {pair[::-1] if turned else pair for pair in found} == want


@EACH_GRAPH
@pytest.mark.parametrize("nu", [None, 1, 2])
def test_values_and_gradients_are_those_of_the_equation(name: str, nu: int | None) -> None:
    n, edges = ODD_GRAPHS[name]
    model, x = build(nu=nu), randn(n, 5).requires_grad_()
    got, want = model(x, edges), slow(model, x, edges)
    assert_close(got, want, rtol=0, atol=1e-12)
    leaves, probe = [x, *model.parameters()], randn(n, 3, seed=1)
    grads = [torch.autograd.grad((y * probe).sum(), leaves) for y in (got, want)]
    for a, b in zip(*grads, strict=True):
        assert_close(a, b, rtol=0, atol=1e-10)


def test_one_layer_is_a_convolution_of_pyg() -> None:
    n, edges = 6, path(6)
    model, x = build(1), randn(n, 5)
    theirs = GCNConv(6, 6).double()
    theirs.load_state_dict({"lin.weight": model.convs[0].hops[0].lin.weight, "bias": model.convs[0].hops[0].bias})  # fmt: skip
    first = model.encoder(x)
    want = torch.nn.functional.normalize(first + theirs(first, edges).relu(), dim=1)
    assert_close(model.embed(x, Graph(edges, n)), want, rtol=0, atol=1e-12)


def test_a_delay_of_all_layers_is_none_and_a_shorter_one_is_not() -> None:
    x = randn(N, 5)
    free = build(3)(x, EDGES)
    assert torch.equal(build(3, nu=3)(x, EDGES), free)
    assert not torch.allclose(build(3, nu=1)(x, EDGES), free)
    assert not torch.allclose(build(3, nu=2)(x, EDGES), free)
    assert torch.equal(build(1, nu=1)(x, EDGES), build(1)(x, EDGES))


def test_with_the_full_delay_nothing_is_faster_than_an_edge_a_layer() -> None:
    """On a path, layer t is the first to hear of a node t hops away, and only as it was at the
    start: with ν = 1 the node's own neighbours cannot have told it more."""
    n, x = 7, randn(7, 5)
    for nu, reach in ((1, 3), (None, 6)):
        model = build(3, nu=nu)
        jacobian = torch.autograd.functional.jacobian(lambda x: model(x, path(n)), x)  # noqa: B023
        heard = jacobian[0].abs().sum((0, 2)) > 1e-12  # what node 0 knows of each node
        assert heard.tolist() == [True] * (reach + 1) + [False] * (6 - reach)


def test_a_small_graph_in_a_batch_is_what_it_is_alone() -> None:
    """Also where the others have distances that it has not."""
    model, small, large = build(4, pool="mean"), path(2), path(9)
    x = randn(11, 5)
    together = model(
        x,
        torch.cat([small, large + 2], 1),
        batch=torch.tensor([0] * 2 + [1] * 9),
        batch_size=2,
    )
    assert_close(together[:1], model(x[:2], small), rtol=0, atol=1e-12)
    assert_close(together[1:], model(x[2:], large), rtol=0, atol=1e-12)


def test_pairs_are_found_once_and_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x = Graph(EDGES, N), randn(N, 5)
    want = build()(x, graph)
    calls: list[int] = []
    real = distances._search
    monkeypatch.setattr(distances, "_search", lambda *a: calls.append(0) or real(*a))
    assert torch.equal(build()(x, graph), want)
    assert calls == []
    rule = r"`graph` must have at most 10 pairs of nodes within `num_layers` hops .*`most_pairs`"
    with pytest.raises(ValueError, match=rule) as caught:
        build(most_pairs=10)(x, Graph(EDGES, N))
    assert "\n" not in str(caught.value)


def test_too_many_pairs_are_noticed_early() -> None:
    """A star of 3,000 rays has 9 million pairs two hops apart; none of them is listed twice."""
    rays = torch.stack([torch.zeros(3000, dtype=torch.int64), torch.arange(1, 3001)])
    with pytest.raises(ValueError, match="at most 1e"):
        pairs_by_distance(Graph(bidirected(rays)), 2, most=1e5)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"nu": 0}, "`nu` must be an integer of at least 1"),
        ({"most_pairs": float("nan")}, "`most_pairs` must be finite"),
        ({"pe_kind": "lappe"}, "`pe_channels` must be the number of columns"),
        ({"pe_kind": "lappe", "pe_channels": 3, "pe_width": 2}, "`pe_channels` must be even"),
        ({"pe_channels": 4}, "`pe_channels` must be 0"),
        ({"pe_kind": "rwse", "pe_channels": 4, "pe_width": 6}, "`pe_width` must be less than"),
        ({"encoder": "atoms"}, "`in_channels` must be 9"),
        ({"encoder": "bonds"}, "`encoder` must be one of"),
    ],
)
def test_what_it_cannot_do_is_said(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        build(**options)


def test_places_stand_beside_the_features() -> None:
    n, x, pe = 5, randn(5, 5), randn(5, 4, seed=3)
    model = build(pe_kind="rwse", pe_channels=4, pe_width=2)
    first = model.encoder(x, pe)
    assert_close(first[:, :4], model.encoder.features(x))
    assert_close(first[:, 4:], model.encoder.places(pe))
    assert not torch.allclose(model(x, path(n), pe=pe), model(x, path(n), pe=2 * pe))
    with pytest.raises(ValueError, match=r"`pe` must have shape \(n, 4\)"):
        model(x, path(n))
    with pytest.raises(ValueError, match=r"`pe` must have shape \(n, 4\)"):
        model(x, path(n), pe=pe[:, :3])
