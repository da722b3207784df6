"""Why nodes got their predictions, as it stands on the page."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from analysis.planted import planted_tables, trained
from pages.explorer.pages import array, data_of, train
from train.small import node_dataset

from coopsheaf.analysis import check_columns, column_importance, explain_prediction
from coopsheaf.pages.explorer import explore


def test_columns_are_those_of_the_tables_and_muted_as_said() -> None:
    data = planted_tables(2)
    run, dataset = trained(data), data.dataset
    page = explore(run, dataset, explain=[5])
    (found,) = data_of(page.html)["explanations"]
    why = explain_prediction(run, dataset, 5)
    for part in found["columns"]:
        size = why.columns.part(part["part"])
        names = [why.columns.names[c] for c in size.abs().argsort(descending=True).tolist()]
        assert [row["name"] for row in part["rows"]] == names
        assert part["others"] == 0
        check = getattr(check_columns(run.model, dataset.x, dataset.edge_index, why), part["part"])
        said = [(row["attribution"], row["muted"]) for row in part["rows"]]
        assert said == list(zip(check.attribution.tolist(), check.muted.tolist(), strict=True))
    (reasons,) = page.reasons
    assert reasons.why.node == 5
    assert {part: len(rows) for part, rows in reasons.columns.items()} == {"own": 7, "neighbours": 7}  # fmt: skip


def test_ten_columns_and_how_many_more() -> None:
    data = node_dataset()
    wide = replace(data, x=torch.cat([data.x] * 3, dim=1))
    (found,) = data_of(explore(train(wide), wide, explain=[0]).html)["explanations"]
    for part in found["columns"]:
        assert len(part["rows"]) == 10
        assert part["others"] == 5


def test_nobody_asked() -> None:
    data = node_dataset()
    page = explore(train(data), data)
    content = data_of(page.html)
    assert (content["explanations"], content["importance"], page.reasons) == ([], None, ())


def test_importance_on_the_page() -> None:
    data = node_dataset()
    run = train(data)
    found = column_importance(run, data, repeats=2)
    shown = data_of(explore(run, data, importance=found).html)["importance"]
    assert shown["where"] == "the val nodes of the split"
    assert (shown["repeats"], shown["others"], shown["score"]) == (2, 0, found.score)
    order = found.order()
    assert [row["name"] for row in shown["rows"]] == [found.names[c] for c in order]
    assert [row["drop"] for row in shown["rows"]] == found.mean[order].tolist()


@pytest.mark.parametrize(
    ("kind", "words"),
    [("binary", "the logit of b against a"), ("regression", "the predicted value"), ("multiclass", " minus that of ")],
)  # fmt: skip
def test_what_is_explained_in_words(kind: str, words: str) -> None:
    data = node_dataset(task=kind)
    names = {"binary": ("a", "b"), "multiclass": ("a", "b", "c"), "regression": ()}[kind]
    data = replace(data, class_names=names)
    (found,) = data_of(explore(train(data), data, explain=[1]).html)["explanations"]
    assert words in found["score"]
    assert len(array(found["attribution"])) == 40
