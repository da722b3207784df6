"""Attributions of columns agree with what happens when columns are muted."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from analysis.cooperation import maps_of, scaled
from analysis.networks import build, csnn
from graphs import randn
from models.test_all import EDGES, F_IN, N
from published import REAL_DATA, needs_real_data
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis import (
    ColumnCheck,
    Columns,
    check_columns,
    explain_node,
    mute_columns,
    rank_correlation,
)
from coopsheaf.data import load_dataset, load_tables
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.fraud import fraud_tables
from coopsheaf.models.registry import make_settings
from coopsheaf.train import train
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import Run, run_split

X = randn(N, F_IN, seed=2)
PAIRS = Columns(("a", "b", "c"), torch.tensor([0, 1, 1, 2, 0]))


def checks(run: Run, dataset: NodeDataset, nodes: list[int]) -> list[ColumnCheck]:
    columns, graph = Columns.of_run(run), Graph(dataset.edge_index, dataset.num_nodes)
    found = []
    for node in nodes:
        why = explain_node(run.model, dataset.x, graph, node, columns=columns)
        found.append(check_columns(run.model, dataset.x, graph, why))
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@needs_real_data
def test_muting_on_texas() -> None:
    """The recipe of the paper's table, split 0; the first twenty test nodes."""
    run = train("texas", data_dir=REAL_DATA)
    dataset = load_dataset("texas", REAL_DATA, **run.info["processing"])
    assert isinstance(dataset, NodeDataset)
    found = checks(run, dataset, dataset.test[0].nonzero().flatten()[:20].tolist())
    for part in ("own", "neighbours"):
        values = [getattr(check, part).muting for check in found]
        assert mean(values) > 0.99, part
        assert min(values) > 0.95, part
    assert min(check.muting for check in found) > 0.95


def test_muting_on_accounts_and_transfers(tmp_path: Path) -> None:
    """The network of the example; ten test accounts that are fraudulent, ten of all."""
    data = load_tables(
        *fraud_tables().write(tmp_path),
        target="fraud",
        id="account",
        undirected=True,
        self_loops="remove",
        duplicates="merge",
    )
    model = make_settings("csnn", num_layers=2, hidden_channels=16, stalk_dim=2, dropout=0.2)
    recipe = Recipe("csnn", model, train=TrainConfig(lr=0.02, epochs=40, seed=0))
    dataset = data.dataset
    run, result = run_split(recipe, dataset, extra=data.kept)
    assert result.scores["test"] > 0.95
    test = dataset.test[0].nonzero().flatten()
    nodes = [*test[dataset.y[test] == 1][:10].tolist(), *test[:10].tolist()]
    found = checks(run, dataset, nodes)
    assert mean([check.muting for check in found]) >= 0.9
    assert mean([check.own.muting for check in found]) >= 0.9
    heard = [check.neighbours.muting for check in found if len(check.neighbours.columns) > 1]
    assert mean(heard) >= 0.9
    # The check can fail: the explanation of another account does not fit.
    columns = Columns.of_run(run)
    wrong = []
    for check, node in zip(found[:5], nodes[10:15], strict=True):
        other = explain_node(run.model, dataset.x, dataset.edge_index, node, columns=columns)
        wrong.append(rank_correlation(other.columns.own[check.own.columns], check.own.muted))
    assert mean(wrong) < 0.6


def test_for_a_linear_network_muting_is_exactly_the_attribution() -> None:
    model = scaled(maps_of([0.5] * N).scale, [0.8] * N, act=None)
    for node in range(N):
        why = explain_node(model, X, EDGES, node, columns=PAIRS)
        check = check_columns(model, X, EDGES, why)
        for part in (check.own, check.neighbours):
            assert_close(part.muted, part.attribution, rtol=1e-9, atol=1e-12)
        assert check.own.muting == pytest.approx(1)


def test_muting_does_what_it_says() -> None:
    model, node = build("csnn"), 4
    why = explain_node(model, X, EDGES, node, columns=PAIRS)
    for part in ("own", "neighbours"):
        got = mute_columns(model, X, EDGES, why, part, [2, 1])
        for value, features in zip(got.tolist(), ([3], [1, 2]), strict=True):
            x = X.clone()
            for j in [node] if part == "own" else [j for j in range(N) if j != node]:
                for p in features:
                    x[j, p] = X[:, p].mean()
            fall = why.value - float(why.score.of(model(x, EDGES)).detach())
            assert value == pytest.approx(fall, abs=1e-12)


def test_which_columns_are_muted() -> None:
    model, x = csnn(), X
    why = explain_node(model, x, EDGES, 4)
    check = check_columns(model, x, EDGES, why, top=2, sample=2)
    assert check.own.columns[:2].tolist() == why.columns.top("own", 2)
    assert len(set(check.neighbours.columns.tolist())) == 4
    again = check_columns(model, x, EDGES, why, top=2, sample=2)
    assert torch.equal(again.neighbours.columns, check.neighbours.columns)
    assert torch.equal(again.own.muted, check.own.muted)
    assert len(check_columns(model, x, EDGES, why, top=3, sample=0).own.columns) == 3
    # A column that is the same everywhere says nothing, and is not asked.
    x = X.clone()
    x[:, 1] = 0
    why = explain_node(model, x, EDGES, 4)
    assert 1 not in check_columns(model, x, EDGES, why).own.columns.tolist()


def test_a_lonely_node_has_columns_of_its_own_alone() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    model = build("csnn")
    why = explain_node(model, X, edges, 4)
    check = check_columns(model, X, edges, why)
    assert len(check.neighbours.columns) == 0
    assert math.isnan(check.neighbours.muting)
    assert check.muting == check.own.muting


def test_cognn_that_samples_is_checked_with_the_draw_that_was_explained() -> None:
    model = build("cognn", evaluation="sample")
    why = explain_node(model, X, EDGES, 4)
    first = check_columns(model, X, EDGES, why)
    assert torch.equal(check_columns(model, X, EDGES, why).own.muted, first.own.muted)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"top": 0}, "`top`"), ({"sample": -1}, "`sample`"), ({"seed": -1}, "`seed`")],
)
def test_numbers_are_checked(options: dict, message: str) -> None:
    model = build("csnn")
    with pytest.raises(ValueError, match=message + " must be an integer of at least"):
        check_columns(model, X, EDGES, explain_node(model, X, EDGES, 0), **options)


def test_what_does_not_belong_together_is_refused() -> None:
    model = build("csnn")
    why = explain_node(model, X[:3], torch.tensor([[0], [1]]), 0)
    with pytest.raises(ValueError, match="`explanation` must belong to this graph of 9 nodes"):
        check_columns(model, X, EDGES, why)
    why = explain_node(model, X, EDGES, 0)
    with pytest.raises(ValueError, match=r"`columns` must hold indices of the 5 columns"):
        mute_columns(model, X, EDGES, why, "own", [5])
    with pytest.raises(ValueError, match="`part` must be one of"):
        mute_columns(model, X, EDGES, why, "all", [0])
