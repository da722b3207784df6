"""What becomes of the propositions where a layer sends messages alone, ``semantics="messages"``.

M is what the edges of Δ_out carry: M_ij = -T_iᵀ S_j / √((deg(i) s_i² + 1)(deg(j) s_j² + 1)) for
every edge j → i, and nothing else.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from graphs import path, randn
from hypothesis import given
from hypothesis import strategies as st
from paper.networks import bare_csnn, influence, network, set_maps
from paper.operators import (
    EXACT,
    FEW,
    blocks,
    depends,
    matrix,
    only,
    random_pair,
    silenced,
    simple_graphs,
)
from torch import Tensor

from coopsheaf import CSNN, Graph
from coopsheaf.nn import MLPLearner, ProjectedSAGELearner
from coopsheaf.sheaves.diffusion import message_diffusion


def adjacency(graph: Graph) -> Tensor:
    """``(n, n)``: whether an edge leads from j to i."""
    linked = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.bool)
    linked[graph.target, graph.source] = True
    return linked


# Cooperation (Proposition 4.1).


@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99), data=st.data())
def test_who_listens_and_who_is_heard(graph: Graph, seed: int, data: st.DataObject) -> None:
    """Block (i, j) is there exactly if j → i is an edge, T_i ≠ 0 and S_j ≠ 0."""
    nodes = st.sets(st.integers(0, graph.num_nodes - 1))
    deaf, mute = data.draw(nodes), data.draw(nodes)
    source, target = random_pair(graph.num_nodes, 2, seed)
    operator = message_diffusion(graph, silenced(source, mute), silenced(target, deaf))
    expected = adjacency(graph)
    expected[list(deaf)] = False
    expected[:, list(mute)] = False
    assert torch.equal(depends(operator), expected)


@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99))
def test_nobody_hears_itself(graph: Graph, seed: int) -> None:
    """The diagonal is zero, where that of P is not: a node's own feature is the residual's."""
    operator = message_diffusion(graph, *random_pair(graph.num_nodes, 2, seed))
    assert not depends(operator).diagonal().any()


def test_a_loop_is_an_edge() -> None:
    source, target = random_pair(1, 2)
    operator = message_diffusion(Graph(torch.zeros(2, 1, dtype=torch.long), 1), source, target)
    want = -target.to_dense()[0].mT @ source.to_dense()[0] / (source.scale[0] ** 2 + 1)
    torch.testing.assert_close(blocks(operator)[0, 0], want, **EXACT)


# The receptive field (Proposition 4.2).


def reach(model: torch.nn.Module, hops: int) -> None:
    """From one end of a path: always zero beyond ``hops``, and there not for all features."""
    n = hops + 4
    reached = torch.stack([influence(model, randn(n, 3, seed=k), path(n)) for k in range(5)])
    assert (reached[:, hops + 1 :] == 0).all()
    assert reached[:, hops].max() > 1e-12


@pytest.mark.parametrize("t", [1, 2, 3])
def test_a_node_local_learner_reaches_one_hop_per_layer(t: int) -> None:
    """t layers reach t hops and not t + 1, half as far as the paper's operator."""
    reach(network(MLPLearner(16), t, semantics="messages"), t)


@pytest.mark.parametrize(("t", "g"), [(1, 1), (1, 3), (2, 2), (3, 1)])
def test_a_sage_learner_adds_its_own_reach(t: int, g: int) -> None:
    """With maps learned by g layers of GraphSAGE, t layers reach (1 + g)t hops and no further."""
    reach(network(ProjectedSAGELearner(16, g), t, semantics="messages"), (1 + g) * t)


# Routing (Proposition 4.3).


@FEW
@given(data=st.data(), seed=st.integers(0, 99))
def test_two_maps_leave_one_block(data: st.DataObject, seed: int) -> None:
    """S_s, T_t alone: M_ts = -T_tᵀ S_s / √(deg(s) s² + 1), the rest exactly zero."""
    graph = data.draw(simple_graphs())
    edge = data.draw(st.integers(0, graph.num_edges - 1))
    s, t = int(graph.source[edge]), int(graph.target[edge])
    source, target = random_pair(graph.num_nodes, 2, seed)
    operator = message_diffusion(graph, only(source, [s]), only(target, [t]))
    expected = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.bool)
    expected[t, s] = True
    assert torch.equal(depends(operator), expected)
    root = (graph.out_degree[s] * source.scale[s] ** 2 + 1).sqrt()
    want = -target.to_dense()[t].mT @ source.to_dense()[s] / root
    torch.testing.assert_close(blocks(operator)[t, s], want, **EXACT)


def routed(epsilon: float) -> tuple[Tensor, Tensor]:
    """∂ x_0 / ∂ x_u on 0 - 1 - 2 - 3 after three layers from 3 to 0, and the product of M's."""
    n, route = 4, [3, 2, 1, 0]
    options = {"left_weights": False, "right_weights": False, "semantics": "messages"}
    model: CSNN = bare_csnn(n, 2, 1, 3, **options)
    for k, (conv, (s, t)) in enumerate(zip(model.convs, pairwise(route), strict=True)):
        source, target = torch.zeros(n), torch.zeros(n)
        source[s], target[t] = 1.2 + 0.1 * k, 0.7 + 0.1 * k
        set_maps(conv.source_learner, source, randn(n, 1, seed=k))
        set_maps(conv.target_learner, target, randn(n, 1, seed=20 + k))
    with torch.no_grad():
        for layer in model.epsilons:
            layer.fill_(epsilon)
    graph, x = Graph(path(n)), randn(n, 2, seed=1)
    product = torch.eye(2, dtype=torch.float64)
    for conv, (s, t) in zip(model.convs, pairwise(route), strict=True):
        maps = conv.maps(x.view(n, 2, 1), graph)
        product = -blocks(message_diffusion(graph, *maps))[t, s] @ product
    jacobian = torch.autograd.functional.jacobian(lambda z: model(z, graph)[0], x)
    return jacobian.transpose(0, 1), product


def test_without_the_residual_only_the_far_end_arrives() -> None:
    jacobian, product = routed(-40.0)  # tanh(-40) is -1 exactly
    assert (jacobian[:3] == 0).all()
    torch.testing.assert_close(jacobian[3], product, **EXACT)
    assert product.abs().max() > 0.05


def test_with_the_residual_every_node_of_the_path_arrives() -> None:
    jacobian, product = routed(0.0)
    assert (jacobian.abs().amax((1, 2)) > 0.05).all()
    torch.testing.assert_close(jacobian[3], product, **EXACT)


@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99), epsilon=st.floats(-0.99, 1.0))
def test_no_finite_epsilon_forgets(graph: Graph, seed: int, epsilon: float) -> None:
    """∂x_t' / ∂x_t = (1 + ε) I whatever the maps: there is no diagonal to cancel it with."""
    operator = message_diffusion(graph, *random_pair(graph.num_nodes, 2, seed))
    n, d = operator.domain
    layer = (1 + epsilon) * torch.eye(n * d, dtype=torch.float64) - matrix(operator)
    own = layer.view(n, d, n, d).diagonal(dim1=0, dim2=2)  # (d, d, n)
    eye = torch.eye(d, dtype=torch.float64)
    torch.testing.assert_close(own, (1 + epsilon) * eye[..., None].expand(d, d, n), **EXACT)


# Spectrum and trivial sheaf.


@FEW
@given(graph=simple_graphs(), seed=st.integers(0, 99))
def test_with_equal_maps_it_is_symmetric_and_contracts(graph: Graph, seed: int) -> None:
    """S = T: M is symmetric, its eigenvalues lie inside (-1, 1), below max d / (d + 1)."""
    source, _ = random_pair(graph.num_nodes, 2, seed)
    dense = matrix(message_diffusion(graph, source, source))
    torch.testing.assert_close(dense, dense.T, **EXACT)
    degree = graph.out_degree * source.scale**2
    bound = (degree / (degree + 1)).max()
    assert torch.linalg.eigvalsh(dense).abs().max() <= bound + 1e-12


def test_in_general_it_does_not_contract() -> None:
    """One edge, S = I and T = 3I: eigenvalues ±3/2. Listeners are not normalised by their T."""
    source, _ = random_pair(2, 2)
    ones = torch.ones(2, dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64).repeat(2, 1, 1)
    maps = [type(source)(scale * ones, eye) for scale in (1.0, 3.0)]
    dense = matrix(message_diffusion(Graph(path(2)), *maps))
    values = torch.linalg.eigvalsh(dense)
    torch.testing.assert_close(values, torch.tensor([-1.5, -1.5, 1.5, 1.5]).double(), **EXACT)
