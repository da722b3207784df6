"""Routing: on any graph, along any path, the target hears the source and nobody else."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
import torch
from graphs import graphs, path, randn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from paper.networks import bare_csnn, set_maps
from paper.operators import simple_graphs

from coopsheaf import Graph
from coopsheaf.analysis import (
    Route,
    apply_route,
    hop_distances,
    route,
    route_jacobian,
    shortest_path,
    verify_route,
)
from coopsheaf.analysis.routing import RESIDUALS
from coopsheaf.sheaves.diffusion import SEMANTICS

MANY = settings(deadline=None, max_examples=60, derandomize=True)
POSSIBLE = [kind for kind in product(SEMANTICS, RESIDUALS) if kind != ("messages", "cancel")]
KINDS = pytest.mark.parametrize(("semantics", "residual"), POSSIBLE)
FLOW = {
    "paper": "source_to_target",
    "released": "target_to_source",
    "messages": "source_to_target",
}


def check(found: Route, graph: Graph) -> None:
    """The target's row is the predicted multiple of the identity at the source, zero elsewhere."""
    blocks = route_jacobian(found, graph)
    eye = torch.eye(found.stalk_dim, dtype=torch.float64)
    assert found.gain > 0
    torch.testing.assert_close(blocks[found.path[0]], found.gain * eye, rtol=1e-12, atol=0)
    others = torch.arange(graph.num_nodes) != found.path[0]
    if found.residual == "forget":
        assert (blocks[others] == 0).all()
    else:
        assert (blocks[others].abs() <= 1e-14 * max(1.0, found.gain)).all()
    result = verify_route(found, graph)
    assert result.delivered == pytest.approx(found.gain * math.sqrt(found.stalk_dim), rel=1e-12)
    assert result.exact or found.residual == "cancel"
    assert all(-1 <= layer.epsilon <= 0 for layer in found.layers)


@KINDS
@MANY
@given(data=st.data())
def test_on_simple_graphs(semantics: str, residual: str, data: st.DataObject) -> None:
    """Bidirected without loops, the graphs of the proposition: always possible."""
    graph = data.draw(simple_graphs(max_nodes=8))
    source = data.draw(st.integers(0, graph.num_nodes - 1))
    reached = (hop_distances(graph)[:, source] >= 0).nonzero().flatten().tolist()
    target = data.draw(st.sampled_from(reached))
    scale = data.draw(st.sampled_from([0.3, 1.0, 4.0]))
    d = data.draw(st.integers(1, 3))
    found = route(
        graph, source, target, semantics=semantics, residual=residual, stalk_dim=d, scale=scale
    )
    assert len(found.layers) == hop_distances(graph)[target, source]  # t hops in t layers
    if residual == "cancel":
        assert all(layer.epsilon > -1 for layer in found.layers)  # within reach of tanh
    check(found, graph)


@KINDS
@MANY
@given(data=st.data())
def test_on_any_graph(semantics: str, residual: str, data: st.DataObject) -> None:
    """Directed, with loops, parallel edges and isolated nodes."""
    graph = data.draw(graphs(max_nodes=7, max_edges=16))
    reached = (hop_distances(graph, flow=FLOW[semantics]) >= 0).nonzero().tolist()
    target, source = data.draw(st.sampled_from(reached))
    options = {"semantics": semantics, "residual": residual}
    way = shortest_path(graph, source, target, flow=FLOW[semantics])
    # In the released order, gathered at edge_index[0], a sender needs some edge to gather over.
    mute = [node for node in way[:-1] if graph.out_degree[node] == 0]
    if options == {"semantics": "released", "residual": "forget"} and mute:
        with pytest.raises(ValueError, match=f"`residual` must be 'cancel'.*node {mute[0]},"):
            route(graph, source, target, **options)
        return
    found = route(graph, source, target, **options)
    assert list(found.path) == way
    check(found, graph)


@KINDS
@MANY
@given(data=st.data())
def test_along_any_walk(semantics: str, residual: str, data: st.DataObject) -> None:
    """Longer ways than the shortest serve too, one layer per edge, also round in circles."""
    graph = data.draw(simple_graphs(max_nodes=6))
    node = data.draw(st.sampled_from(graph.source.tolist()))
    walk = [node]
    for _ in range(data.draw(st.integers(1, 6))):
        walk.append(data.draw(st.sampled_from(graph.target[graph.source == walk[-1]].tolist())))
    found = route(graph, walk[0], walk[-1], walk, semantics=semantics, residual=residual)
    assert found.path == tuple(walk)
    assert len(found.layers) == len(walk) - 1
    check(found, graph)


def test_the_maps_of_the_paper() -> None:
    """On 0 - 1 - 2 - 3 from 3 to 0: layer t has S of the sender and T of the receiver alone."""
    found = route(path(4), 3, 0)
    assert found.path == (3, 2, 1, 0)
    for (s, t), layer in zip(pairwise(found.path), found.layers, strict=True):
        assert layer.source.scale.nonzero().flatten().tolist() == [s]
        assert layer.target.scale.nonzero().flatten().tolist() == [t]
        assert layer.epsilon == -1
    # a = deg(t), b = deg(s): a/(a+1)/√(b+1) + b/(b+1)/√(a+1)
    ends = 2 / 3 / math.sqrt(2) + 1 / 2 / math.sqrt(3)
    middle = 2 * (2 / 3 / math.sqrt(3))
    assert found.gain == pytest.approx(ends * middle * ends, rel=1e-14)


def test_larger_maps_carry_more() -> None:
    gains = [route(path(6), 0, 5, scale=scale).gain for scale in (0.5, 1.0, 2.0, 5.0)]
    assert gains == sorted(gains)
    assert gains[0] < 0.01
    assert gains[-1] > 1  # no decay with distance is forced


def test_a_node_to_itself_takes_no_layer() -> None:
    found = route(path(3), 1, 1)
    assert found.layers == ()
    check(found, Graph(path(3)))


def test_who_keeps_what() -> None:
    """ "forget" empties all nodes but the target, "cancel" leaves the others a multiple."""
    graph, x = Graph(path(4)), randn(4, 2, 3)
    end = apply_route(route(graph, 2, 1), graph, x)
    assert (end[[0, 2, 3]] == 0).all()
    kept = route(graph, 2, 1, residual="cancel")
    share = 1 + kept.layers[0].epsilon
    end = apply_route(kept, graph, x)
    torch.testing.assert_close(end[[0, 2, 3]], share * x[[0, 2, 3]])
    torch.testing.assert_close(end[1], kept.gain * x[2])
    assert share == pytest.approx((2 / 3) ** 2)


def test_without_either_the_whole_path_arrives() -> None:
    """The residual as it starts, ε = 0, lets every node of the path through."""
    found = route(path(4), 3, 0)
    layers = tuple(
        type(layer)(layer.source, layer.target, 0.0, layer.gain) for layer in found.layers
    )
    kept = Route(found.path, layers, "paper", "forget", 2)
    assert (verify_route(kept, path(4)).norms > 0).all()
    assert not verify_route(kept, path(4)).exact


@KINDS
def test_a_network_with_these_maps_routes(semantics: str, residual: str) -> None:
    """CSNN itself, its learners replaced by tables, with ε = tanh of a parameter."""
    graph, x = Graph(path(4)), randn(4, 2, seed=3)
    found = route(graph, 3, 0, semantics=semantics, residual=residual)
    model = bare_csnn(4, 2, 1, 3, left_weights=False, right_weights=False, semantics=semantics)
    with torch.no_grad():
        for conv, epsilon, layer in zip(model.convs, model.epsilons, found.layers, strict=True):
            angles = torch.zeros(4, 1)
            set_maps(conv.source_learner, layer.source.scale, angles)
            set_maps(conv.target_learner, layer.target.scale, angles)
            epsilon.fill_(math.atanh(layer.epsilon) if layer.epsilon > -1 else -40.0)
    got = model(x, graph)
    torch.testing.assert_close(got[0], found.gain * x[3], rtol=1e-12, atol=1e-14)
    want = apply_route(found, graph, x.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)


@MANY
@given(graph=graphs(max_nodes=6, max_edges=10), data=st.data())
def test_no_path_no_route(graph: Graph, data: st.DataObject) -> None:
    unreached = (hop_distances(graph) < 0).nonzero().tolist()
    assume(unreached)
    target, source = data.draw(st.sampled_from(unreached))
    with pytest.raises(ValueError, match=f"no path from {source} to {target}"):
        route(graph, source, target)


def test_messages_have_nothing_to_cancel_the_residual_with() -> None:
    """Whatever the maps, P_tt is zero without a loop: ε = -1 is the only way."""
    with pytest.raises(ValueError, match="`residual` must be 'forget' with semantics 'messages'"):
        route(path(3), 0, 2, semantics="messages", residual="cancel")
    found = route(path(3), 2, 0, semantics="messages", scale=2.0)
    # s² deg(s) + 1 under the root, at the receiver nothing: it has no source map.
    assert found.gain == pytest.approx(4 / math.sqrt(5) * 4 / math.sqrt(9), rel=1e-14)


def test_released_semantics_goes_against_the_edges() -> None:
    one_way = torch.tensor([[0, 1, 2], [1, 2, 3]])
    assert route(one_way, 0, 3).path == (0, 1, 2, 3)
    with pytest.raises(ValueError, match="no path"):
        route(one_way, 0, 3, semantics="released")
    found = route(one_way, 3, 0, semantics="released", residual="cancel")
    check(found, Graph(one_way))
    with pytest.raises(ValueError, match=r"nothing flows into.*node 3, which is edge_index\[0\]"):
        route(one_way, 3, 0, semantics="released")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: route(path(3), 3, 0), r"`source` must hold indices.*got 3"),
        (lambda: route(path(3), 0, -1), "`target` must be an integer of at least 0"),
        (lambda: route(path(3), 0, 2, [0, 2]), "`path` must follow edges.*from 0 to 2"),
        (lambda: route(path(3), 0, 2, [0, 1]), "`path` must lead from source 0 to target 2"),
        (lambda: route(path(3), 0, 1, [0, 0, 1]), "`path` must go on at every step; got 0 twice"),
        (lambda: route(path(3), 0, 1, [0, 7, 1]), r"`path` must hold indices.*got 7"),
        (lambda: route(path(3), 0, 1, []), "`path` must hold at least one"),
        (lambda: route(path(3), 0, 1, semantics="?"), "`semantics` must be one of"),
        (lambda: route(path(3), 0, 1, residual="?"), "`residual` must be one of"),
        (lambda: route(path(3), 0, 1, stalk_dim=0), "`stalk_dim` must be an integer"),
        (lambda: route(path(3), 0, 1, scale=0.0), "`scale` must be a number in"),
        (lambda: route(path(3), 0, 1, scale=float("nan")), "`scale` must be a number in"),
        (lambda: apply_route(route(path(3), 0, 1), path(3), randn(3, 3, 1)), r"`x` must have shape \(n, 2, h\)"),
        (lambda: apply_route(route(path(3), 0, 1), path(4), randn(4, 2, 1)), "`edge_index` must be the graph of 3"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
