"""P3: two hops per layer for fixed or node-local maps, more when the learner looks around."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from graphs import path, randn
from hypothesis import given
from hypothesis import strategies as st
from paper.networks import influence, network
from paper.operators import (
    DIFFUSIONS,
    FEW,
    depends,
    random_pair,
    silenced,
    simple_graphs,
)
from torch import Tensor, nn

from coopsheaf import Graph
from coopsheaf.nn import (
    GraphNormSAGELearner,
    MLPLearner,
    NodeNormSAGELearner,
    ProjectedSAGELearner,
)

orders = pytest.mark.parametrize("name", DIFFUSIONS)


def distances(graph: Graph) -> Tensor:
    """Hops between every two nodes, ``(n, n)``; n where there is no path."""
    n = graph.num_nodes
    adjacency = torch.eye(n)
    adjacency[graph.target, graph.source] = 1
    hops, reached = torch.full((n, n), n), torch.eye(n)
    for distance in range(n):
        hops[(reached > 0) & (hops == n)] = distance
        reached = reached @ adjacency
    return hops


@orders
@FEW
@given(graph=simple_graphs(max_nodes=7), seed=st.integers(0, 99))
def test_fixed_maps_reach_two_hops(name: str, graph: Graph, seed: int) -> None:
    """Block (i, u) is zero when dist(i, u) > 2, and for maps in general position not at 2."""
    linked = depends(DIFFUSIONS[name](graph, *random_pair(graph.num_nodes, 2, seed)))
    hops = distances(graph)
    assert not linked[hops > 2].any()
    assert linked[hops == 2].all()


@orders
@pytest.mark.parametrize("silent", ["source", "target"])
def test_two_hops_are_possible_not_certain(name: str, silent: str) -> None:
    """The bound is attained by some maps only: a zero map in the middle cuts the two hops."""
    source, target = random_pair(3, 2)
    if silent == "source":
        source = silenced(source, [1])
    else:
        target = silenced(target, [1])
    linked = depends(DIFFUSIONS[name](Graph(path(3)), source, target))
    assert not linked[0, 2]
    assert not linked[2, 0]


def assert_reaches(model: nn.Module, hops: int) -> None:
    """From one end of a path: always zero beyond ``hops``, and there not for all features."""
    n = hops + 4
    reached = torch.stack([influence(model, randn(n, 3, seed=k), path(n)) for k in range(5)])
    assert (reached[:, hops + 1 :] == 0).all()
    # A unit of a ReLU can rest for one draw of the features; the bound is attained by others.
    assert reached[:, hops].max() > 1e-12


@pytest.mark.parametrize("semantics", ["paper", "released"])
@pytest.mark.parametrize("t", [1, 2, 3])
def test_node_local_learner_reaches_two_hops_per_layer(t: int, semantics: str) -> None:
    """With maps learned from the node alone, t layers reach 2t hops and not 2t + 1."""
    assert_reaches(network(MLPLearner(16), t, semantics=semantics), 2 * t)


SAGES: dict[str, Callable[..., object]] = {
    "projected": ProjectedSAGELearner,
    "node-norm": NodeNormSAGELearner,
}


@pytest.mark.parametrize("recipe", SAGES)
@pytest.mark.parametrize(("t", "g"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1)])
def test_sage_learner_reaches_further(t: int, g: int, recipe: str) -> None:
    """With maps learned by g layers of GraphSAGE, t layers reach (2 + g)t hops and no further."""
    assert_reaches(network(SAGES[recipe](16, g), t), (2 + g) * t)


def test_graph_norm_with_one_layer_is_local() -> None:
    """One layer of GraphSAGE has no norm: three hops, as for the other kinds."""
    assert_reaches(network(GraphNormSAGELearner(16, 1), 1), 3)


@pytest.mark.parametrize("g", [2, 3])
def test_graph_norm_is_global(g: int) -> None:
    """A norm over all nodes at once lets one layer depend on every node, however far."""
    model, n = network(GraphNormSAGELearner(16, g), 1), 16
    reached = influence(model, randn(n, 3, seed=12), path(n))
    assert (reached > 1e-13).all()


@pytest.mark.parametrize(
    ("learner", "leaks"),
    [(GraphNormSAGELearner(16, 2), True), (NodeNormSAGELearner(16, 2), False)],
)
def test_graph_norm_joins_the_graphs_of_a_batch(learner: object, leaks: bool) -> None:
    """With the norm over all nodes even a graph without any link to this one has influence."""
    edge_index = torch.cat([path(4), path(4) + 4], dim=1)
    reached = influence(network(learner, 1), randn(8, 3, seed=12), edge_index)
    assert bool((reached[4:] > 1e-13).all()) is leaks
    assert bool((reached[4:] == 0).all()) is not leaks
