"""The unit of strengths: from flows alone, of one layer alone, and whatever is free in it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from analysis.cooperation import fixed, maps_of, operator_of, scaled
from analysis.networks import ring
from analysis.test_actions import EACH_SEMANTICS, EDGES, STANDARD, N, features
from graphs import generator, graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis import flow_edges, read_actions
from coopsheaf.analysis.actions import choose_actions
from coopsheaf.analysis.passes import LayerPasses, Pass, read_passes
from coopsheaf.analysis.strengths import read_strengths
from coopsheaf.sheaves.laplacian import NodeMapOperator
from coopsheaf.sheaves.operator import Product


def scales(seed: int, n: int, low: float = 0.03, high: float = 30.0) -> Tensor:
    """Source and target scales over three decades, ``(2, n)``."""
    share = torch.rand(2, n, generator=generator(seed)).double()
    return low * (high / low) ** share


def would_flow(graph: Graph, source: Tensor, target: Tensor, semantics: str) -> Tensor:
    """φ of all pairs, ``(listeners, broadcasters)``, from the equations of the two passes."""
    if semantics == "released":
        graph = graph.reverse()
    n = graph.num_nodes
    into, out_of = graph.in_degree.double(), graph.out_degree.double()
    others = graph.source != graph.target
    come = torch.bincount(graph.target[others], minlength=n).double()
    go = torch.bincount(graph.source[others], minlength=n).double()
    out, inner = out_of * source**2, into * target**2
    phi = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            first, second = (inner, out) if semantics == "released" else (out, inner)
            if semantics == "messages":  # one hop in the one pass that there is
                one = target[i] * source[j] / ((out[i] + 1) * (out[j] + 1)).sqrt()
                phi[i, j] = one * (come[i] * go[j]).sqrt()
                continue
            # One hop in the first pass and a stay in the second, or the other way round.
            stay = second[i] / (second[i] + 1)
            if semantics == "released":
                stay = into[i] * source[i] ** 2 / (second[i] + 1)
            one = stay * target[i] * source[j] / ((first[i] + 1) * (first[j] + 1)).sqrt()
            two = target[i] * source[j] / ((second[i] + 1) * (second[j] + 1)).sqrt()
            phi[i, j] = (one + first[j] / (first[j] + 1) * two) * (come[i] * go[j]).sqrt()
    return phi[come > 0][:, go > 0]


@EACH_SEMANTICS
@settings(deadline=None, max_examples=30)
@given(graph=graphs(), seed=st.integers(0, 10**6))
def test_strengths_are_what_would_flow_between_all_pairs(
    graph: Graph, seed: int, semantics: str
) -> None:
    source, target = scales(seed, graph.num_nodes)
    report = read_actions(scaled(source, target, semantics=semantics), features(len(source)), graph)
    phi = would_flow(graph, source, target, semantics)
    if phi.numel() == 0:
        return
    layer = report.layers[0]
    start, end = flow_edges(report, graph)
    others = start != end
    hears = torch.zeros(len(source), dtype=torch.bool).index_fill(0, end[others], True)
    heard = torch.zeros(len(source), dtype=torch.bool).index_fill(0, start[others], True)
    unit = phi.square().mean().sqrt()
    assert_close(layer.listening[hears], phi.square().mean(1).sqrt() / unit)
    assert_close(layer.broadcasting[heard], phi.square().mean(0).sqrt() / unit)
    # And an edge compares with its typical flow as its pair does with all pairs.
    place = torch.stack([hears.long().cumsum(0) - 1, heard.long().cumsum(0) - 1])
    pairs = phi[place[0][end[others]], place[1][start[others]]]
    assert layer.typical_flow is not None
    assert_close(layer.flow[others] / layer.typical_flow[others], pairs / unit)
    assert (layer.typical_flow[~others] == 0).all()


# What is free.


def rescaled(operator: NodeMapOperator, c: float) -> NodeMapOperator:
    """The same matrix, with what is taken times c and what is given over c."""
    return NodeMapOperator(
        operator.graph, operator.diagonal, c * operator.left, operator.right / c, None
    )


@EACH_SEMANTICS
@pytest.mark.parametrize(("a", "b"), [(1e3, 1e3), (1e-4, 1e-4), (50.0, 0.02), (1.0, 7.0)])
def test_a_unit_of_giving_changes_no_message_and_no_action(
    a: float, b: float, semantics: str
) -> None:
    """S times c and T over c, behind the normalisation, in either pass by itself."""
    graph, (source, target) = Graph(EDGES, N), scales(3, N)
    operator = operator_of(scaled(source, target, semantics=semantics), graph)
    if semantics == "messages":
        assert isinstance(operator, NodeMapOperator)
        other = rescaled(operator, a)
    else:
        assert isinstance(operator, Product)
        other = Product(rescaled(operator.a, b), rescaled(operator.b, a))
    assert_close(other.to_dense(), operator.to_dense(), rtol=1e-12, atol=1e-14)
    before, after = (read_passes(each) for each in (operator, other))
    assert (after.listener[0] / before.listener[0] - a).abs().max() < 1e-9 * a
    one, two = read_strengths(before), read_strengths(after)
    assert_close(two.listening, one.listening, rtol=1e-12, atol=0)
    assert_close(two.broadcasting, one.broadcasting, rtol=1e-12, atol=0)
    assert_close(two.typical_flow, one.typical_flow, rtol=1e-12, atol=0)
    actions = [choose_actions(each.listening, each.broadcasting, 0.25) for each in (one, two)]
    assert torch.equal(*actions)
    assert len(actions[0].unique()) > 1  # there was something to change


@pytest.mark.parametrize("c", [0.1, 10.0])
def test_before_the_normalisation_the_same_factor_changes_messages(c: float) -> None:
    """Degrees have a 1 beside them: this is no freedom of a layer, whatever it is of a product."""
    graph, (source, target) = Graph(EDGES, N), scales(3, N)
    one = operator_of(scaled(source, target), graph).to_dense()
    two = operator_of(scaled(c * source, target / c), graph).to_dense()
    assert (one - two).norm() > 0.1 * one.norm()


def test_where_such_a_factor_keeps_the_flows_it_keeps_the_actions() -> None:
    """On a ring of nodes that are alike, exchanging s and t is a factor, and exact."""
    for s, t in ((0.2, 3.0), (3.0, 0.2)):
        layer = read_actions(scaled([s] * 8, [t] * 8), features(8), ring(8)).layers[0]
        a, b = 2 * s**2, 2 * t**2
        assert_close(layer.flow, torch.full((16,), s * t * (a + b) / ((a + 1) * (b + 1))).double())
        assert (layer.action == STANDARD).all()


# One layer alone.


@EACH_SEMANTICS
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_layer_does_not_depend_on_the_others(factor: float, semantics: str) -> None:
    mine = (maps_of(scales(5, N)[0]), maps_of(scales(5, N)[1], seed=1))
    reports = []
    for scale in (1.0, factor):
        other = (maps_of(scale * scales(6, N)[0]), maps_of(scale * scales(6, N)[1], seed=1))
        model = fixed([mine, other], semantics=semantics)
        reports.append(read_actions(model, features(N), EDGES).layers[0])
    assert torch.equal(reports[0].action, reports[1].action)
    assert torch.equal(reports[0].listening, reports[1].listening)


def test_a_faint_layer_has_actions_of_its_own_and_says_that_it_is_faint() -> None:
    loud, low = maps_of([1.0] * 8), maps_of([1e-3] * 8, seed=3)
    report = read_actions(fixed([(loud, loud), (low, low)]), features(8), ring(8))
    assert report.counts.tolist() == [[8, 0, 0, 0], [8, 0, 0, 0]]
    first, second = (layer.typical_flow for layer in report.layers)
    assert first is not None
    assert second is not None
    assert float(second.max()) < 1e-7 * float(first.min())


@EACH_SEMANTICS
@settings(deadline=None, max_examples=60)
@given(graph=graphs(), seed=st.integers(0, 10**6))
def test_a_layer_that_carries_has_speakers_and_listeners(
    graph: Graph, seed: int, semantics: str
) -> None:
    """Whatever the units: scales of one kind may be far above those of the other."""
    n = graph.num_nodes
    layers = []
    for k, (s, t) in enumerate(((1e3, 1e-3), (1e-3, 1.0), (30.0, 30.0))):
        source, target = scales(seed + k, n)
        layers.append((maps_of(s * source), maps_of(t * target, seed=1)))
    report = read_actions(fixed(layers, semantics=semantics), features(n), graph)
    start, end = flow_edges(report, graph)
    others = start != end
    for layer in report.layers:
        carries = bool((layer.flow[others] > 0).any())
        assert bool((layer.action <= 1).any()) == carries  # listens
        assert bool((layer.action % 2 == 0).any()) == carries  # broadcasts


def test_large_sources_and_small_targets_no_longer_hide_each_other() -> None:
    """What one unit for all layers got wrong: loud sources in one layer, deaf targets in the next.

    Both layers carry; in the second a few nodes speak and all hear them.
    """
    n = 60
    few = torch.full((n,), 0.02)
    few[::20] = 0.5
    layers = [
        (maps_of([20.0] * n), maps_of([3.0] * n, seed=1)),
        (maps_of(few), maps_of([3.0] * n, seed=1)),
    ]
    report = read_actions(fixed(layers), features(n), ring(n))
    assert report.counts.tolist() == [[n, 0, 0, 0], [3, n - 3, 0, 0]]


def test_zero_flow_leaves_each_strength_to_itself() -> None:
    """In the released semantics nothing flows between nodes that only speak and only hear."""
    model = scaled([1.0, 0.0], [0.0, 2.0], semantics="released")
    report = read_actions(model, features(2), torch.tensor([[0, 1], [1, 0]]))
    layer = report.layers[0]
    assert (layer.flow == 0).all()
    assert layer.action.tolist() == [2, 1]
    assert layer.listening.tolist() == pytest.approx([0.0, 2**0.5])
    assert layer.typical_flow is not None
    assert (layer.typical_flow == 0).all()


def test_weights_of_edges_count() -> None:
    """Two edges of weight one half are one edge."""
    weight = torch.full((2 * EDGES.shape[1],), 0.5).double()
    source, target = scales(4, N)
    model = scaled(source, target)
    once = read_actions(model, features(N), EDGES, edge_weight=torch.ones(EDGES.shape[1]).double())
    twice = read_actions(model, features(N), EDGES.repeat(1, 2), edge_weight=weight)
    assert_close(twice.layers[0].listening, once.layers[0].listening)
    assert_close(twice.layers[0].broadcasting, once.layers[0].broadcasting)


def test_what_is_not_finite_is_named() -> None:
    passes = read_passes(operator_of(scaled([1.0] * 4, [1.0] * 4), Graph(ring(4), 4)))
    bad: Pass = replace(passes.first, left=passes.first.left / 0)
    with pytest.raises(ValueError, match="`model` must have finite maps on `x`"):
        read_strengths(LayerPasses(passes.graph, bad, passes.second, passes.weight))
