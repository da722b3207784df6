"""Explanations of a trained run: by name, with the columns and the cells of its tables."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from analysis.planted import planted_tables, trained
from pages.explorer.pages import train
from train.small import graph_dataset, node_dataset, recipe, with_edge_features

from coopsheaf.analysis import column_rows, explain_node, explain_prediction, mute_columns
from coopsheaf.data.tables.load import TableData
from coopsheaf.train.run import Run, run_split


@pytest.fixture(scope="module")
def planted() -> tuple[Run, TableData]:
    data = planted_tables(1)
    return trained(data), data


def test_a_node_by_name_down_to_its_columns(planted: tuple) -> None:
    run, data = planted
    why = explain_prediction(run, data.dataset, "n7")
    assert why.node == data.dataset.node_ids.index("n7")
    assert why.columns.names == data.schema.encoder.names
    assert why.score.against is None  # two classes and one logit
    assert explain_prediction(run, data.dataset, "7").node == 7
    assert explain_prediction(run, data.dataset, 7).node == 7
    plain = explain_node(run.model, data.dataset.x, data.dataset.edge_index, why.node)
    assert torch.equal(plain.attribution, why.attribution)


def test_margins_options_and_features_of_edges() -> None:
    data = with_edge_features(node_dataset())
    run = run_split(recipe(epochs=2), data)[0]
    why = explain_prediction(run, data, 3)
    assert why.score.against is not None
    want = explain_node(run.model, data.x, data.edge_index, 3, edge_attr=data.edge_attr)
    assert torch.equal(why.attribution, want.attribution)
    assert explain_prediction(run, data, 3, output=2, margin=False).score.output == 2


def test_rows_are_what_was_found_and_what_happened(planted: tuple) -> None:
    run, data = planted
    x, edges = data.dataset.x, data.dataset.edge_index
    why = explain_prediction(run, data.dataset, "n7")
    for part in ("own", "neighbours"):
        rows = column_rows(run.model, x, edges, why, part, 3)
        top = why.columns.top(part, 3)
        assert [row.name for row in rows] == [why.columns.names[c] for c in top]
        assert [row.attribution for row in rows] == why.columns.part(part)[top].tolist()
        muted = mute_columns(run.model, x, edges, why, part, top)
        assert [row.muted for row in rows] == muted.tolist()
        for row in rows:
            assert row.diffusion + row.learners == pytest.approx(row.attribution)
        assert all((row.value != "") == (part == "own") for row in rows)


def test_cells_are_spelled_as_they_were(planted: tuple) -> None:
    """Dates, categories and numbers of a node, read back from its features."""
    import pandas as pd

    run, _ = planted
    given: dict[str, Any] = {
        "id": list("abcd"),
        "since": ["2020-01-01", "2021-12-31", "2020-02-29", "2022-06-15"],
        "planted": [0.25, -1.5, 0.0, 2.0],
        "kind": ["k", "p", "new", None],
        **{name: [1.0, 2.0, 3.0, 4.0] for name in "abcd"},
        "label": ["yes", "no", "yes", "no"],
    }
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    from coopsheaf.train import run_data

    dataset = run_data(run, pd.DataFrame(given), edges).dataset
    for row, node in enumerate("abcd"):
        why = explain_prediction(run, dataset, node)
        cells = {
            name: why.columns.columns.spell(column, dataset.x[row])
            for column, name in enumerate(why.columns.names)
        }
        assert cells["since"] == given["since"][row]
        assert float(cells["planted"]) == pytest.approx(given["planted"][row], abs=1e-6)
        assert cells["kind"] == ["k", "p", "(other)", "(missing)"][row]
        assert float(cells["c"]) == pytest.approx(row + 1)


def test_features_without_tables_are_numbers() -> None:
    data = node_dataset()
    run = train(data, "gcn-plain")
    rows = column_rows(run.model, data.x, data.edge_index, explain_prediction(run, data, 3))
    for row in rows:
        number = int(row.name[2:-1])
        assert float(row.value) == pytest.approx(float(data.x[3, number]), rel=1e-3)
        assert row.diffusion is row.learners is None


@pytest.mark.parametrize("node", ["nobody", 400, -1, "9" * 30, True])
def test_nobody(planted: tuple, node: Any) -> None:
    run, data = planted
    with pytest.raises(ValueError, match="`node` must be a node, a name or a number from 0 to 399"):
        explain_prediction(run, data.dataset, node)


def test_other_features_and_other_tasks_are_refused(planted: tuple) -> None:
    run, _ = planted
    with pytest.raises(ValueError, match="`columns` must be those of the 5 features"):
        explain_prediction(run, node_dataset(), 0)
    graphs = graph_dataset()
    with pytest.raises(ValueError, match="`run` must predict nodes"):
        explain_prediction(run_split(recipe(epochs=1), graphs)[0], node_dataset(), 0)
