"""CO-GNN against its equations, forced open, forced closed, and in its ways to evaluate."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from graphs import ODD_GRAPHS, randn, random_weight
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric.nn import SAGEConv

from coopsheaf import Graph
from coopsheaf.train.recipes import load_grid, load_recipe, recipe_names
from coopsheaf.zoo.cognn.actions import ActionSampler, record_actions
from coopsheaf.zoo.cognn.layers import ENVIRONMENTS, Actions, gated_sum
from coopsheaf.zoo.cognn.network import CoGNN, Decoder

N, EDGES = ODD_GRAPHS["random-directed"]


def build(seed: int = 0, **options: Any) -> CoGNN:
    torch.manual_seed(seed)
    options = {"skip": True, "norm": "layer", "temperature": "learned"} | options
    model = CoGNN(5, 8, 3, 2, **options).double().eval()
    nn.init.normal_(model.encoder.weight)  # nodes that differ do not all do the same
    for key, parameter in model.sampler.named_parameters():
        if key.endswith("bias"):
            nn.init.zeros_(parameter)
    return model


def force(model: CoGNN, *, listen: bool = True, broadcast: bool = True) -> CoGNN:
    for net, opened in (
        (model.sampler.listen_net, listen),
        (model.sampler.broadcast_net, broadcast),
    ):
        bias = torch.tensor([1e9, -1e9]) if opened else torch.tensor([-1e9, 1e9])
        with torch.no_grad():
            net.convs[-1].lin.bias.copy_(bias)
    return model


def slow(model: CoGNN, x: Tensor, edges: Tensor, weight: Tensor | None = None) -> Tensor:
    """The whole network in the order of its definition, one weight per edge and argmax actions."""
    n = x.shape[0]
    graph = Graph(edges, n)
    x = F.gelu(model.encoder(x))
    for conv in model.convs:
        x = model.norm(x)
        scores_in = model.sampler.listen_net(x, graph, weight)
        scores_out = model.sampler.broadcast_net(x, graph, weight)
        w = torch.ones(edges.shape[1]).double() if weight is None else weight
        w = w * (scores_in.argmax(1) == 0)[edges[1]] * (scores_out.argmax(1) == 0)[edges[0]]
        # With one weight per edge there is nothing left to choose.
        x = x + F.gelu(conv(x, graph, None, w))
    return model.readout.lins[0](model.norm(x))


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["random-directed", "bidirected", "parallel", "isolated"])
def test_the_network_is_its_definition(environment: str, weighted: bool, name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    x = randn(n, 5)
    weight = random_weight(edges.shape[1]) if weighted else None
    shares = []
    for seed in range(6):
        model = build(seed, environment=environment, action="mean", action_layers=2)
        with record_actions(model) as actions:
            got = model(x, edges, edge_weight=weight)
        assert_close(got, slow(model, x, edges, weight), rtol=0, atol=1e-11)
        shares += [(a.listens[edges[1]] * a.broadcasts[edges[0]]).mean() for a in actions]
    assert any(0 < share < 1 for share in shares)  # open and closed edges in one layer


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("environment", ["mean", "sum"])
def test_forced_open_it_is_a_plain_gnn(environment: str, training: bool) -> None:
    """The same as PyG's SAGEConv layers, whatever the noise."""
    model = force(build(environment=environment, skip=False, norm=None, dropout=0.0))
    model.train(training)
    x = y = randn(N, 5)
    y = F.gelu(model.encoder(y))
    for conv in model.convs:
        theirs = SAGEConv(8, 8, aggr=environment).double()
        with torch.no_grad():
            theirs.lin_r.weight.copy_(conv.lin.weight[:, :8])
            theirs.lin_l.weight.copy_(conv.lin.weight[:, 8:])
            theirs.lin_l.bias.copy_(conv.lin.bias)
        y = F.gelu(theirs(y, EDGES))
    assert_close(model(x, EDGES), model.readout.lins[0](y), rtol=0, atol=1e-12)


@pytest.mark.parametrize("ends", [{"listen": False}, {"broadcast": False}])
@pytest.mark.parametrize("environment", ["mean", "sum"])
def test_forced_closed_nodes_see_themselves_alone(environment: str, ends: dict[str, bool]) -> None:
    """A layer is W [x ‖ 0] + b, and edges make no difference."""
    model = force(build(environment=environment, skip=False, norm=None), **ends)
    x = y = randn(N, 5)
    y = F.gelu(model.encoder(y))
    for conv in model.convs:
        y = F.gelu(conv.lin(torch.cat([y, torch.zeros_like(y)], dim=1)))
    assert_close(model(x, EDGES), model.readout.lins[0](y), rtol=0, atol=1e-12)
    assert_close(model(x, EDGES[:, :3]), model(x, EDGES), rtol=0, atol=1e-12)


def test_actions_are_zero_or_one_in_training_and_differ() -> None:
    model = build().train()
    seen = set()
    with record_actions(model) as actions:
        for seed in range(5):
            model(randn(N, 5, seed=seed), EDGES)
    assert len(actions) == 5 * 3
    for layer in actions:
        assert layer.listens.shape == layer.broadcasts.shape == (N,)
        for part in layer:
            assert set(part.tolist()) <= {0.0, 1.0}
        seen |= set(layer.codes().tolist())
    assert seen == {0, 1, 2, 3}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_gradients_reach_the_action_networks(environment: str) -> None:
    model = build(environment=environment, action_layers=2).train()
    torch.manual_seed(3)
    model(randn(N, 5), EDGES).square().sum().backward()
    for key, parameter in model.sampler.named_parameters():
        assert parameter.grad.abs().sum() > 0, key


def test_turning_all_edges_swaps_listening_and_broadcasting() -> None:
    """With in and out networks swapped, the weights of the turned edges are those of the edges.

    So one network's matrix of weights is the transpose of the other's.
    """
    model = build(action="linear")
    swapped = build(action="linear")
    swapped.load_state_dict(model.state_dict())
    net = swapped.sampler
    net.listen_net, net.broadcast_net = net.broadcast_net, net.listen_net
    graph, x = Graph(EDGES, N), randn(N, 8)
    actions = model.sampler(x, graph)
    turned = net(x, graph.reverse())
    weight = actions.broadcasts[EDGES[0]] * actions.listens[EDGES[1]]
    turned_weight = turned.broadcasts[EDGES[1]] * turned.listens[EDGES[0]]
    assert 0 < weight.sum() < EDGES.shape[1]
    assert torch.equal(weight, turned_weight)
    u, v = randn(N, 2, seed=1), randn(N, 2, seed=2)
    there = (gated_sum(u, graph, actions) * v).sum()
    back = (gated_sum(v, graph.reverse(), turned) * u).sum()
    assert_close(there, back, rtol=0, atol=1e-12)


def test_one_policy_and_one_norm_serve_all_layers() -> None:
    shallow, deep = CoGNN(5, 8, 1, 2, norm="layer"), CoGNN(5, 8, 6, 2, norm="layer")
    for model in (shallow, deep):
        modules = list(model.modules())
        assert sum(isinstance(module, ActionSampler) for module in modules) == 1
        assert sum(isinstance(module, nn.LayerNorm) for module in modules) == 1
    sizes = [sum(p.numel() for p in model.parameters()) for model in (shallow, deep)]
    assert sizes[1] - sizes[0] == 5 * (16 * 8 + 8)


# --- evaluation -----------------------------------------------------------------------------------


def outputs(model: CoGNN, calls: int = 8) -> list[Tensor]:
    with torch.no_grad():
        return [model(randn(N, 5), EDGES) for _ in range(calls)]


@pytest.mark.parametrize("evaluation", ["argmax", "seeded"])
def test_evaluation_can_be_deterministic(evaluation: str) -> None:
    first, *others = outputs(build(evaluation=evaluation))
    assert all(torch.equal(other, first) for other in others)


def test_evaluation_can_sample() -> None:
    first, *others = outputs(build(evaluation="sample"))
    assert any(not torch.equal(other, first) for other in others)


def test_the_seed_of_evaluation_counts_and_leaves_the_random_state_alone() -> None:
    kinds = [outputs(build(evaluation="seeded", evaluation_seed=seed), 1)[0] for seed in range(6)]
    assert any(not torch.equal(kind, kinds[0]) for kind in kinds)
    model = build(evaluation="seeded")
    before = torch.get_rng_state()
    outputs(model, 1)
    assert torch.equal(torch.get_rng_state(), before)


def test_recording_changes_nothing() -> None:
    model, x = build(), randn(N, 5)
    want = model(x, EDGES)
    with record_actions(model) as actions:
        assert torch.equal(model(x, EDGES), want)
    model(x, EDGES)
    assert len(actions) == 3
    assert all(isinstance(layer, Actions) for layer in actions)


# --- the rest -------------------------------------------------------------------------------------


def test_training_compiles_in_one_piece() -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    model = CoGNN(5, 8, 1, 2, temperature="learned").double().train()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    compiled(randn(N, 5), Graph(EDGES, N)).sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_half_precision_autocast() -> None:
    x = randn(N, 5).float()
    for environment in ENVIRONMENTS:
        model = force(build(environment=environment)).float()
        with torch.autocast("cpu", torch.bfloat16):
            got = model(x, EDGES)
        assert_close(got.float(), model(x, EDGES), rtol=0.1, atol=0.1)


def test_the_decoder_is_linear_layers_with_dropout_and_activation() -> None:
    decoder = Decoder(4, 3, 3, dropout=0.5, act=F.gelu).eval()
    x = torch.randn(6, 4)
    first, second, last = decoder.lins
    assert_close(decoder(x), last(F.gelu(second(F.gelu(first(x))))))
    assert repr(decoder) == "Decoder(4, 3, num_layers=3)"
    decoder.train()
    assert not torch.equal(decoder(x), decoder(x))
    single = Decoder(4, 3, 1, dropout=0.5, act=F.gelu)
    assert_close(single(x), single.lins[0](x))


def test_repr_states_the_transformation() -> None:
    assert repr(build(action="gin")) == (
        "CoGNN(5, 8, num_layers=3, out_channels=2, environment='mean', action='gin')"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("environment", "linear"),
        ("action", "gat"),
        ("action_channels", 0),
        ("action_layers", 0),
        ("temperature", "warm"),
        ("tau0", -1.0),
        ("dropout", 1.0),
        ("act", "?"),
        ("norm", "?"),
        ("readout_layers", 0),
        ("evaluation", "?"),
        ("evaluation_seed", -1),
    ],
)
def test_bad_arguments_are_named(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{option}`"):
        build(**{option: value})
    with pytest.raises(ValueError, match="`tau`"):
        build(temperature="fixed", tau=0.0)


def test_every_recipe_is_a_point_of_the_published_grid() -> None:
    grid = load_grid("cognn")
    names = [name for name in recipe_names() if name.startswith("cognn/")]
    assert "cognn/minesweeper-generated" in names
    for name in names:
        recipe = load_recipe(name)
        for path, choices in grid.items():
            section, field = path.split(".")
            assert getattr(getattr(recipe, section), field) in choices, (name, path)


def test_sampled_actions_have_the_dtype_of_the_model() -> None:
    model = CoGNN(5, 8, 2, 2).bfloat16().train()
    x, edges = torch.randn(4, 5).bfloat16(), torch.tensor([[0, 1, 2], [1, 2, 3]])
    out = model(x, edges)
    assert out.dtype == torch.bfloat16
    out.sum().backward()
