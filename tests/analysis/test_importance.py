"""Importance of columns: what a permutation does to the score, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from analysis.planted import planted_tables, trained
from pages.explorer.pages import train
from train.small import graph_dataset, node_dataset, recipe, with_edge_features

from coopsheaf.analysis import Columns, column_importance
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train.run import Run, run_split


@pytest.fixture(scope="module")
def numbers() -> tuple[Run, NodeDataset]:
    data = node_dataset()
    return train(data, epochs=12), data


def test_it_is_the_drop_of_the_score_under_a_permutation(numbers: tuple) -> None:
    run, data = numbers
    found = column_importance(run, data, 0, part="test", repeats=3, seed=7)
    test, generator = data.test[0], torch.Generator().manual_seed(7)
    orders = [torch.randperm(40, generator=generator) for _ in range(3)]
    for column in range(5):
        for number, order in enumerate(orders):
            x = data.x.clone()
            x[:, column] = x[order, column]
            out = run.model(x, data.edge_index).detach()
            score = float((out[test].argmax(1) == data.y[test]).double().mean())
            assert float(found.drops[column, number]) == pytest.approx(found.score - score)
    whole = run.model(data.x, data.edge_index).detach()
    assert found.score == pytest.approx(run.task.score(whole[test], data.y[test]))
    assert torch.allclose(found.mean, found.drops.mean(1))
    assert torch.allclose(found.spread, found.drops.var(1, unbiased=False).sqrt())


def test_features_of_one_column_move_together() -> None:
    """A category stays a category: every row of its features is one that was there before."""
    data = planted_tables(0, words=True)
    run = trained(data, epochs=1)
    here = Columns.of_run(run).features(list(data.schema.encoder.names).index("planted"))
    seen = []
    run.model.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    column_importance(run, data.dataset, columns=["planted"], repeats=2)
    before = data.dataset.x
    for x in seen[-2:]:
        assert not torch.equal(x, before)
        rest = torch.ones(x.shape[1], dtype=torch.bool)
        rest[here] = False
        assert torch.equal(x[:, rest], before[:, rest])
        assert (x[:, here].sum(1) == 1).all()
        assert torch.equal(x[:, here].sum(0), before[:, here].sum(0))


def test_what_is_told(numbers: tuple) -> None:
    run, data = numbers
    found = column_importance(run, data, repeats=2)
    assert (found.part, found.metric, found.drops.shape) == ("val", "accuracy", (5, 2))
    assert found.header == ["column", "drop of accuracy", "±"]
    rows = found.rows()
    assert sorted(row[0] for row in rows) == [f"x[{k}]" for k in range(5)]
    drops = [float(row[1]) for row in rows]
    assert drops == sorted(drops, reverse=True)
    assert found.rows(2) == rows[:2]
    some = column_importance(run, data, columns=["x[3]", "x[0]"], repeats=2)
    assert some.names == ("x[3]", "x[0]")
    assert torch.equal(some.drops, found.drops[[3, 0]])
    again = column_importance(run, data, repeats=2)
    assert torch.equal(again.drops, found.drops)
    assert not torch.equal(column_importance(run, data, repeats=2, seed=1).drops, found.drops)
    steps: list[tuple[int, int]] = []
    column_importance(run, data, repeats=1, report=lambda *state: steps.append(state))
    assert steps == [(k, 5) for k in range(1, 6)]


def test_lower_is_better_for_errors() -> None:
    """Without the columns that the target is made of the error grows, and that is a drop."""
    data = node_dataset(task="regression")
    run = train(data, epochs=60)
    found = column_importance(run, data, part="all", repeats=5)
    assert found.metric == "mae"
    assert float(found.mean.sum()) > 0
    assert float(found.mean.max()) > 0.1


def test_parts_and_unknown_labels(numbers: tuple) -> None:
    run, data = numbers
    y = data.y.clone()
    y[data.val[0]] = -1
    gaps = replace(data, y=y)
    known = column_importance(run, gaps, part="all", repeats=1)
    rest = ~data.val[0]
    whole = run.model(data.x, data.edge_index).detach()
    assert known.score == pytest.approx(run.task.score(whole[rest], data.y[rest]))
    with pytest.raises(ValueError, match=r"there must be labelled nodes to score; the val .*'all'"):
        column_importance(run, gaps)


def test_edge_features_and_other_networks() -> None:
    data = with_edge_features(node_dataset())
    run = run_split(recipe(epochs=2), data)[0]
    assert column_importance(run, data, repeats=1).drops.shape == (5, 1)
    data = node_dataset()
    assert column_importance(train(data, "gcn-plain"), data, repeats=1).drops.shape == (5, 1)


def test_mistakes(numbers: tuple) -> None:
    run, data = numbers
    for options, message in (
        ({"part": "tests"}, "`part` must be one of 'train', 'val', 'test', 'all'; got 'tests'"),
        ({"repeats": 0}, "`repeats` must be an integer of at least 1; got 0"),
        ({"seed": -1}, "`seed` must be an integer of at least 0"),
        ({"columns": ["age"]}, "`columns` must be names of columns"),
        ({"split": 2}, "`split` must be between 0 and 1 for small; got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            column_importance(run, data, **options)
    one = replace(data, y=torch.zeros_like(data.y), task="binary", metric="auroc")
    binary = train(node_dataset(task="binary"))
    with pytest.raises(ValueError, match="the AUROC must be defined on the val nodes"):
        column_importance(binary, one)
    graphs = graph_dataset()
    with pytest.raises(ValueError, match="`run` must predict nodes"):
        column_importance(run_split(recipe(epochs=1), graphs)[0])
