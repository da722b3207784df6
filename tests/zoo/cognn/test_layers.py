"""The layers of CO-GNN against matrices that read like their equations, and against PyG."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from allocations import LargestTensor
from graphs import ODD_GRAPHS, generator, randn, random_weight
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import GCNConv as PyGGCNConv
from torch_geometric.nn import SAGEConv as PyGSAGEConv

from coopsheaf import Graph
from coopsheaf.zoo.cognn.layers import (
    ACTION_LAYERS,
    ACTION_NAMES,
    ENVIRONMENTS,
    Actions,
    GCNConv,
    LinearConv,
    MeanConv,
    SumConv,
    gated_sum,
)

IN = 5


def random_actions(n: int, *, hard: bool = True, seed: int = 0) -> Actions:
    drawn = torch.rand(2, n, generator=generator(seed), dtype=torch.float64)
    return Actions(*((drawn > 0.4).double() if hard else drawn))


def dense(graph: Graph, actions: Actions | None, weight: Tensor | None) -> Tensor:
    """The matrix of the weights, entry by entry: row v, column u holds Σ e_uv b_u a_v."""
    n = graph.num_nodes
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for k, (u, v) in enumerate(graph.edge_index.T.tolist()):
        w = torch.ones((), dtype=torch.float64) if weight is None else weight[k]
        if actions is not None:
            w = w * actions.broadcasts[u] * actions.listens[v]
        one = torch.zeros(n, n, dtype=torch.float64)
        one[v, u] = 1
        matrix = matrix + w * one
    return matrix


def slow_sum(conv: Any, x: Tensor, a: Tensor, graph: Graph) -> Tensor:
    return conv.lin(torch.cat([x, a @ x], dim=1))


def slow_mean(conv: Any, x: Tensor, a: Tensor, graph: Graph) -> Tensor:
    count = torch.tensor(
        [max(1, int((graph.target == v).sum())) for v in range(graph.num_nodes)]
    ).double()
    return conv.lin(torch.cat([x, (a @ x) / count[:, None]], dim=1))


def slow_gcn(conv: Any, x: Tensor, a: Tensor, graph: Graph) -> Tensor:
    a = a + torch.eye(len(x), dtype=torch.float64)
    root = a.sum(1) ** -0.5
    return conv.lin(root[:, None] * a * root[None, :] @ x)


def slow_gin(conv: Any, x: Tensor, a: Tensor, graph: Graph) -> Tensor:
    y = (1 + conv.epsilon) * x + a @ x
    return conv.lin_out(conv.lin_in(y).relu())


def slow_linear(conv: Any, x: Tensor, a: Tensor, graph: Graph) -> Tensor:
    return x @ conv.lin.weight.T + conv.lin.bias


SLOW = {
    "mean": slow_mean,
    "sum": slow_sum,
    "gcn": slow_gcn,
    "gin": slow_gin,
    "linear": slow_linear,
}


def make(kind: str, out_channels: int = 6, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    conv = ACTION_LAYERS[kind](IN, out_channels).double()
    if kind == "gin":
        torch.nn.init.constant_(conv.epsilon, 0.3)
    return conv


def gradients(out: Tensor, probe: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(
        (out * probe).sum(), leaves, allow_unused=True, materialize_grads=True
    )


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("kind", ACTION_LAYERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("acting", ["none", "hard", "soft"])
def test_layers_are_their_equations(name: str, kind: str, weighted: bool, acting: str) -> None:
    """Values and all gradients; outputs narrower and wider than inputs take different ways."""
    n, edge_index = ODD_GRAPHS[name]
    graph = Graph(edge_index, n)
    for out_channels in (3, 6):
        conv = make(kind, out_channels)
        x = randn(n, IN).requires_grad_()
        leaves = [x, *conv.parameters()]
        weight = actions = None
        if weighted:
            weight = random_weight(graph.num_edges).requires_grad_()
            leaves.append(weight)
        if acting != "none":
            actions = Actions(
                *(part.requires_grad_() for part in random_actions(n, hard=acting == "hard"))
            )
            leaves += actions
        got = conv(x, graph, actions, weight)
        want = SLOW[kind](conv, x, dense(graph, actions, weight), graph)
        assert_close(got, want, rtol=0, atol=1e-12)
        probe = randn(*got.shape, seed=9)
        for a, b in zip(gradients(got, probe, leaves), gradients(want, probe, leaves), strict=True):
            assert_close(a, b, rtol=0, atol=1e-11)


def test_the_mean_is_a_mean_over_all_neighbours() -> None:
    """A star: the centre hears 1, 2, 3 and 4, whose mean is 2.5; then only 1 and 3 speak."""
    edges = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    graph, x = Graph(edges, 5), torch.arange(5.0).view(5, 1)
    heard = {}
    for kind in ("mean", "sum"):
        conv = ENVIRONMENTS[kind](1, 1)
        with torch.no_grad():
            conv.lin.weight.copy_(torch.tensor([[0.0, 1.0]]))
            conv.lin.bias.zero_()
        heard[kind] = [conv(x, graph)[0].item()]
        some = Actions(torch.ones(5), torch.tensor([1.0, 1, 0, 1, 0]))
        heard[kind].append(conv(x, graph, some)[0].item())
    assert heard == {"mean": [2.5, 1.0], "sum": [10.0, 4.0]}


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_with_all_edges_open_it_is_pygs_layer(name: str, kind: str) -> None:
    """W [x ‖ h] is W_r x + W_l h: SAGEConv with its two matrices side by side."""
    n, edge_index = ODD_GRAPHS[name]
    conv, x = make(kind), randn(n, IN)
    theirs = PyGSAGEConv(IN, 6, aggr=kind).double()
    with torch.no_grad():
        theirs.lin_r.weight.copy_(conv.lin.weight[:, :IN])
        theirs.lin_l.weight.copy_(conv.lin.weight[:, IN:])
        theirs.lin_l.bias.copy_(conv.lin.bias)
    open_ = Actions(torch.ones(n).double(), torch.ones(n).double())
    for actions in (None, open_):
        got = conv(x, Graph(edge_index, n), actions)
        assert_close(got, theirs(x, edge_index), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["random-directed", "bidirected", "isolated", "parallel"])
def test_the_convolution_is_pygs_with_weights(name: str) -> None:
    n, edge_index = ODD_GRAPHS[name]
    edge_index = edge_index[:, edge_index[0] != edge_index[1]]  # loops count differently
    conv, x, actions = make("gcn"), randn(n, IN), random_actions(n)
    theirs = PyGGCNConv(IN, 6).double()
    with torch.no_grad():
        theirs.lin.weight.copy_(conv.lin.weight)
        theirs.bias.copy_(conv.lin.bias)
    weight = actions.broadcasts[edge_index[0]] * actions.listens[edge_index[1]]
    got = conv(x, Graph(edge_index, n), actions)
    assert_close(got, theirs(x, edge_index, weight), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["mean", "sum"])
@pytest.mark.parametrize("closed", ["listens", "broadcasts"])
def test_behind_closed_ends_nothing_is_heard(kind: str, closed: str) -> None:
    """W [x ‖ 0] + b."""
    n, edge_index = ODD_GRAPHS["random-directed"]
    conv, x, ones = make(kind), randn(n, IN), torch.ones(n).double()
    actions = Actions(ones, ones)._replace(**{closed: 0 * ones})
    want = conv.lin(torch.cat([x, torch.zeros_like(x)], dim=1))
    assert_close(conv(x, Graph(edge_index, n), actions), want, rtol=0, atol=1e-13)


def test_no_allocation_has_the_size_of_edges_times_channels() -> None:
    n, m, c = 50, 4000, 64
    edges = torch.randint(0, n, (2, m), generator=generator(0))
    graph, x = Graph(edges, n), randn(n, c).requires_grad_()
    actions = Actions(*(part.requires_grad_() for part in random_actions(n)))
    for kind in ENVIRONMENTS:
        conv = ENVIRONMENTS[kind](c, c).double()
        with LargestTensor() as seen:
            conv(x, graph, actions).square().sum().backward()
        assert c * c <= seen.numel < m * c // 4, (kind, seen.where)


def test_gated_sum_with_and_without_actions() -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph, x = Graph(edge_index, n), randn(n, 2)
    ones = torch.ones(n).double()
    assert_close(gated_sum(x, graph, Actions(ones, ones)), gated_sum(x, graph), rtol=0, atol=0)


def test_actions_have_names() -> None:
    actions = Actions(torch.tensor([1.0, 1, 0, 0]), torch.tensor([1.0, 0, 1, 0]))
    assert [ACTION_NAMES[code] for code in actions.codes()] == [
        "STANDARD",
        "LISTEN",
        "BROADCAST",
        "ISOLATE",
    ]


@pytest.mark.parametrize("kind", ACTION_LAYERS)
def test_reset_draws_anew_and_repr_states_the_transformation(kind: str) -> None:
    conv = ACTION_LAYERS[kind](3, 4)
    assert repr(conv) == f"{type(conv).__name__}(3, 4)"
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.fill_(7.0)
    conv.reset_parameters()
    assert not any((parameter == 7.0).any() for parameter in conv.parameters())
    if kind == "gin":
        assert conv.epsilon.item() == 0
    for arguments, name in (((0, 1), "in_channels"), ((1, 0), "out_channels")):
        with pytest.raises(ValueError, match=f"`{name}`"):
            ACTION_LAYERS[kind](*arguments)


def test_kinds_are_what_they_are_called() -> None:
    assert (type(make("mean")), type(make("sum"))) == (MeanConv, SumConv)
    assert (type(make("gcn")), type(make("linear"))) == (GCNConv, LinearConv)
    assert "linear" not in ENVIRONMENTS
