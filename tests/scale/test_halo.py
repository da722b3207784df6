"""How far a network looks, and exact outputs from that far."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, generator, path, randn, random_weight
from torch import nn
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.nn import (
    EmbeddedSAGELearner,
    GraphNormSAGELearner,
    NodeNormSAGELearner,
    ProjectedSAGELearner,
)
from coopsheaf.nn.learners import LEARNERS
from coopsheaf.scale import forward_at, halo_hops, halo_steps, surround
from coopsheaf.train.build import Rescaled
from coopsheaf.zoo.plain import PlainMLP

LOCAL = [name for name in LEARNERS if name != "sage-graph-norm"]
SPARSE = {
    "sparse-directed": (60, torch.randint(0, 60, (2, 70), generator=generator(1))),
    "two-way": (60, path(60)),
}


@pytest.mark.parametrize("name", [*ODD_GRAPHS, *SPARSE])
@pytest.mark.parametrize("learner", LOCAL)
@pytest.mark.parametrize("semantics", ["paper", "released", "messages"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_halo_gives_exact_outputs(name: str, learner: str, semantics: str, weighted) -> None:
    n, edges = {**ODD_GRAPHS, **SPARSE}[name]
    torch.manual_seed(0)
    layers = 1 if n == 60 and learner != "mlp" else 2  # so that the halo is not everything
    model = CSNN(5, 4, layers, 2, stalk_dim=2, learner=learner, semantics=semantics, norm="batch")
    model = model.double().eval()
    graph, x = Graph(edges, n), randn(n, 5)
    weight = random_weight(graph.num_edges) if weighted else None
    nodes = torch.randperm(n, generator=generator(2))[: max(1, n // 12)]
    with torch.no_grad():
        whole = model(x, graph, edge_weight=weight)
        got = forward_at(model, x, graph, nodes, edge_weight=weight)
    assert_close(got, whole[nodes], rtol=0, atol=1e-10)
    if n == 60:
        assert surround(graph, nodes, halo_steps(model)).numel() < n


@pytest.mark.parametrize(("semantics", "hops"), [("paper", 6), ("released", 6), ("messages", 4)])
def test_one_hop_less_is_not_enough(semantics: str, hops: int) -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2, semantics=semantics, learner=NodeNormSAGELearner(4, 1)).double().eval()
    graph, x, nodes = Graph(path(30), 30), randn(30, 5), torch.tensor([15])
    layers = halo_steps(model)
    assert halo_hops(model) == sum(map(len, layers)) == hops
    around = surround(graph, nodes, (layers[0][:-1], layers[1]))
    part = graph.subgraph(around)
    with torch.no_grad():
        error = (model(x[around], part.graph)[0] - model(x, graph)[15]).abs().max()
    assert error > 1e-8


def test_the_gradients_are_exact_too() -> None:
    torch.manual_seed(0)
    model = CSNN(5, 4, 2, 2).double()
    n, edges = SPARSE["sparse-directed"]
    graph, x, nodes = Graph(edges, n), randn(n, 5), torch.tensor([3, 50])
    found = []
    for out in (model(x, graph)[nodes], forward_at(model, x, graph, nodes)):
        found.append(torch.autograd.grad(out.square().sum(), list(model.parameters())))
    for whole, part in zip(*found, strict=True):
        assert_close(part, whole, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("learner", "hops"),
    [
        ("mlp", 4),
        (ProjectedSAGELearner(4, 3), 10),
        (NodeNormSAGELearner(4, 1), 6),
        (EmbeddedSAGELearner(4, 2), 8),
        (GraphNormSAGELearner(4, 1), 6),  # one layer has no norm
    ],
    ids=str,
)
def test_hops_are_counted(learner, hops: int) -> None:
    assert halo_hops(CSNN(5, 4, 2, 2, learner=learner)) == hops
    turned = CSNN(5, 4, 2, 2, learner=learner, semantics="released")
    assert halo_hops(Rescaled(turned, 2)) == hops
    assert {steps[:2] for steps in halo_steps(turned)} == {("out", "out")}
    assert set(halo_steps(turned)[0][2:]) <= {"in"}
    near = CSNN(5, 4, 2, 2, learner=learner, semantics="messages")
    assert halo_hops(near) == hops - 2  # one less for each of the two layers
    assert {step for steps in halo_steps(near) for step in steps} == {"in"}


def test_maps_that_are_not_learned_look_nowhere() -> None:
    model = CSNN(5, 4, 3, 2, learner="sage-projected", orthogonal="identity", scale="unit")
    assert halo_hops(model) == 6


class Own(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels)

    def forward(self, x, edge_index):
        return self.linear(x)


class Declared(Own):
    hops = 0


def test_a_learner_of_ones_own_says_how_far_it_looks() -> None:
    assert halo_hops(CSNN(5, 4, 1, 2, learner=Declared)) == 2
    with pytest.raises(ValueError, match="give Own an attribute `hops`"):
        halo_hops(CSNN(5, 4, 1, 2, learner=Own))


class Farther(CSNN):
    def embed(self, x, graph, **options):
        return super().embed(x, graph, **options).mean(0, keepdim=True).expand(x.shape[0], -1)


def test_a_subclass_may_look_further_than_its_parent() -> None:
    with pytest.raises(ValueError, match="got Farther with layers that may look further"):
        halo_hops(Farther(5, 4, 1, 2))


def test_networks_without_a_halo_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`model` must be a CSNN for its halo to be known; got PlainMLP"
    ):
        halo_hops(PlainMLP(5, 4, 2, 2))
    with pytest.raises(ValueError, match="a LayerNorm in them averages over all nodes"):
        halo_hops(CSNN(5, 4, 1, 2, learner=GraphNormSAGELearner(4, 2)))


@pytest.mark.parametrize("name", [*ODD_GRAPHS, *SPARSE])
def test_the_halo_gives_exact_outputs_with_features_of_edges(name: str) -> None:
    """Edges out of a node are no part of its halo, and yet its learners see their mean."""
    n, edges = {**ODD_GRAPHS, **SPARSE}[name]
    torch.manual_seed(0)
    model = CSNN(5, 4, 1, 2, stalk_dim=2, edge_channels=2).double().eval()
    graph, x, attr = Graph(edges, n), randn(n, 5), randn(edges.shape[1], 2, seed=1)
    nodes = torch.randperm(n, generator=generator(2))[: max(1, n // 12)]
    with torch.no_grad():
        whole = model(x, graph, edge_attr=attr)
        got = forward_at(model, x, graph, nodes, edge_attr=attr)
    assert_close(got, whole[nodes], rtol=0, atol=1e-10)
