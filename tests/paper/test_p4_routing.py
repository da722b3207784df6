"""P4: passing one node's feature along a path, two maps per layer."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from graphs import path, randn
from hypothesis import given
from hypothesis import strategies as st
from paper.networks import bare_csnn, set_maps
from paper.operators import (
    DIFFUSIONS,
    EXACT,
    FEW,
    blocks,
    depends,
    only,
    paper_order,
    random_pair,
    released_order,
    simple,
    simple_graphs,
)
from torch import Tensor

from coopsheaf import CSNN, ConformalMaps, Graph, record_maps
from coopsheaf.sheaves.diffusion import paper_diffusion, released_diffusion


@st.composite
def one_message(draw: st.DrawFn) -> tuple[Graph, ConformalMaps, ConformalMaps, int, int]:
    """A graph, an edge s - t of it, and maps; only S_s and T_t are to be kept."""
    graph = draw(simple_graphs())
    edge = draw(st.integers(0, graph.num_edges - 1))
    source, target = random_pair(graph.num_nodes, 2, draw(st.integers(0, 99)))
    return graph, source, target, int(graph.source[edge]), int(graph.target[edge])


def single_block(graph: Graph, row: int, column: int) -> Tensor:
    """``(n, n)``: true at one place."""
    mask = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.bool)
    mask[row, column] = True
    return mask


@FEW
@given(one_message())
def test_two_maps_leave_one_block(case: tuple) -> None:
    """S_s, T_t alone: P is zero but for P_ts = -(deg(t) t² + deg(s) s²) T_tᵀ S_s."""
    graph, source, target, s, t = case
    operator = paper_order(graph, only(source, [s]), only(target, [t]))
    assert torch.equal(depends(operator), single_block(graph, t, s))
    degree = graph.in_degree
    factor = degree[t] * target.scale[t] ** 2 + degree[s] * source.scale[s] ** 2
    expected = -factor * target.to_dense()[t].mT @ source.to_dense()[s]
    torch.testing.assert_close(blocks(operator)[t, s], expected, **EXACT)


@FEW
@given(one_message())
def test_two_maps_with_augmented_normalisation(case: tuple) -> None:
    """Augmented: P_ts = -[a / (a+1) / √(b+1) + b / (b+1) / √(a+1)] T_tᵀ S_s, the rest zero.

    With a = deg(t) t² and b = deg(s) s².
    """
    graph, source, target, s, t = case
    a = graph.in_degree[t] * target.scale[t] ** 2
    b = graph.in_degree[s] * source.scale[s] ** 2
    factor = a / (a + 1) / (b + 1).sqrt() + b / (b + 1) / (a + 1).sqrt()
    expected = -factor * target.to_dense()[t].mT @ source.to_dense()[s]
    source, target = only(source, [s]), only(target, [t])
    for operator in (
        paper_diffusion(graph, source, target),
        paper_order(graph, source, target, "augmented"),
    ):
        assert torch.equal(depends(operator), single_block(graph, t, s))
        torch.testing.assert_close(blocks(operator)[t, s], expected, **EXACT)


@FEW
@given(one_message())
def test_the_diagonal_that_cancels_the_residual(case: tuple) -> None:
    """S_s, S_t, T_t: P_tt = p I, p = ac as it is and a/(a+1) · c/(c+1) normalised, c = deg(t) s_t².

    So ε = p - 1 lies inside (-1, 0) with normalisation, and anywhere above -1 without.
    """
    graph, source, target, s, t = case
    a = graph.in_degree[t] * target.scale[t] ** 2
    c = graph.in_degree[t] * source.scale[t] ** 2
    source, target = only(source, [s, t]), only(target, [t])
    eye = torch.eye(source.orthogonal.shape[-1], dtype=torch.float64)
    plain = blocks(paper_order(graph, source, target))[t, t]
    torch.testing.assert_close(plain, a * c * eye, **EXACT)
    normalised = blocks(paper_diffusion(graph, source, target))[t, t]
    torch.testing.assert_close(normalised, a / (a + 1) * c / (c + 1) * eye, **EXACT)


@FEW
@given(one_message())
def test_two_maps_with_plain_normalisation_say_nothing(case: tuple) -> None:
    """With the pseudo-inverse of D in place of (D + I)⁻¹ the product is exactly zero."""
    graph, source, target, s, t = case
    assert not depends(paper_order(graph, only(source, [s]), only(target, [t]), "plain")).any()


@FEW
@given(one_message())
def test_two_maps_in_released_order_say_nothing(case: tuple) -> None:
    """S_s, T_t alone give R = 0: the broadcaster needs T_s to hold a value in between."""
    graph, source, target, s, t = case
    source, target = only(source, [s]), only(target, [t])
    assert not depends(released_order(graph, source, target)).any()
    assert not depends(released_diffusion(graph, source, target)).any()


@FEW
@given(one_message())
def test_three_maps_in_released_order(case: tuple) -> None:
    """S_s, T_s, T_t alone: R_ts = -deg(s) t_s² T_tᵀ S_s and R_ss are its only blocks."""
    graph, source, target, s, t = case
    message = target.to_dense()[t].mT @ source.to_dense()[s]
    heard = graph.in_degree[s] * target.scale[s] ** 2
    said = graph.in_degree[s] * source.scale[s] ** 2
    source, target = only(source, [s]), only(target, [s, t])
    expected = single_block(graph, t, s) | single_block(graph, s, s)
    eye = torch.eye(2, dtype=torch.float64)

    operator = released_order(graph, source, target)
    assert torch.equal(depends(operator), expected)
    torch.testing.assert_close(blocks(operator)[t, s], -heard * message, **EXACT)
    torch.testing.assert_close(blocks(operator)[s, s], heard * said * eye, **EXACT)

    operator = released_diffusion(graph, source, target)
    assert torch.equal(depends(operator), expected)
    heard, root = heard / (heard + 1), (said + 1).rsqrt()
    torch.testing.assert_close(blocks(operator)[t, s], -heard * root * message, **EXACT)
    torch.testing.assert_close(blocks(operator)[s, s], heard * said * root**2 * eye, **EXACT)


# The example of the paper: x_4 travels 4 → 3 → 2 → 1. Nodes are counted from 0 here.
@pytest.mark.parametrize(("s", "t", "factor"), [(3, 2, -3), (2, 1, -4), (1, 0, -3)])
def test_factors_of_the_four_node_example(s: int, t: int, factor: int) -> None:
    """With orthogonal maps on the path of four nodes the factors are -3, -4, -3."""
    source, target = random_pair(4, 3, seed=s)
    ones = torch.ones(4, dtype=torch.float64)
    source, target = ConformalMaps(ones, source.orthogonal), ConformalMaps(ones, target.orthogonal)
    operator = paper_order(Graph(path(4)), only(source, [s]), only(target, [t]))
    message = target.orthogonal[t].mT @ source.orthogonal[s]
    torch.testing.assert_close(blocks(operator)[t, s], factor * message, **EXACT)


def test_the_printed_factor_needs_degree_one() -> None:
    """The factor -2 of the text is that of a single edge, deg(s) = deg(t) = 1."""
    maps = ConformalMaps(torch.ones(2).double(), torch.eye(2).repeat(2, 1, 1).double())
    operator = paper_order(simple(2, [(0, 1)]), only(maps, [1]), only(maps, [0]))
    torch.testing.assert_close(blocks(operator)[0, 1], -2 * torch.eye(2).double(), **EXACT)


def routing_model(n: int, route: list[int], epsilon: float, semantics: str = "paper") -> CSNN:
    """A CSNN of identity activation whose layers hand on along the route, one edge each."""
    model = bare_csnn(
        n,
        2,
        1,
        len(route) - 1,
        left_weights=False,
        right_weights=False,
        semantics=semantics,
    )
    for k, (conv, (s, t)) in enumerate(zip(model.convs, pairwise(route), strict=True)):
        source, target = torch.zeros(n), torch.zeros(n)
        source[s], target[t] = 1.2 + 0.1 * k, 0.7 + 0.1 * k
        if semantics == "released":
            target[s] = 0.9
        set_maps(conv.source_learner, source, randn(n, 1, seed=k))
        set_maps(conv.target_learner, target, randn(n, 1, seed=20 + k))
    with torch.no_grad():
        for layer in model.epsilons:
            layer.fill_(epsilon)
    return model


# tanh(0) = 0 and, in double precision, tanh(-40) = -1 exactly.
KEEP, FORGET = 0.0, -40.0


def routed(model: CSNN, graph: Graph, node: int) -> tuple[Tensor, list[Tensor]]:
    """∂ x_node / ∂ x_u after all layers, ``(n, d, d)``, and the blocks of each layer's P."""
    x = randn(graph.num_nodes, 2, seed=1)
    with record_maps(model) as maps:
        model(x, graph)
    layers = [blocks(model.convs[0].diffusion(graph, *layer)) for layer in maps]
    jacobian = torch.autograd.functional.jacobian(lambda z: model(z, graph)[node], x)
    return jacobian.transpose(0, 1), layers


def test_with_the_residual_every_node_of_the_path_arrives() -> None:
    """ε = 0: x_1⁽³⁾ depends on x_1, x_2, x_3 and x_4, each node adding its own feature."""
    jacobian, layers = routed(routing_model(4, [3, 2, 1, 0], KEEP), Graph(path(4)), 0)
    p34, p23, p12 = layers[0][2, 3], layers[1][1, 2], layers[2][0, 1]
    assert (jacobian.abs().amax((1, 2)) > 0.1).all()
    torch.testing.assert_close(jacobian[0], torch.eye(2, dtype=torch.float64), **EXACT)
    torch.testing.assert_close(jacobian[1], -p12, **EXACT)
    torch.testing.assert_close(jacobian[2], p12 @ p23, **EXACT)
    torch.testing.assert_close(jacobian[3], -p12 @ p23 @ p34, **EXACT)


def test_without_the_residual_only_the_far_end_arrives() -> None:
    """ε = -1: x_1⁽³⁾ = (-P_12)(-P_23)(-P_34) x_4, each block from its own layer."""
    jacobian, layers = routed(routing_model(4, [3, 2, 1, 0], FORGET), Graph(path(4)), 0)
    assert (jacobian[:3] == 0).all()
    product = (-layers[2][0, 1]) @ (-layers[1][1, 2]) @ (-layers[0][2, 3])
    torch.testing.assert_close(jacobian[3], product, **EXACT)
    assert product.abs().max() > 0.1


# On a ring of five nodes: from 2 to 0 directly, and the long way with two nodes in between.
@pytest.mark.parametrize("route", [[2, 1, 0], [2, 3, 4, 0]])
def test_a_path_with_m_inner_nodes_takes_m_plus_one_layers(route: list[int]) -> None:
    """Any path serves, shortest or not: m inner nodes, m + 1 layers."""
    ring = simple(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    jacobian, layers = routed(routing_model(5, route, FORGET), ring, 0)
    assert len(layers) == len(route) - 1
    arrived = jacobian.abs().amax((1, 2)) > 0.05
    assert arrived.nonzero().flatten().tolist() == [2]
    assert (jacobian[~arrived] == 0).all()


def test_routing_in_released_order() -> None:
    """With three maps per layer and ε = -1 the released order delivers x_4 alone as well."""
    model = routing_model(4, [3, 2, 1, 0], FORGET, "released")
    jacobian, layers = routed(model, Graph(path(4)), 0)
    assert (jacobian[:3] == 0).all()
    product = (-layers[2][0, 1]) @ (-layers[1][1, 2]) @ (-layers[0][2, 3])
    torch.testing.assert_close(jacobian[3], product, **EXACT)
    assert product.abs().max() > 1e-3


@pytest.mark.parametrize("name", DIFFUSIONS)
def test_only_the_target_of_a_hop_is_updated(name: str) -> None:
    """In the first layer of the example the rows of nodes 1, 2 and 4 are zero."""
    source, target = random_pair(4, 2)
    linked = depends(DIFFUSIONS[name](Graph(path(4)), only(source, [3]), only(target, [2])))
    assert not linked[[0, 1, 3]].any()
