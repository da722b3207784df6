"""Explanations agree with what happens when nodes are muted and edges cut."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from analysis.cooperation import maps_of, scaled
from analysis.networks import build
from graphs import bidirected, randn
from hypothesis import given
from hypothesis import strategies as st
from models.test_all import EDGES, F_IN, N
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import CSNN
from coopsheaf.analysis import check_explanation, explain_node, rank_correlation

X = randn(N, F_IN, seed=2)


# A network that has learned something.


def neighbours_task(n: int = 120) -> tuple[Tensor, Tensor, Tensor]:
    """Whether the first feature of a node's neighbours is positive on average."""
    generator = torch.Generator().manual_seed(1)
    edges = bidirected(torch.randint(0, n, (2, 2 * n), generator=generator))
    edges = edges[:, edges[0] != edges[1]]
    x = randn(n, 4, seed=5)
    heard = torch.zeros(n).double().index_add(0, edges[1], x[edges[0], 0])
    return x, edges, (heard > 0).long()


@pytest.fixture(scope="module")
def trained() -> tuple[CSNN, Tensor, Tensor]:
    x, edges, y = neighbours_task()
    torch.manual_seed(0)
    model = CSNN(4, 6, 2, 2, stalk_dim=2).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.03)
    for _ in range(80):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges), y)
        loss.backward()
        optimizer.step()
    assert float((model(x, edges).argmax(1) == y).double().mean()) > 0.9
    return model.eval(), x, edges


def test_a_trained_network_is_explained_as_it_behaves(trained: tuple) -> None:
    model, x, edges = trained
    found = []
    for node in range(0, 120, 20):
        explanation = explain_node(model, x, edges, node)
        found.append(check_explanation(model, x, edges, explanation, top=8, sample=12))
    for name, least, mean in (
        ("muting", 0.6, 0.9),
        ("muting_size", 0.9, 0.95),
        ("cutting", 0.6, 0.85),
        ("cutting_size", 0.6, 0.8),
    ):
        values = [getattr(check, name) for check in found]
        assert min(values) > least, name
        assert sum(values) / len(values) > mean, name


def test_other_nodes_explanations_do_not_fit(trained: tuple) -> None:
    """The check can fail: what explains one node says little of another."""
    model, x, edges = trained
    mine, other = (explain_node(model, x, edges, node) for node in (0, 60))
    right = check_explanation(model, x, edges, mine, top=10, sample=15)
    wrong = rank_correlation(other.attribution[right.nodes], right.muted)
    assert right.muting > 0.8
    assert wrong < 0.5


def test_the_neighbours_are_what_matters(trained: tuple) -> None:
    model, x, edges = trained
    near, far = [], []
    for node in range(0, 120, 10):
        got = explain_node(model, x, edges, node)
        near.append(float(got.attribution[got.distance == 1].abs().mean()))
        far.append(float(got.attribution[got.distance > 2].abs().mean()))
    assert sum(near) > 5 * sum(far)


# A network of which everything is known.


def test_for_a_linear_network_muting_is_exactly_the_attribution() -> None:
    model = scaled(maps_of([0.5] * N).scale, [0.8] * N, act=None)
    for node in range(N):
        explanation = explain_node(model, X, EDGES, node)
        check = check_explanation(model, X, EDGES, explanation, top=N)
        assert_close(check.muted, check.attribution, rtol=1e-9, atol=1e-12)
        if len(check.nodes) > 2:
            assert check.muting == check.muting_size == 1


def test_muting_and_cutting_do_what_they_say() -> None:
    model, edges = build("csnn"), torch.cat([EDGES, torch.tensor([[4, 2], [4, 2]])], dim=1)
    weight = torch.linspace(0.5, 1.5, edges.shape[1]).double()
    explanation = explain_node(model, X, edges, 4, edge_weight=weight)
    check = check_explanation(model, X, edges, explanation, top=N, edge_weight=weight)
    for k, j in enumerate(check.nodes.tolist()):
        x = X.clone()
        x[j] = X.mean(0)
        muted = explanation.score.of(model(x, edges, edge_weight=weight))
        keep = (edges != j).all(0)
        cut = explanation.score.of(model(X, edges[:, keep], edge_weight=weight[keep]))
        assert float(check.muted[k]) == pytest.approx(explanation.value - float(muted.detach()))
        assert float(check.cut[k]) == pytest.approx(explanation.value - float(cut.detach()))
        at_node = explanation.edge_attribution[~keep].sum()
        assert float(check.edge_attribution[k]) == pytest.approx(float(at_node))


def test_which_nodes_are_tried() -> None:
    model = build("csnn")
    explanation = explain_node(model, X, EDGES, 4)
    check = check_explanation(model, X, EDGES, explanation, top=3, sample=2)
    assert check.nodes[:3].tolist() == explanation.top(3)
    assert len(set(check.nodes.tolist())) == 5
    assert (explanation.influence[check.nodes] > 0).all()
    again = check_explanation(model, X, EDGES, explanation, top=3, sample=2)
    assert torch.equal(again.nodes, check.nodes)
    assert len(check_explanation(model, X, EDGES, explanation, top=3, sample=0).nodes) == 3


def test_networks_without_edge_weights_are_checked_too() -> None:
    model = build("gat")
    explanation = explain_node(model, X, EDGES, 4)
    check = check_explanation(model, X, EDGES, explanation, top=N)
    assert check.edge_attribution is None
    assert math.isnan(check.cutting)
    assert check.cutting_size > 0


def test_cognn_that_samples_is_checked_with_the_draw_that_was_explained() -> None:
    model = build("cognn", evaluation="sample")
    explanation = explain_node(model, X, EDGES, 4)
    check = check_explanation(model, X, EDGES, explanation, top=1, sample=0)
    again = check_explanation(model, X, EDGES, explanation, top=1, sample=0)
    assert torch.equal(check.muted, again.muted)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"top": 0}, "`top`"), ({"sample": -1}, "`sample`"), ({"seed": -1}, "`seed`")],
)
def test_numbers_are_checked(options: dict, message: str) -> None:
    model = build("csnn")
    with pytest.raises(ValueError, match=message + " must be an integer of at least"):
        check_explanation(model, X, EDGES, explain_node(model, X, EDGES, 0), **options)


def test_an_explanation_of_another_graph_is_refused() -> None:
    model = build("csnn")
    explanation = explain_node(model, X[:3], torch.tensor([[0], [1]]), 0)
    with pytest.raises(ValueError, match="`explanation` must belong to this graph of 9 nodes"):
        check_explanation(model, X, EDGES, explanation)


# Rank correlation.


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ([1, 2, 3], [10, 20, 99], 1),
        ([1, 2, 3], [9, 4, 1], -1),
        ([1, 2, 3, 4], [2, 1, 4, 3], 0.6),  # 1 - 6 Σd² / (n (n² - 1)) = 1 - 24/60
        ([1, 2, 2, 3], [1, 2, 3, 4], math.sqrt(0.9)),  # ranks 1, 2.5, 2.5, 4: 4.5 / √(4.5 · 5)
        ([5, 5, 5], [1, 2, 3], math.nan),
        ([1], [1], math.nan),
        ([], [], math.nan),
    ],
)
def test_rank_correlation_by_hand(a: list, b: list, want: float) -> None:
    got = rank_correlation(torch.tensor(a).double(), torch.tensor(b).double())
    assert got == pytest.approx(want, nan_ok=True)


@given(values=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12))
def test_rank_correlation_knows_only_order(values: list) -> None:
    a, b = torch.tensor(values).double().T
    got = rank_correlation(a, b)
    assert rank_correlation(b, a) == pytest.approx(got, nan_ok=True)
    assert rank_correlation(a.exp(), 3 * b - 1) == pytest.approx(got, nan_ok=True)
    assert rank_correlation(-a, b) == pytest.approx(-got, nan_ok=True)
    assert math.isnan(got) or abs(got) <= 1 + 1e-12


def test_rank_correlation_needs_pairs() -> None:
    with pytest.raises(ValueError, match=r"`a` and `b` must have one shape \(k,\)"):
        rank_correlation(torch.zeros(2), torch.zeros(3))
