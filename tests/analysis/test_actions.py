"""Actions: right on maps made by hand, exact where maps are zero, drawn fairly for CO-GNN."""

from __future__ import annotations

import math

import pytest
import torch
from analysis.cooperation import (
    block_norms,
    fixed,
    maps_of,
    operator_of,
    scaled,
)
from analysis.networks import csnn, ring
from graphs import bidirected, generator, graphs, path, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from models.test_all import F_IN, build
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import ConformalMaps, Graph
from coopsheaf.analysis import ACTIONS, flow_edges, read_actions, sensitivity
from coopsheaf.analysis.actions import choose_actions
from coopsheaf.train.build import Rescaled
from coopsheaf.zoo.cognn.actions import record_actions

# A ring with chords: triangles, several degrees, and nobody is alone.
N = 9
EDGES = torch.cat([ring(N), bidirected(torch.tensor([[0, 0, 3, 4], [2, 5, 7, 6]]))], dim=1)

STANDARD, LISTEN, PROPAGATE, ISOLATE = range(4)
EACH_SEMANTICS = pytest.mark.parametrize("semantics", ["paper", "released", "messages"])


def features(n: int) -> Tensor:
    return randn(n, F_IN)


def by_hand(graph: Graph, source: Tensor, target: Tensor, direction: str) -> Tensor:
    """The actions of nodes whose scales are 0 or of one size."""
    edges = graph if direction == "source_to_target" else graph.reverse()
    others = edges.source != edges.target
    n = graph.num_nodes
    hears = torch.bincount(edges.target[others], minlength=n) > 0
    heard = torch.bincount(edges.source[others], minlength=n) > 0
    listens, broadcasts = (target > 0) & hears, (source > 0) & heard
    return 2 * (~listens).long() + (~broadcasts).long()


# The four actions on a path of four nodes.


@EACH_SEMANTICS
def test_the_four_actions(semantics: str) -> None:
    model = scaled([1, 0, 1, 0], [1, 1, 0, 0], semantics=semantics)
    report = read_actions(model, features(4), path(4))
    assert report.family == "csnn"
    assert report.layers[0].action.tolist() == [STANDARD, LISTEN, PROPAGATE, ISOLATE]
    assert report.layers[0].source_scale.tolist() == [1, 0, 1, 0]
    assert report.layers[0].target_scale.tolist() == [1, 1, 0, 0]
    assert report.counts.tolist() == [[1, 1, 1, 1]]
    assert ACTIONS == ("standard", "listen", "propagate", "isolate")


@EACH_SEMANTICS
@settings(deadline=None, max_examples=30)
@given(graph=graphs(), seed=st.integers(0, 10**6))
def test_zero_maps_are_zero_strengths_and_zero_flows(
    graph: Graph, seed: int, semantics: str
) -> None:
    n = graph.num_nodes
    on = torch.randint(0, 2, (2, n), generator=generator(seed)).double()
    # Any strength at all counts here; odd degrees make some of them small.
    model = scaled(*on, semantics=semantics)
    report = read_actions(model, features(n), graph, threshold=1e-9)
    layer, (source, target) = report.layers[0], on
    action = by_hand(graph, source, target, report.direction)
    start, end = flow_edges(report, graph)
    listens, speaks = layer.listening > 0, layer.broadcasting > 0
    may_listen, may_speak = action <= LISTEN, action % 2 == 0
    assert not (listens & ~may_listen).any()
    assert not (speaks & ~may_speak).any()
    assert torch.equal(layer.action, 2 * ~listens + ~speaks)
    if semantics != "released":
        assert torch.equal(layer.action, action)
    # One pass of the released order has another degree in its diagonal, which may be 0: who takes
    # in that pass alone what nobody gives there carries nothing, whatever the maps are.
    for silent, ends in ((may_listen & ~listens, end), (may_speak & ~speaks, start)):
        assert (layer.flow[silent[ends] & (start != end)] == 0).all()
    assert (layer.flow[(target == 0)[end] | (source == 0)[start]] == 0).all()
    assert (layer.flow >= 0).all()


# Zero a map, and see what goes.


@pytest.mark.parametrize(("which", "action"), [("target", PROPAGATE), ("source", LISTEN)])
def test_a_zero_map_flips_the_action_and_stops_these_flows_alone(which: str, action: int) -> None:
    n, edges, node = N, EDGES, 4
    graph = Graph(edges, n)
    scales = {"source": torch.ones(n).double(), "target": torch.ones(n).double()}
    before = read_actions(scaled(**scales), features(n), graph).layers[0]
    assert (before.action == STANDARD).all()
    scales[which][node] = 0
    model = scaled(**scales)
    after = read_actions(model, features(n), graph).layers[0]
    assert after.action[node] == action
    assert (after.action != STANDARD).sum() == 1
    into, out_of = graph.target == node, graph.source == node
    stopped, kept = (into, out_of) if which == "target" else (out_of, into)
    assert torch.equal(after.flow == 0, stopped)
    assert (after.flow[kept] > 0).all()
    assert torch.equal(after.flow[~into & ~out_of], before.flow[~into & ~out_of])
    # And so says the dense operator.
    norms = block_norms(operator_of(model, graph).to_dense(), n)
    assert (norms[graph.target, graph.source][stopped] == 0).all()
    assert (norms[graph.target, graph.source][~stopped] > 0).all()


def test_flows_of_trees_are_norms_of_blocks_of_the_layer_that_ran() -> None:
    """With a learner, weights and two layers: the maps of the computation itself."""
    model, x, graph = csnn(learner="sage-embedded"), features(6), Graph(path(6), 6)
    weight = 0.5 + torch.rand(graph.num_edges, generator=generator(1)).double()
    report = read_actions(model, x, graph, edge_weight=weight)
    state = model.act(model.encoder(x)).unflatten(1, (2, 4))
    for conv, layer in zip(model.convs, report.layers, strict=True):
        source, target = conv.maps(state, graph)
        dense = conv.diffusion(graph, source, target, weight).to_dense().detach()
        norms = block_norms(dense, 6)
        assert_close(layer.flow, norms[graph.target, graph.source], rtol=1e-10, atol=1e-14)
        state = state - model.act(conv(state, graph, edge_weight=weight))  # epsilon is 0


# The threshold.


def star(n: int) -> Tensor:
    return bidirected(torch.stack([torch.zeros(n - 1, dtype=torch.int64), torch.arange(1, n)]))


@pytest.mark.parametrize("edges", [ring(12), star(12), path(12), EDGES])
@pytest.mark.parametrize(("s", "t"), [(1, 1), (10, 10), (0.01, 0.01), (10, 0.01), (0.003, 5)])
def test_nodes_that_are_alike_are_all_standard(edges: Tensor, s: float, t: float) -> None:
    n = int(edges.max()) + 1
    model = scaled([s] * n, [t] * n)
    assert (read_actions(model, features(n), edges).layers[0].action == STANDARD).all()


def test_a_few_broadcasters_among_many_are_found() -> None:
    source = torch.full((60,), 0.01)
    source[::20] = 2.0
    report = read_actions(scaled(source, [1.0] * 60), features(60), ring(60))
    want = torch.where(source == 2.0, STANDARD, LISTEN)
    assert torch.equal(report.layers[0].action, want)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_silent_carry_a_sixteenth_at_most(seed: int) -> None:
    layers = []
    for k in range(2):
        scale = 10 ** (4 * torch.rand(2, N, generator=generator(seed + k)).double() - 3)
        layers.append((maps_of(scale[0]), maps_of(scale[1], seed=1)))
    report = read_actions(fixed(layers), features(N), EDGES)
    assert report.threshold == 0.25
    for layer in report.layers:
        for strength in (layer.listening, layer.broadcasting):
            square = strength.square()
            assert square[strength < report.threshold].sum() <= square.sum() / 16 * (1 + 1e-9)
            assert_close(float(square.mean()), 1.0)  # the unit of the layer


@pytest.mark.parametrize("edges", [torch.empty(2, 0, dtype=torch.int64), torch.tensor([[1], [1]])])
def test_nobody_to_talk_to_is_isolate(edges: Tensor) -> None:
    report = read_actions(csnn(), features(3), edges)
    assert report.counts.tolist() == [[0, 0, 0, 3]] * 2
    assert report.threshold > 0


@pytest.mark.parametrize(("s", "t", "action"), [(1, 0, 2), (0, 1, 1), (0, 0, 3)])
def test_where_all_maps_of_one_kind_are_zero(s: float, t: float, action: int) -> None:
    report = read_actions(scaled([s] * 5, [t] * 5), features(5), ring(5))
    assert (report.layers[0].action == action).all()
    assert (report.layers[0].flow == 0).all()


def test_a_given_threshold_is_used() -> None:
    report = read_actions(csnn(), features(N), EDGES)
    middle = float(report.layers[0].listening.median())
    layer = read_actions(csnn(), features(N), EDGES, threshold=middle).layers[0]
    assert torch.equal(layer.action < 2, layer.listening >= middle)
    assert torch.equal(layer.action % 2 == 0, layer.broadcasting >= middle)


def test_sensitivity_is_what_other_thresholds_give() -> None:
    model, x = csnn(), features(N)
    report = read_actions(model, x, EDGES)
    found = sensitivity(report)
    assert found.shares.shape == (2, len(found.thresholds), 4)
    assert_close(found.shares.sum(-1), torch.ones(2, len(found.thresholds)).double())
    for k, threshold in enumerate(found.thresholds.tolist()):
        counts = read_actions(model, x, EDGES, threshold=threshold).counts
        assert torch.equal(found.shares[:, k], counts.double() / N)
    assert (found.shares[..., STANDARD].diff(dim=1) <= 0).all()
    assert (found.shares[..., ISOLATE].diff(dim=1) >= 0).all()
    assert sensitivity(report, [1.0, 2]).thresholds.tolist() == [1, 2]


# Orthogonal parts.


@pytest.mark.parametrize(
    ("angle", "want"),
    [
        (0, 0),
        (math.pi, 0),
        (math.pi / 2, 1),
        (math.pi / 3, math.sqrt(0.5)),
        (1e-9, 0.5**0.5 * 1e-9),
    ],
)
def test_distance_from_the_identity(angle: float, want: float) -> None:
    cos, sin = math.cos(angle), math.sin(angle)
    turn = torch.tensor([[cos, -sin], [sin, cos]], dtype=torch.float64)
    one = maps_of([1.0]).orthogonal.expand(4, 2, 2)
    q, r = (ConformalMaps(torch.ones(4).double(), maps) for maps in (one, one @ turn))
    got = read_actions(fixed([(q, r)]), features(4), ring(4)).layers[0].from_identity
    assert_close(got, torch.full((8,), want, dtype=torch.float64), rtol=1e-7, atol=1e-15)


def test_distance_from_the_identity_knows_listener_and_broadcaster() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    for semantics in ("paper", "released", "messages"):
        model = scaled([1.0] * 3, [1.0] * 3, semantics=semantics)
        report = read_actions(model, features(3), edges)
        q, r = (
            learner.given.orthogonal
            for learner in (model.convs[0].source_learner, model.convs[0].target_learner)
        )
        start, end = flow_edges(report, edges)
        trace = (r[end].mT @ q[start]).diagonal(dim1=1, dim2=2).sum(1)
        assert_close(report.layers[0].from_identity, (1 - trace.abs() / 2).sqrt())


def test_released_flows_go_against_the_list() -> None:
    edges = torch.tensor([[0], [1]])
    report = read_actions(scaled([1.0, 1], [1.0, 1], semantics="released"), features(2), edges)
    assert report.direction == "target_to_source"
    assert flow_edges(report, edges).tolist() == [[1], [0]]
    assert report.layers[0].action.tolist() == [LISTEN, PROPAGATE]
    report = read_actions(scaled([1.0, 1], [1.0, 1]), features(2), edges)
    assert report.layers[0].action.tolist() == [PROPAGATE, LISTEN]


# CO-GNN.


def opened(listen: float, broadcast: float, **options: object):
    """A CO-GNN whose nodes open their ends with these probabilities, whatever they see."""
    model = build("cognn", action="linear", action_layers=1, norm=None, **options)
    for network, share in (
        (model.sampler.listen_net, listen),
        (model.sampler.broadcast_net, broadcast),
    ):
        lead = math.inf * (share - 0.5) if share in (0, 1) else math.log(share / (1 - share))
        network.convs[0].lin.weight.data.zero_()
        network.convs[0].lin.bias.data.copy_(torch.tensor([max(min(lead, 90), -90), 0]))
    return model


@pytest.mark.parametrize(
    ("listen", "broadcast", "action"), [(1, 1, 0), (1, 0, 1), (0, 1, 2), (0, 0, 3)]
)
def test_cognn_does_what_it_is_sure_of(listen: float, broadcast: float, action: int) -> None:
    report = read_actions(opened(listen, broadcast), features(N), EDGES, draws=3)
    assert report.family == "cognn"
    for layer in report.layers:
        assert (layer.action == action).all()
        assert (layer.listening == listen).all()
        assert (layer.broadcasting == broadcast).all()
        assert ((layer.flow > 0) == (action == 0)).all()
        assert layer.from_identity is None


def test_cognn_draws_with_the_probabilities_of_its_networks() -> None:
    report = read_actions(opened(0.8, 0.3), features(N), EDGES, draws=150)
    for layer in report.layers:
        for got, share in ((layer.target_scale, 0.8), (layer.source_scale, 0.3)):
            error = math.sqrt(share * (1 - share) / (150 * N))
            assert abs(float(got.mean()) - share) < 4 * error
        assert (layer.action == LISTEN).all()
        # The mean of open ends over the in-degree: both ends are drawn independently.
        degree = Graph(EDGES, N).in_degree[EDGES[1]]
        assert abs(float((layer.flow * degree).mean()) - 0.24) < 0.04


@pytest.mark.parametrize("environment", ["mean", "sum", "gcn", "gin"])
def test_flows_of_cognn_are_what_its_layers_do(environment: str) -> None:
    model = build("cognn", environment=environment, num_layers=1, evaluation="argmax")
    conv, graph, x = model.convs[0], Graph(EDGES, N), features(N)
    weight = 0.5 + torch.rand(graph.num_edges, generator=generator(1)).double()
    model.sampler.evaluation, model.sampler.evaluation_seed = "seeded", 5
    seed = torch.randint(2**62, (1,), generator=generator(0))
    model.sampler.evaluation_seed = int(seed)
    with record_actions(model) as actions:
        model(x, graph, edge_weight=weight)
    report = read_actions(model, x, graph, draws=1, edge_weight=weight)
    if environment == "gin":
        conv.lin_in.weight.data.copy_(torch.eye(8))
        conv.lin_in.bias.data.fill_(1e6)  # ReLU is the identity here
        conv.lin_out.weight.data.copy_(torch.eye(8))
    elif environment == "gcn":
        conv.lin.weight.data.copy_(torch.eye(8))
    else:
        conv.lin.weight.data.copy_(torch.eye(8).repeat(1, 2))

    def layer(features: Tensor) -> Tensor:
        return conv(features, graph, actions[0], weight)[:, 0]

    jacobian = torch.autograd.functional.jacobian(layer, randn(N, 8))[:, :, 0]  # (i, j)
    assert_close(report.layers[0].flow, jacobian[graph.target, graph.source])
    assert torch.equal(report.layers[0].target_scale, actions[0].listens.detach())
    assert torch.equal(report.layers[0].source_scale, actions[0].broadcasts.detach())


def test_draws_are_seeded_and_leave_no_trace() -> None:
    model, x = build("cognn"), features(N)
    state, evaluation = torch.get_rng_state(), model.sampler.evaluation
    one, two, other = (read_actions(model, x, EDGES, draws=20, seed=k) for k in (1, 1, 2))
    assert torch.equal(one.layers[0].flow, two.layers[0].flow)
    assert not torch.equal(one.layers[0].flow, other.layers[0].flow)
    assert torch.equal(torch.get_rng_state(), state)
    assert (model.sampler.evaluation, model.sampler.evaluation_seed) == (evaluation, 0)


def test_cognn_without_neighbours_neither_listens_nor_broadcasts() -> None:
    edges = torch.tensor([[0, 2], [1, 2]])
    report = read_actions(opened(1, 1), features(4), edges, draws=2)
    assert report.layers[0].action.tolist() == [PROPAGATE, LISTEN, ISOLATE, ISOLATE]
    assert report.layers[0].target_scale.tolist() == [1, 1, 1, 1]
    assert report.layers[0].listening.tolist() == [0, 1, 0, 0]


def test_the_most_frequent_action_and_its_threshold() -> None:
    model, x = opened(0.8, 0.3), features(N)
    report = read_actions(model, x, EDGES, draws=40)
    assert report.threshold == 0.5
    assert (report.layers[0].action == LISTEN).all()
    report = read_actions(model, x, EDGES, draws=40, threshold=0.1)
    assert (report.layers[0].action == STANDARD).all()
    assert sensitivity(report).thresholds[0] == pytest.approx(0.05)


# At the edge.


def test_reading_changes_nothing() -> None:
    model, x = csnn(dropout=0.9, input_dropout=0.9, learner="sage-projected").train(), features(N)
    one, two = read_actions(model, x, EDGES), read_actions(model, x, EDGES)
    assert all(module.training for module in model.modules())
    assert torch.equal(one.layers[1].flow, two.layers[1].flow)
    for name in ("source_scale", "target_scale", "broadcasting", "listening", "flow"):
        value = getattr(one.layers[0], name)
        assert value.dtype == torch.float64
        assert not value.requires_grad


def test_single_precision_and_regression() -> None:
    model = csnn(out_channels=1)
    want = read_actions(model, features(N), EDGES)
    got = read_actions(Rescaled(model.float(), 1), features(N).float(), EDGES)
    assert_close(got.layers[1].flow, want.layers[1].flow, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "mlp", "nsd-diag", "bunn"])
def test_other_models_have_no_actions(name: str) -> None:
    model = build(name)
    message = f"`model` must be a CSNN or a CO-GNN to have actions; got {type(model).__name__}"
    with pytest.raises(ValueError, match=message):
        read_actions(model, features(N), EDGES)


@pytest.mark.parametrize("threshold", [0, -1.0, math.nan, math.inf, True, "much"])
def test_thresholds_are_positive(threshold: float) -> None:
    for attempt in (
        lambda: read_actions(csnn(), features(N), EDGES, threshold=threshold),
        lambda: sensitivity(read_actions(csnn(), features(N), EDGES), [threshold]),
    ):
        with pytest.raises(ValueError, match=r"`thresholds?` must be finite and positive; got"):
            attempt()


@pytest.mark.parametrize("options", [{"draws": 0}, {"seed": -1}, {"draws": 1.5}])
def test_other_numbers_are_checked(options: dict) -> None:
    with pytest.raises(ValueError, match="must be an integer of at least"):
        read_actions(csnn(), features(N), EDGES, **options)


def test_maps_that_are_not_finite_are_named() -> None:
    with pytest.raises(ValueError, match="`model` must have finite maps on `x`"):
        read_actions(scaled([1.0, math.nan], [1.0, 1.0]), features(2), path(2))


def test_choose_actions_on_the_threshold() -> None:
    strong, weak = torch.tensor([1.0, 1.0, 0.9, 0.9]), torch.tensor([1.0, 0.9, 1.0, 0.9])
    assert choose_actions(strong, weak, 1.0).tolist() == [0, 1, 2, 3]
