"""Explanations: derivatives they claim to be, parts that add up, for every network there is."""

from __future__ import annotations

import time

import pytest
import torch
from analysis.networks import binary_tree, csnn, ring, with_known_maps
from graphs import bidirected, randn
from models.test_all import EACH_MODEL, EDGES, F_IN, GRAPHS, OUT, N, build
from torch.testing import assert_close

from coopsheaf import CSNN, Graph
from coopsheaf.analysis import explain_node, frozen_maps, influence, read_actions
from coopsheaf.models.registry import MODELS
from coopsheaf.nn import ProjectedSAGELearner
from coopsheaf.train.build import Rescaled

X = randn(N, F_IN, seed=2)
NODE = 4


# Every network.


@EACH_MODEL
def test_attribution_is_the_change_towards_the_baseline(name: str) -> None:
    """A small step of node j towards the baseline lowers the score by that share of a_j."""
    model = with_known_maps(build(name), X, EDGES)
    got = explain_node(model, X, EDGES, NODE)
    assert got.value == pytest.approx(float(got.score.of(model(X, EDGES)).detach()), rel=1e-12)
    step = 1e-6
    fall = []
    for j in range(N):
        ends = []
        for sign in (-1, 1):
            x = X.clone()
            x[j] += sign * step * (got.baseline - X[j])
            ends.append(float(got.score.of(model(x, EDGES)).detach()))
        fall.append((ends[0] - ends[1]) / (2 * step))
    assert_close(got.attribution, torch.tensor(fall).double(), rtol=1e-5, atol=1e-8)


@EACH_MODEL
def test_parts_add_up_where_maps_are_learned(name: str) -> None:
    model = build(name)
    got = explain_node(model, X, EDGES, NODE)
    learns = any(True for m in model.map_learners() for _ in m.parameters())
    assert (got.diffusion is not None) == (got.learners is not None) == learns
    assert ("diffusion" in got.header) == learns
    if not learns:
        return
    assert_close(got.diffusion + got.learners, got.attribution, rtol=1e-10, atol=1e-14)
    with frozen_maps(model):
        held = explain_node(model, X, EDGES, NODE)
    assert torch.equal(held.attribution, got.diffusion)
    assert torch.equal(held.influence, got.influence_diffusion)
    assert (held.learners == 0).all()
    triangle = got.influence_diffusion + got.influence_learners
    assert (got.influence <= triangle + 1e-12).all()


@EACH_MODEL
@pytest.mark.parametrize("graph", GRAPHS)
def test_odd_graphs_are_explained(name: str, graph: str) -> None:
    n, edges = GRAPHS[graph]
    got = explain_node(build(name, n), randn(n, F_IN), edges, n - 1)
    assert got.attribution.shape == got.influence.shape == got.distance.shape == (n,)
    assert got.attribution.isfinite().all()
    assert all(len(row) == len(got.header) for row in got.rows())
    assert (got.flow is not None) == (name.startswith("csnn") or name == "cognn")
    # Nothing comes from where the network cannot hear.
    alone = n == 1 and name in (
        "pairnorm",
        "mixhop",
    )  # one node is its own mean: nothing is left of it
    assert (got.influence[n - 1] > 0) or name == "cognn" or alone


@pytest.mark.parametrize("name", [name for name in MODELS if build(name).takes_edge_weight])
def test_edges_are_derivatives_by_their_weights(name: str) -> None:
    """Both directions of an edge at once, since some networks want them to have one weight."""
    model, graph = build(name), Graph(EDGES, N)
    back = graph.partners()
    weight = 0.5 + torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(3)).double()
    weight = (weight + weight[back]) / 2
    got = explain_node(model, X, graph, NODE, edge_weight=weight)
    for e in range(0, graph.num_edges, 5):
        both = [e, int(back[e])]
        ends = []
        for sign in (-1, 1):
            other = weight.clone()
            other[both] *= 1 + sign * 1e-6
            ends.append(float(got.score.of(model(X, graph, edge_weight=other)).detach()))
        change = (ends[1] - ends[0]) / 2e-6
        found = float(got.edge_attribution[both].sum())
        assert found == pytest.approx(change, rel=1e-5, abs=1e-8)


def test_networks_without_edge_weights_have_no_attribution_of_edges() -> None:
    model = next(build(name) for name in MODELS if not build(name).takes_edge_weight)
    assert explain_node(model, X, EDGES, NODE).edge_attribution is None


# What is explained.


def test_influence_is_the_norm_of_the_jacobian_of_one_output() -> None:
    model = csnn(out_channels=1)
    got = explain_node(model, X, EDGES, NODE)
    want = influence(model, X, EDGES, targets=NODE).norms[0]
    assert_close(got.influence, want, rtol=1e-10, atol=1e-14)
    assert (got.score.output, got.score.against) == (0, None)


def test_the_margin_is_that_of_the_predicted_class_over_the_next() -> None:
    model = csnn()
    got = explain_node(model, X, EDGES, NODE)
    row = model(X, EDGES)[NODE].detach()
    first, second = row.topk(2).indices.tolist()
    assert (got.score.output, got.score.against) == (first, second)
    assert got.value == pytest.approx(float(row[first] - row[second]))
    assert_close(got.outputs, row)
    alone = explain_node(model, X, EDGES, NODE, output=second, margin=False)
    assert alone.score.against is None
    other = explain_node(model, X, EDGES, NODE, output=second, against=first)
    assert_close(other.attribution, -got.attribution)
    parts = [
        explain_node(model, X, EDGES, NODE, output=k, margin=False).attribution
        for k in (first, second)
    ]
    assert_close(parts[0] - parts[1], got.attribution)


def test_scores_in_words() -> None:
    got = explain_node(csnn(), X, EDGES, NODE, output=2, against=0).score
    assert got.text() == "output 2 over output 0"
    assert got.text(("cat", "dog", "bird")) == "bird over cat"
    assert (
        explain_node(csnn(), X, EDGES, NODE, output=1, margin=False).score.text(("a",))
        == "output 1"
    )


def test_regressions_are_explained_in_their_units() -> None:
    model = csnn(out_channels=1)
    outer = Rescaled(model, 1).double()
    outer.fit(torch.tensor([10.0, 14, 30]))
    inner, got = explain_node(model, X, EDGES, NODE), explain_node(outer, X, EDGES, NODE)
    scale = float(outer.get_buffer("scale"))
    assert_close(got.attribution, scale * inner.attribution)
    assert_close(got.diffusion, scale * inner.diffusion)
    assert torch.equal(got.flow, inner.flow)
    assert got.paths == inner.paths


def test_the_baseline_is_the_mean_or_what_is_given() -> None:
    model = csnn()
    assert_close(explain_node(model, X, EDGES, NODE).baseline, X.mean(0))
    own = explain_node(model, X, EDGES, NODE, baseline=X[3])
    assert own.attribution[3] == 0
    nothing = explain_node(model, X, EDGES, NODE, baseline=torch.zeros(F_IN).double())
    assert not torch.allclose(nothing.attribution, own.attribution)


# Who brings what.


def test_leaves_that_reach_the_root_through_learners_alone_are_found() -> None:
    """As released: edges child → parent, gathered at the child; diffusion moves to the leaves."""
    edges = torch.cat([binary_tree(2), torch.arange(7).repeat(2, 1)], dim=1)
    model = csnn(num_layers=3, learner=ProjectedSAGELearner(8, 3), semantics="released")
    got = explain_node(model, randn(7, F_IN, seed=4), edges, 0)
    leaves = [3, 4, 5, 6]
    assert (got.diffusion[leaves] == 0).all()
    assert (got.learners[leaves] != 0).all()
    assert got.distance.tolist() == [0, -1, -1, -1, -1, -1, -1]  # the diffusion has no way
    assert got.paths == ()
    assert got.rows(7)[1][1] == "–"
    assert torch.equal(got.edges, edges.flip(0))


def test_paths_lead_from_the_nodes_that_matter() -> None:
    model, edges = csnn(), ring(20)
    got = explain_node(model, randn(20, F_IN), edges, 0, top=5)
    others = [j for j in got.top(6) if j != 0]
    assert {p.nodes[0] for p in got.paths} == set(others[:5])
    assert all(p.nodes[-1] == 0 and len(p.layers) <= 4 for p in got.paths)
    strengths = [p.strength for p in got.paths]
    assert strengths == sorted(strengths, reverse=True)
    near = explain_node(model, randn(20, F_IN), edges, 0, top=20, max_hops=1)
    assert {p.nodes[0] for p in near.paths} == {1, 19}


def test_flows_are_those_of_the_actions() -> None:
    model = csnn()
    report = read_actions(model, X, EDGES)
    got = explain_node(model, X, EDGES, NODE)
    assert torch.equal(got.flow, torch.stack([layer.flow for layer in report.layers]))


def test_top_nodes_and_their_rows() -> None:
    got = explain_node(csnn(), X, EDGES, NODE)
    sizes = got.attribution.abs()
    top = got.top(4)
    assert sizes[top].tolist() == sizes.sort(descending=True).values[:4].tolist()
    rows = got.rows(4, names=[f"v{k}" for k in range(N)])
    assert [row[0] for row in rows] == [f"v{k}" for k in top]
    assert [float(row[2]) for row in rows] == pytest.approx(got.attribution[top].tolist(), rel=1e-3)
    alone = explain_node(build("mlp"), X, EDGES, NODE)
    assert alone.top() == [NODE]  # nodes without any part are left out


# CO-GNN.


def test_cognn_that_samples_is_explained_with_one_draw() -> None:
    model = build("cognn", evaluation="sample")
    state = torch.get_rng_state()
    one, two = (explain_node(model, X, EDGES, NODE) for _ in range(2))
    assert torch.equal(one.attribution, two.attribution)
    assert one.diffusion is None
    assert model.sampler.evaluation == "sample"
    assert torch.equal(torch.get_rng_state(), state)


# At the edge.


def test_explaining_changes_nothing() -> None:
    model = csnn(dropout=0.9, learner="sage-projected").train()
    one, two = (explain_node(model, X, EDGES, NODE) for _ in range(2))
    assert torch.equal(one.attribution, two.attribution)
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not one.attribution.requires_grad


def test_it_works_without_gradients_around_it() -> None:
    with torch.no_grad():
        got = explain_node(csnn(), X, EDGES, NODE)
    assert got.attribution.abs().sum() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node": N}, f"`node` must hold indices of the {N} nodes"),
        ({"node": -1}, "`node` must be an integer of at least 0; got -1"),
        ({"node": 0.5}, "`node` must be an integer of at least 0; got 0.5"),
        ({"output": OUT}, "`output` must hold indices of the 3 outputs"),
        ({"output": 1, "against": 1}, "`against` must be another class to compare with; got 1"),
        ({"against": 1, "margin": False}, "`against` must be another class .* got margin=False"),
        ({"baseline": torch.zeros(2).double()}, r"`baseline` must have shape \(F,\) with F = 5"),
        ({"top": 0}, "`top` must be an integer of at least 1"),
        ({"max_hops": 0}, "`max_hops` must be an integer of at least 1"),
    ],
)
def test_arguments_are_checked(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explain_node(csnn(), X, EDGES, **({"node": NODE} | options))


def test_networks_for_whole_graphs_are_refused() -> None:
    model = build("csnn", graph_level=True)
    with pytest.raises(ValueError, match="`model` must have node outputs to explain a node"):
        explain_node(model, X, EDGES, 0)


def test_ten_thousand_nodes_take_seconds() -> None:
    torch.manual_seed(0)
    n = 10_000
    edges = bidirected(torch.randint(0, n, (2, 40_000), generator=torch.Generator().manual_seed(0)))
    model = CSNN(7, 8, 3, 2, stalk_dim=3)
    started = time.perf_counter()
    got = explain_node(model, randn(n, 7).float(), edges, 0)
    assert time.perf_counter() - started < 20  # a second or two on an idle core
    assert len(got.paths) == 10
