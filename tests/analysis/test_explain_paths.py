"""Strongest paths: those of an exhaustive search, along flows that were routed by hand."""

from __future__ import annotations

import math

import pytest
import torch
from analysis.cooperation import block_norms, fixed, maps_of, operator_of, scaled
from analysis.networks import build, ring
from graphs import graphs, path, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from models.test_all import EDGES, F_IN, N
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.analysis import hop_distances, strongest_paths
from coopsheaf.analysis.explain_paths import LayerFlow, search_paths
from coopsheaf.zoo.cognn.actions import record_actions

Walk = tuple[tuple[int, ...], float]


def moves(layer: LayerFlow, node: int) -> list[Walk]:
    """All that one layer can do from a node, loops aside: stay, one hop, two hops."""
    ends = list(zip(*layer.graph.edge_index.tolist(), strict=True))
    found: list[Walk] = [((), 1.0)]
    for e, (j, k) in enumerate(ends):
        if j != node or j == k:
            continue
        found.append(((k,), float(layer.flow[e])))
        if layer.first is not None and layer.second is not None:
            for e2, (j2, i) in enumerate(ends):
                if j2 == k and i != k:
                    found.append(((k, i), float(layer.first[e] * layer.second[e2])))
    return found


def exhaustive(flows: list[LayerFlow], start: int, end: int) -> list[Walk]:
    walks: list[Walk] = [((start,), 1.0)]
    for layer in flows:
        walks = [
            (nodes + more, strength * weight)
            for nodes, strength in walks
            for more, weight in moves(layer, nodes[-1])
        ]
    return [(nodes, strength) for nodes, strength in walks if nodes[-1] == end and strength > 0]


def random_flows(graph: Graph, layers: int, two: bool, seed: int) -> list[LayerFlow]:
    generator = torch.Generator().manual_seed(seed)
    m = graph.num_edges

    def draw() -> Tensor:
        values = 2 * torch.rand(m, generator=generator).double()
        return values * (torch.rand(m, generator=generator) > 0.2)

    return [LayerFlow(graph, draw(), *((draw(), draw()) if two else ())) for _ in range(layers)]


@pytest.mark.parametrize("two", [False, True])
@settings(deadline=None, max_examples=40)
@given(graph=graphs(max_nodes=4, max_edges=8), seed=st.integers(0, 10**6))
def test_paths_are_those_of_an_exhaustive_search(graph: Graph, seed: int, two: bool) -> None:
    flows = random_flows(graph, 2, two, seed)
    n = graph.num_nodes
    found = {p.nodes[0]: p for p in search_paths(flows, 0, sources=range(n), count=n)}
    assert 0 not in found
    for start in range(1, n):
        walks = exhaustive(flows, start, 0)
        assert (start in found) <= bool(walks)
        simple = [walk for walk in walks if len(set(walk[0])) == len(walk[0])]
        # A stronger walk that visits a node twice may hide a path of its own length only.
        lengths = {len(nodes) for nodes, _ in walks}
        seen = [
            max((w for w in walks if len(w[0]) == k), key=lambda walk: walk[1]) for k in lengths
        ]
        seen = [walk for walk in seen if walk in simple]
        if not seen:
            continue
        best = max(strength for _, strength in seen)
        got = found[start]
        assert got.strength == pytest.approx(best, rel=1e-12)
        assert got.nodes[-1] == 0
        assert len(set(got.nodes)) == len(got.nodes) == len(got.layers) + 1
        assert list(got.layers) == sorted(got.layers)
        assert any(
            nodes == got.nodes and strength == pytest.approx(got.strength)
            for nodes, strength in simple
        )


@settings(deadline=None, max_examples=30)
@given(graph=graphs(max_nodes=6, max_edges=14), seed=st.integers(0, 10**6))
def test_a_node_that_is_reached_has_a_path(graph: Graph, seed: int) -> None:
    m = graph.num_edges
    generator = torch.Generator().manual_seed(seed)
    flows = [LayerFlow(graph, *(torch.rand(3, m, generator=generator).double() + 0.01))] * 2
    found = {p.nodes[0] for p in search_paths(flows, 0, sources=range(graph.num_nodes), count=99)}
    distance = hop_distances(graph, [0], max_hops=4)[0]
    assert found == {j for j, hops in enumerate(distance.tolist()) if hops > 0}


def test_a_loop_does_not_hide_a_path() -> None:
    graph = Graph(torch.tensor([[2, 2, 2, 1], [2, 0, 1, 0]]), 3)
    layer = LayerFlow(graph, torch.tensor([100, 0.001, 0.2, 0.25]).double())
    (found,) = search_paths([layer, layer], 0, sources=[2], count=1)
    assert found.nodes == (2, 1, 0)  # 2 → 2 → 0 is stronger, and no path
    assert found.strength == pytest.approx(0.05)


def route(semantics: str) -> tuple[list, Graph]:
    """Layer by layer one edge of the path 4 - 3 - 2 - 1 - 0 is open, from its far end."""
    layers = []
    for sender in (3, 2, 1):
        source, target = torch.zeros(5), torch.zeros(5)
        source[sender], target[sender - 1] = 1.5, 0.5
        if semantics == "released":  # the broadcaster has to hold the value between the passes
            target[sender] = 0.7
        layers.append((maps_of(source, seed=sender), maps_of(target, seed=sender + 9)))
    return layers, Graph(path(5), 5)


@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
def test_a_route_laid_by_hand_is_found_and_as_strong_as_its_blocks(semantics: str) -> None:
    layers, graph = route(semantics)
    model = fixed(layers, semantics=semantics)
    found = strongest_paths(model, randn(5, F_IN), graph, 0)
    assert {p.nodes: p.layers for p in found} == {
        (3, 2, 1, 0): (0, 1, 2),
        (2, 1, 0): (1, 2),
        (1, 0): (2,),
    }
    norms = [block_norms(operator_of(model, graph, k).to_dense(), 5) for k in range(3)]
    want = math.prod(float(norms[k][2 - k, 3 - k]) for k in range(3))
    assert found[-1].nodes == (3, 2, 1, 0)
    assert found[-1].strength == pytest.approx(want, rel=1e-12)


def test_one_layer_takes_two_hops() -> None:
    model = scaled([1.0] * 3, [1.0] * 3)
    graph = Graph(path(3), 3)
    far = strongest_paths(model, randn(3, F_IN), graph, 0, sources=2)
    assert [(p.nodes, p.layers) for p in far] == [((2, 1, 0), (0, 0))]
    norms = block_norms(operator_of(model, graph).to_dense(), 3)
    assert far[0].strength == pytest.approx(float(norms[0, 2]), rel=1e-12)
    assert strongest_paths(model, randn(3, F_IN), graph, 0, sources=2, max_hops=1) == ()


def test_one_layer_of_messages_takes_one() -> None:
    graph, x = Graph(path(3), 3), randn(3, F_IN)
    ones = [1.0] * 3
    model = scaled(ones, ones, semantics="messages")
    assert strongest_paths(model, x, graph, 0, sources=2) == ()
    (near,) = strongest_paths(model, x, graph, 0, sources=1)
    norms = block_norms(operator_of(model, graph).to_dense(), 3)
    assert near.strength == pytest.approx(float(norms[0, 1]), rel=1e-12)


def test_released_paths_go_against_the_list() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    model = scaled([1.0] * 3, [1.0] * 3, semantics="released")
    assert strongest_paths(model, randn(3, F_IN), edges, 2) == ()
    found = strongest_paths(model, randn(3, F_IN), edges, 0)
    assert {p.nodes for p in found} == {(1, 0), (2, 1, 0)}


def test_paths_of_cognn_use_open_edges_only() -> None:
    model, x, graph = build("cognn", evaluation="seeded"), randn(N, F_IN), Graph(EDGES, N)
    with record_actions(model) as actions:
        model(x, graph)
    for node in range(N):
        for found in strongest_paths(model, x, graph, node):
            for j, i, layer in zip(found.nodes, found.nodes[1:], found.layers, strict=False):
                assert actions[layer].broadcasts[j] == 1
                assert actions[layer].listens[i] == 1
            assert len(set(found.layers)) == len(found.layers)  # one hop per layer


def test_the_strongest_come_first_and_no_more_than_asked_for() -> None:
    model, x = build("csnn"), randn(N, F_IN)
    every = strongest_paths(model, x, EDGES, 0, count=N)
    strengths = [p.strength for p in every]
    assert strengths == sorted(strengths, reverse=True)
    assert strongest_paths(model, x, EDGES, 0, count=3) == every[:3]
    assert every[0].text() == " → ".join(map(str, every[0].nodes))
    names = [f"n{k}" for k in range(N)]
    assert every[0].text(names).startswith(f"n{every[0].nodes[0]} → ")


@pytest.mark.parametrize("name", ["gcn", "nsd-diag", "mlp"])
def test_other_networks_have_no_flows(name: str) -> None:
    assert strongest_paths(build(name), randn(N, F_IN), EDGES, 0) == ()


def test_no_edges_no_paths() -> None:
    none = torch.empty(2, 0, dtype=torch.int64)
    assert strongest_paths(build("csnn"), randn(3, F_IN), none, 0) == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node": 9}, "`node` must hold indices of the 9 nodes"),
        ({"node": -1}, "`node` must be an integer of at least 0"),
        ({"node": 0, "sources": [0, 9]}, "`sources` must hold indices of the 9 nodes"),
        ({"node": 0, "count": 0}, "`count` must be an integer of at least 1"),
        ({"node": 0, "max_hops": 0}, "`max_hops` must be an integer of at least 1"),
    ],
)
def test_arguments_are_checked(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strongest_paths(build("csnn"), randn(N, F_IN), EDGES, **options)


def test_ten_thousand_nodes_are_not_many() -> None:
    graph = Graph(ring(10_000), 10_000)
    generator = torch.Generator().manual_seed(0)
    flows = [
        LayerFlow(graph, *torch.rand(3, graph.num_edges, generator=generator).double())
        for _ in range(3)
    ]
    found = search_paths(flows, 0, sources=range(10_000), count=12)
    assert {p.nodes[0] for p in found} == {*range(1, 7), *range(9994, 10_000)}
