"""Our GraphSAGE against PyG's, parameter by parameter."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import ODD_GRAPHS, randn
from torch.testing import assert_close
from torch_geometric.nn import GraphSAGE, LayerNorm
from torch_geometric.nn import SAGEConv as PyGSAGEConv

from coopsheaf import Graph
from coopsheaf.nn import SAGE, SAGEConv, sage, sage_steps
from coopsheaf.nn.sage import go_together


@pytest.mark.parametrize("name", ODD_GRAPHS)
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("out_channels", [3, 6])
def test_conv_is_pygs(name: str, project: bool, out_channels: int) -> None:
    """Narrower and wider outputs: the mean is taken on either side of the product."""
    n, edge_index = ODD_GRAPHS[name]
    ours = SAGEConv(5, out_channels, project=project).double()
    theirs = PyGSAGEConv(5, out_channels, project=project).double()
    theirs.load_state_dict(ours.state_dict())
    x = randn(n, 5).requires_grad_()
    for edges in (edge_index, Graph(edge_index, n)):
        got, expected = ours(x, edges), theirs(x, edge_index)
        assert_close(got, expected, rtol=0, atol=1e-12)
        (a,) = torch.autograd.grad(got.square().sum(), x)
        (b,) = torch.autograd.grad(expected.square().sum(), x)
        assert_close(a, b, rtol=0, atol=1e-12)


def make_convs(out_channels: int, project: bool) -> tuple[list[SAGEConv], list[torch.Tensor]]:
    convs = [SAGEConv(5, out_channels, project=project).double() for _ in range(2)]
    return convs, [p for conv in convs for p in conv.parameters()]


@pytest.mark.parametrize("shared", [True, False], ids=["one input", "inputs of their own"])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("out_channels", [3, 6])
def test_layers_together_are_layers_one_by_one(out_channels, project, shared) -> None:
    """By hand-written derivatives, by a compiler, and by the plain composition alike."""
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    convs, parameters = make_convs(out_channels, project)
    x = (randn(n, 5) if shared else randn(2, n, 5)).requires_grad_()
    expected = torch.stack(
        [conv(x if shared else x[k], edge_index) for k, conv in enumerate(convs)]
    )
    weight = randn(*expected.shape)

    def together(x: torch.Tensor) -> torch.Tensor:
        return sage.apply_convs(convs, x, graph)

    def composed(x: torch.Tensor) -> torch.Tensor:
        listed = [p for conv in convs for p in sage._parameters(conv)]
        return sage.compose_convs(x, graph, 2, *listed)

    torch.compiler.reset()
    compiled = torch.compile(together, backend="aot_eager", fullgraph=True)
    wanted = torch.autograd.grad(expected, [x, *parameters], weight)
    for apply in (together, compiled, composed):
        got = apply(x)
        assert_close(got, expected, rtol=0, atol=1e-12)
        assert_close(torch.autograd.grad(got, [x, *parameters], weight), wanted, rtol=0, atol=1e-12)
        without = torch.autograd.grad(apply(x.detach()), parameters, weight)  # as of input features
        assert_close(without, wanted[1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False], ids=["one input", "inputs of their own"])
@pytest.mark.parametrize("project", [False, True])
def test_operators_pass_the_checks_of_torch(project: bool, shared: bool) -> None:
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph = Graph(edge_index, n)
    convs, _ = make_convs(3, project)
    x = (randn(n, 5) if shared else randn(2, n, 5)).requires_grad_()
    arrays = [*graph.by_target, *graph.by_source, sage._inverse_degree(graph, x)]
    parameters = [p for conv in convs for p in sage._parameters(conv)]
    torch.library.opcheck(sage_steps.convs_operator, (x, arrays, parameters, 2))
    y, sent = (part.detach() for part in sage_steps.convs_operator(x, arrays, parameters, 2))
    fixed = x.detach(), sent, arrays, [p.detach() for p in parameters], 2
    for for_x in (True, False):
        torch.library.opcheck(sage_steps.convs_backward_operator, (y, *fixed, for_x))


def test_compiled_code_can_be_differentiated_forward() -> None:
    """An opaque operator would drop tangents without a word."""
    n, edge_index = ODD_GRAPHS["random-directed"]
    graph, stack = Graph(edge_index, n), SAGE(5, 4, 2, 3, project=True).double()

    def tangent(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.func.jvp(lambda x: stack(x, graph), (x,), (v,))[1]

    torch.compiler.reset()
    inputs = randn(n, 5), randn(n, 5)
    got = torch.compile(tangent, backend="aot_eager")(*inputs)
    assert got.abs().max() > 0.1
    assert_close(got, tangent(*inputs), rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize(
    ("ours_options", "theirs_options"),
    [
        ({}, {}),
        ({"norm": partial(LayerNorm, mode="graph")}, {"norm": "layer"}),
        (
            {"norm": partial(LayerNorm, mode="node")},
            {"norm": "layer", "norm_kwargs": {"mode": "node"}},
        ),
        (
            {"act": F.gelu, "dropout": 0.2, "project": True},
            {"act": "gelu", "dropout": 0.2, "project": True},
        ),
    ],
    ids=["plain", "graph-norm", "node-norm", "projected"],
)
def test_stack_is_pygs(num_layers: int, ours_options, theirs_options, monkeypatch) -> None:
    monkeypatch.setattr(sage, "dropout", F.dropout)  # ours draws other masks
    n, edge_index = ODD_GRAPHS["random-directed"]
    ours = SAGE(5, 8, num_layers, 3, **ours_options).double()
    theirs = GraphSAGE(5, 8, num_layers, 3, **theirs_options).double()
    theirs.load_state_dict(ours.state_dict())
    x = randn(n, 5)
    for training in (False, True):
        ours.train(training)
        theirs.train(training)
        torch.manual_seed(1)
        expected = theirs(x, edge_index)
        torch.manual_seed(1)
        assert_close(ours(x, edge_index), expected, rtol=0, atol=1e-12)


def test_initial_parameters_follow_pygs_law() -> None:
    """Both draw uniformly from ±1/√in."""
    for conv in (SAGEConv(100, 400), PyGSAGEConv(100, 400)):
        for linear in (conv.lin_l, conv.lin_r):
            assert 0.099 < linear.weight.abs().max() <= 0.1
            assert 0.09 / 3**0.5 < linear.weight.std() < 0.11 / 3**0.5


def test_reset_draws_anew_and_repr_states_the_transformation() -> None:
    model = SAGE(3, 4, 2, 5, norm=LayerNorm, project=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    model.reset_parameters()
    after = model.state_dict()
    for name, value in after.items():
        assert not (value == 7.0).any()
        if "norms" not in name:
            assert not torch.equal(value, before[name])
    assert repr(model.convs[0]) == "SAGEConv(3, 4, project=True)"
    assert repr(SAGEConv(3, 4)) == "SAGEConv(3, 4)"


def test_stacks_that_differ_do_not_go_together() -> None:
    """One pass for all would give them the dropout, mode, activation or sizes of the first."""

    def stack(layers: int = 2, **options: Any) -> SAGE:
        return SAGE(4, 5, layers, 3, **options)

    assert go_together([stack(), stack()])
    assert go_together([stack(dropout=0.2, act=F.gelu), stack(dropout=0.2, act=F.gelu)])
    others = [
        stack(dropout=0.5),
        stack(act=F.gelu),
        stack(project=True),
        stack(3),
        SAGE(4, 6, 2, 3),
        stack().eval(),
    ]
    for other in others:
        assert not go_together([stack(), other])
    assert not go_together([stack(act=torch.cumsum), stack(act=torch.cumsum)])
