"""Attributions of columns: the derivatives they claim to be, parts that add up, what was planted."""

from __future__ import annotations

import pytest
import torch
from analysis.networks import csnn, with_known_maps
from analysis.planted import NAMES, planted_tables, trained
from graphs import randn
from models.test_all import EACH_MODEL, EDGES, F_IN, N, build
from torch.testing import assert_close

from coopsheaf.analysis import Columns, column_importance, explain_node, frozen_maps

X = randn(N, F_IN, seed=2)
NODE = 4
PAIRS = Columns(("a", "b", "c"), torch.tensor([0, 1, 1, 2, 0]))


@EACH_MODEL
def test_an_attribution_is_the_change_towards_the_baseline(name: str) -> None:
    """A small step of one column towards the baseline lowers the score by that share of it."""
    model = with_known_maps(build(name), X, EDGES)
    why = explain_node(model, X, EDGES, NODE, columns=PAIRS)
    step, found = 1e-6, why.columns
    others = torch.arange(N) != NODE
    for part, where in (("own", ~others), ("neighbours", others)):
        fall = []
        for column in range(len(PAIRS)):
            cells = where[:, None] & (PAIRS.place == column)
            ends = []
            for sign in (-1, 1):
                x = torch.where(cells, X + sign * step * (why.baseline - X), X)
                ends.append(float(why.score.of(model(x, EDGES)).detach()))
            fall.append((ends[0] - ends[1]) / (2 * step))
        assert_close(found.part(part), torch.tensor(fall).double(), rtol=1e-5, atol=1e-8)


@EACH_MODEL
def test_columns_are_the_attributions_of_nodes_told_apart(name: str) -> None:
    why = explain_node(build(name), X, EDGES, NODE, columns=PAIRS)
    columns = why.columns
    assert columns.cells.shape == (N, 3)
    assert_close(columns.cells.sum(1), why.attribution)
    assert_close(columns.own + columns.neighbours, columns.cells.sum(0))
    assert torch.equal(columns.own, columns.cells[NODE])
    if why.diffusion is None:
        assert columns.diffusion("own") is columns.learners("own") is None
        assert columns.header == ["column", "attribution"]
        return
    assert_close(columns.diffusion_cells.sum(1), why.diffusion)
    for part in ("own", "neighbours"):
        assert_close(columns.diffusion(part) + columns.learners(part), columns.part(part))


def test_learners_are_what_is_gone_when_maps_are_held() -> None:
    model = csnn()
    columns = explain_node(model, X, EDGES, NODE).columns
    with frozen_maps(model):
        held = explain_node(model, X, EDGES, NODE).columns
    for part in ("own", "neighbours"):
        assert torch.equal(held.part(part), columns.diffusion(part))
        assert (columns.learners(part).abs() > 1e-6).any()


def test_a_column_beyond_reach_has_nothing() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])  # all others are alone
    columns = explain_node(build("csnn"), X, edges, NODE).columns
    assert (columns.neighbours == 0).all()
    assert columns.top("neighbours") == columns.rows("neighbours") == []
    assert (columns.own != 0).all()


def test_rows_begin_with_the_largest() -> None:
    columns = explain_node(csnn(), X, EDGES, NODE, columns=PAIRS).columns
    size = columns.own.abs()
    order = size.argsort(descending=True).tolist()
    assert columns.top() == order
    assert columns.top(count=2) == order[:2]
    rows = columns.rows()
    assert columns.header == ["column", "attribution", "diffusion", "learners"]
    assert [row[0] for row in rows] == [PAIRS.names[c] for c in order]
    assert float(rows[0][1]) == pytest.approx(float(columns.own[order[0]]), rel=1e-3)
    assert float(rows[0][2]) + float(rows[0][3]) == pytest.approx(float(rows[0][1]), abs=1e-3)


def test_another_baseline() -> None:
    model, baseline = csnn(), torch.linspace(-1, 1, F_IN).double()
    why = explain_node(model, X, EDGES, NODE, baseline=baseline)
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(why.score.of(model(x, EDGES)), x)
    assert_close(why.columns.cells, gradient * (X - baseline))


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="`columns` must be those of the 5 features of `x`"):
        explain_node(csnn(), X, EDGES, NODE, columns=Columns.each(4))
    with pytest.raises(ValueError, match="`part` must be one of 'own', 'neighbours'; got 'mine'"):
        explain_node(csnn(), X, EDGES, NODE).columns.part("mine")


@pytest.mark.thorough
@pytest.mark.parametrize("words", [False, True], ids=["number", "category"])
@pytest.mark.parametrize("at", ["own", "neighbours"])
def test_a_planted_column_is_found_first(at: str, words: bool) -> None:
    """In at least 19 of 20 seeds, by permutation and by the mean size over twenty test nodes."""
    shuffled = explained = 0
    for seed in range(20):
        data = planted_tables(seed, at=at, words=words)
        run, dataset = trained(data, seed=seed), data.dataset
        columns = Columns.of_run(run)
        assert sorted(columns.names) == sorted(NAMES)
        importance = column_importance(run, dataset, part="test", repeats=3)
        shuffled += importance.rows(1)[0][0] == "planted"
        size = torch.zeros(len(columns), dtype=torch.float64)
        for node in dataset.test[0].nonzero().flatten()[:20].tolist():
            why = explain_node(run.model, dataset.x, dataset.edge_index, node, columns=columns)
            size += why.columns.part(at).abs()
        explained += columns.names[int(size.argmax())] == "planted"
    assert shuffled >= 19
    assert explained >= 19
