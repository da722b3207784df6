"""The plain networks against PyG's and against their equations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn
from graphs import ODD_GRAPHS, randn, random_weight
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.models.registry import make_settings
from coopsheaf.zoo.plain.network import PlainGAT, PlainGCN, PlainMLP, PlainSAGE, graph_convolution

N, EDGES = ODD_GRAPHS["random-directed"]
LOOPLESS = EDGES[:, EDGES[0] != EDGES[1]].unique(dim=1)
NETWORKS = (PlainMLP, PlainGCN, PlainGAT, PlainSAGE)


def build(kind: Any, num_layers: int = 2, **options: Any) -> Any:
    torch.manual_seed(0)
    return kind(5, 8, num_layers, 3, **options).double().eval()


# --- against PyG ----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "theirs", "options", "their_options"),
    [
        (PlainMLP, "MLP", {}, {"norm": None}),
        (PlainMLP, "MLP", {"norm": "batch"}, {"norm": "batch"}),
        (
            PlainMLP,
            "MLP",
            {"norm": "batch", "act_first": True},
            {"norm": "batch", "act_first": True},
        ),
        (PlainGCN, "GCN", {}, {}),
        (PlainGCN, "GCN", {"norm": "batch", "act": "elu"}, {"norm": "batch", "act": "elu"}),
        (
            PlainGAT,
            "GAT",
            {"num_heads": 2, "output_heads": 2, "input_dropout": 0.0, "attention_dropout": 0.2},
            {"heads": 2, "act": "elu"},
        ),
    ],
)
def test_it_is_pygs_network_seed_for_seed(
    kind: Any, theirs: str, options: Any, their_options: Any, num_layers: int
) -> None:
    """The same parameters from the same seed, the same outputs with the same dropout."""
    torch.manual_seed(4)
    ours = kind(5, 8, num_layers, 3, dropout=0.2, **options)
    torch.manual_seed(4)
    network = getattr(torch_geometric.nn, theirs)(
        in_channels=5,
        hidden_channels=8,
        num_layers=num_layers,
        out_channels=3,
        dropout=0.2,
        **their_options,
    )
    for a, b in zip(ours.parameters(), network.parameters(), strict=True):
        assert torch.equal(a, b)
    x = torch.randn(N, 5)
    for training in (True, False):
        ours.train(training)
        network.train(training)
        torch.manual_seed(5)
        got = ours(x, EDGES)
        torch.manual_seed(5)
        want = network(x) if theirs == "MLP" else network(x, EDGES)
        assert_close(got, want, rtol=0, atol=1e-6)


def test_sage_is_pygs_network() -> None:
    ours = build(PlainSAGE, 3)
    theirs = torch_geometric.nn.GraphSAGE(5, 8, 3, 3).double()
    theirs.load_state_dict(
        {key.replace("layers", "convs"): value for key, value in ours.state_dict().items()}
    )
    x = randn(N, 5)
    assert_close(ours(x, EDGES), theirs(x, EDGES), rtol=0, atol=1e-12)


def test_the_settings_of_the_example_are_pygs_networks() -> None:
    for name, layer in (("mlp", "Linear"), ("gcn-plain", "GCNConv")):
        model = make_settings(name, num_layers=3, dropout=0.2).build(7, 1, graph_level=False)
        assert [type(part).__name__ for part in model.layers] == [layer] * 3
        assert (model.hidden_channels, model.dropout, model.input_dropout) == (64, 0.2, 0.0)
        assert isinstance(model.act, torch.nn.ReLU)


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_convolution_is_pygs(name: str, weighted: bool) -> None:
    """Loops, parallel edges, isolated nodes; values and gradients."""
    n, edges = ODD_GRAPHS[name]
    if weighted:  # PyG keeps any one of several weighted loops
        loop = edges[0] == edges[1]
        edges = torch.cat([edges[:, ~loop], edges[:, loop].unique(dim=1)], dim=1)
    conv, x = torch_geometric.nn.GCNConv(5, 4).double(), randn(n, 5).requires_grad_()
    leaves = [x, *conv.parameters()]
    weight = None
    if weighted:
        weight = random_weight(edges.shape[1]).requires_grad_()
        leaves.append(weight)
    got = graph_convolution(conv, x, Graph(edges, n), weight)
    want = conv(x, edges, weight)
    assert_close(got, want, rtol=0, atol=1e-12)
    probe = randn(n, 4, seed=1)
    for a, b in zip(
        torch.autograd.grad((got * probe).sum(), leaves),
        torch.autograd.grad((want * probe).sum(), leaves),
        strict=True,
    ):
        assert_close(a, b, rtol=0, atol=1e-11)


def test_a_node_whose_edges_weigh_nothing_hears_nothing() -> None:
    conv, x = torch_geometric.nn.GCNConv(5, 4), torch.randn(2, 5)
    edges, weight = torch.tensor([[0, 0], [0, 1]]), torch.zeros(2)
    got = graph_convolution(conv, x, Graph(edges, 2), weight)
    assert_close(got, conv(x, edges, weight))
    assert_close(got[0], conv.bias)


# --- against their equations ----------------------------------------------------------------------


def row_sum_matrix(lines: Tensor, n: int) -> Tensor:
    """S of the tables on small graphs: an entry (i, j) for each line "i j", A + I, and row sums on
    both sides."""
    a = torch.zeros(n, n, dtype=torch.float64)
    a[lines[0], lines[1]] = 1
    a = a + torch.eye(n)
    root = a.sum(1) ** -0.5
    return root[:, None] * a * root[None, :]


def test_gcn_on_turned_edges_is_the_row_sum_network() -> None:
    model, x = build(PlainGCN), randn(N, 5)
    s = row_sum_matrix(LOOPLESS, N)
    first, second = model.layers
    h = (s @ x @ first.lin.weight.T + first.bias).relu()
    want = s @ h @ second.lin.weight.T + second.bias
    assert_close(model(x, LOOPLESS.flip(0)), want, rtol=0, atol=1e-12)
    assert not torch.allclose(model(x, LOOPLESS), want)


@pytest.mark.parametrize("kind", [PlainGCN, PlainGAT])
def test_a_loop_in_the_list_is_the_loop_that_is_added(kind: Any) -> None:
    """Stored loops may be kept or removed: the outputs are the same."""
    model, x = build(kind), randn(N, 5)
    loops = torch.tensor([[1, 4], [1, 4]])
    with_loops = torch.cat([LOOPLESS, loops], dim=1)
    assert_close(model(x, with_loops), model(x, LOOPLESS), rtol=0, atol=1e-12)


def slow_attention(layer: Any, x: Tensor, heads: int) -> Tensor:
    """One head after the other; the receivers are rows."""
    y = layer.lin(x).view(N, heads, -1)
    mask = torch.eye(N, dtype=torch.bool)
    mask[LOOPLESS[1], LOOPLESS[0]] = True
    out = []
    for k in range(heads):
        sent = y[:, k] @ layer.att_src[0, k]
        heard = y[:, k] @ layer.att_dst[0, k]
        score = F.leaky_relu(heard[:, None] + sent[None, :], 0.2)
        out.append(score.masked_fill(~mask, -torch.inf).softmax(1) @ y[:, k])
    return torch.stack(out, dim=1)


@pytest.mark.parametrize("output_act", [False, True])
def test_gat_is_its_equation(output_act: bool) -> None:
    model = build(PlainGAT, num_heads=4, output_heads=2, output_act=output_act)
    x = randn(N, 5).requires_grad_()
    first, second = model.layers
    h = F.elu(slow_attention(first, x, 4).flatten(1) + first.bias)
    want = slow_attention(second, h, 2).mean(1) + second.bias
    want = F.elu(want) if output_act else want
    got = model(x, LOOPLESS)
    assert_close(got, want, rtol=0, atol=1e-12)
    (a,) = torch.autograd.grad(got.square().sum(), x)
    (b,) = torch.autograd.grad(want.square().sum(), x)
    assert_close(a, b, rtol=0, atol=1e-11)


def test_the_mlp_of_the_tables() -> None:
    """Linear, ELU, linear; and no edge matters."""
    model, x = build(PlainMLP, act="elu", input_dropout=0.5), randn(N, 5)
    first, second = model.layers
    assert_close(model(x, EDGES), second(F.elu(first(x))), rtol=0, atol=1e-13)
    assert torch.equal(model(x, EDGES), model(x, EDGES[:, :0]))


@pytest.mark.parametrize("kind", NETWORKS)
def test_dropout_of_the_input_and_between(kind: Any) -> None:
    x = randn(N, 5)
    quiet = {"input_dropout": 0.0, "dropout": 0.0}
    if kind is PlainGAT:
        quiet["attention_dropout"] = 0.0
    model = build(kind, **quiet).train()
    assert torch.equal(model(x, EDGES), model(x, EDGES))
    for name in quiet:
        model = build(kind, **(quiet | {name: 0.5})).train()
        assert not torch.equal(model(x, EDGES), model(x, EDGES)), name
    # Input dropout is seen by a network of one layer, dropout between layers is not.
    model = build(kind, 1, **(quiet | {"dropout": 0.5})).train()
    assert torch.equal(model(x, EDGES), model(x, EDGES))


# --- the rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NETWORKS)
def test_repr_states_the_transformation(kind: Any) -> None:
    heads = ", num_heads=8" if kind is PlainGAT else ""
    name = kind.__name__
    assert repr(build(kind, 3)) == f"{name}(5, 8, num_layers=3, out_channels=3{heads})"
    assert repr(build(kind, 1)) == f"{name}(5, 8, num_layers=1, out_channels=3{heads})"


@pytest.mark.parametrize("kind", NETWORKS)
def test_reset_draws_anew(kind: Any) -> None:
    model = build(kind, norm="layer")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.reset_parameters()
    assert not any((parameter == 7.0).any() for parameter in model.parameters())


@pytest.mark.parametrize("kind", NETWORKS)
def test_bad_arguments_are_named(kind: Any) -> None:
    for sizes, name in (
        ((0, 8, 2, 3), "in_channels"),
        ((5, 0, 2, 3), "hidden_channels"),
        ((5, 8, 0, 3), "num_layers"),
        ((5, 8, 2, 0), "out_channels"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be an integer of at least 1; got 0"):
            kind(*sizes)
    for option, value in (("dropout", 1.0), ("input_dropout", -1), ("norm", "?"), ("act", "?")):
        with pytest.raises(ValueError, match=f"`{option}`"):
            build(kind, **{option: value})


def test_bad_heads_are_named() -> None:
    with pytest.raises(
        ValueError, match="`num_heads` must divide the number of channels, 8; got 3"
    ):
        build(PlainGAT, num_heads=3)
    for option, value in (("num_heads", 0), ("output_heads", 0), ("attention_dropout", 1.0)):
        with pytest.raises(ValueError, match=f"`{option}`"):
            build(PlainGAT, **{option: value})
