"""From a table of edges to arrays: ends, weights, times, and what can be done about the odd ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_tables import refuses, table

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.edges import edge_facts, edge_times, merge_edges, node_ids
from coopsheaf.data.tables.load import TableData, load_tables

NODES: dict[str, Any] = {"id": list("abcdefghij"), "x": list(range(10)), "label": ["p", "q"] * 5}
EDGES: dict[str, Any] = {
    "source": ["a", "a", "b", "c", "a"],
    "target": ["b", "b", "a", "c", "d"],
    "w": [1.0, 2.0, 4.0, 8.0, 0.0],
    "t": ["2020-01-02", "2020-01-01", "2020-03-01", "2021-01-01", "2019-05-05"],
}


def load(edges: Any = EDGES, nodes: Any = NODES, **options: Any) -> TableData:
    return load_tables(nodes, edges, **{"target": "label", **options})


# --- ends ------------------------------------------------------------------------------------


def test_columns_swapped_with_their_names_are_the_same_graph() -> None:
    swapped = {name: EDGES[name] for name in ("t", "target", "w", "source")}
    assert torch.equal(load(swapped).dataset.edge_index, load().dataset.edge_index)


def test_ids_that_a_gap_made_floats() -> None:
    nodes = {"id": ["1.0", "2.0", "3.0", "4", "5.0", "6.0"], "label": ["p", "q"] * 3}
    with pytest.raises(DataError, match="no node '1'"):
        load({"s": ["1"], "t": ["2"]}, nodes)  # not all: ids are texts
    nodes["id"][3] = "4.0"
    assert load({"s": ["1"], "t": ["2"]}, nodes).dataset.edge_index.tolist() == [[0], [1]]
    whole = {"id": [1, 2, 3, 4, 5, 6], "label": ["p", "q"] * 3}
    frame = pd.DataFrame({"s": ["1.0", "3.0"], "t": ["2", "1.00"]})
    data = load(frame, whole)
    assert data.dataset.edge_index.tolist() == [[0, 2], [1, 0]]
    assert "3 ends of edges are written like 7.0; they were taken for 7" in data.notes


def test_ids_must_be_there_and_differ() -> None:
    with refuses(", line 3, column 'id': every node must have an id; got none"):
        node_ids(table(id=["a", "", "b"]), "id")
    with refuses(", line 4, column 'id': ids must differ; 'a' is also on line 2: name the column"):
        node_ids(table(id=["a", "b", "a"]), "id")
    with refuses(", line 3, column 'id': ids must differ; '1' is also on line 2"):
        node_ids(table(id=["1.0", "1.00"]), "id")
    with refuses(", line 3, column 'id': every node must have an id"):
        node_ids(table(id=np.array([1.0, np.nan])), "id")


def test_a_missing_end_is_an_error() -> None:
    frame = pd.DataFrame({"source": ["a", None], "target": ["b", "c"]})
    with pytest.raises(DataError, match=r"`edges`, row 1, column 'source': .* no node ''"):
        load(frame)


# --- weights and times -----------------------------------------------------------------------


def test_weights_as_people_write_them() -> None:
    data = load(EDGES | {"w": ["1,5", "2,0", "4", "8", "0"]}, weight="w")
    assert data.dataset.edge_weight.tolist() == [1.5, 2, 4, 8, 0]


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, 1e39, "x"])
def test_bad_weights(bad: Any) -> None:
    with pytest.raises(DataError, match=r"`edges`, row 2, column 'w': a weight must be a finite"):
        load(EDGES | {"w": [1, 2, bad, 3, 4]}, weight="w")


def test_times() -> None:
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    for cells in (["2020-01-01", "2020-01-02"], days, ["01/01/2020 00:00", "01/02/2020 00:00"]):
        times = edge_times(table(t=cells), "t")
        assert times.dtype == torch.float64
        assert times.diff().item() in (86400.0, 86400.0 * 31)
    assert edge_times(table(t=["5", "7.5"]), "t").tolist() == [5, 7.5]
    with refuses(", line 3, column 't': every edge must have a time, a number or a date; got ''"):
        edge_times(table(t=["2020-01-01", ""]), "t")
    with refuses(", line 2, column 't': every edge must have a time"):
        edge_times(table(t=["soon", "later"]), "t")


# --- loops, repeated edges, lonely nodes -----------------------------------------------------


def test_facts() -> None:
    facts = edge_facts(torch.tensor([[0, 0, 1, 2, 0], [1, 1, 0, 2, 3]]), 6)
    assert (facts.repeated, facts.loops) == (1, 1)
    assert facts.lonely.tolist() == [False, False, False, False, True, True]
    assert facts.reciprocated == 0.75
    assert edge_facts(torch.zeros(2, 0, dtype=torch.int64), 2).reciprocated == 1.0


def test_duplicates() -> None:
    kept, merged = load(weight="w"), load(weight="w", duplicates="merge", edge_features=["w"])
    assert kept.dataset.num_edges == 5
    assert merged.dataset.edge_index.tolist() == [[0, 0, 1, 2], [1, 3, 0, 2]]
    assert merged.dataset.edge_weight.tolist() == [3, 0, 4, 8]
    index, _, attributes = merge_edges(
        torch.tensor([[1, 0, 1], [0, 1, 0]]), None, torch.tensor([[1.0], [5.0], [3.0]]), 2
    )
    assert (index.tolist(), attributes.tolist()) == ([[0, 1], [1, 0]], [[5.0], [2.0]])


def test_self_loops() -> None:
    assert load(self_loops="keep").dataset.num_edges == 5
    removed = load(self_loops="remove", weight="w").dataset
    assert removed.edge_index.tolist() == [[0, 0, 1, 0], [1, 1, 0, 3]]
    assert removed.edge_weight.tolist() == [1, 2, 4, 0]
    added = load(self_loops="add").dataset
    loops = added.edge_index[0] == added.edge_index[1]
    assert sorted(added.edge_index[0, loops].tolist()) == list(range(10))
    later = load_tables(NODES, EDGES, like=load(self_loops="remove").schema)
    assert later.dataset.num_edges == 4


def test_isolated() -> None:
    nodes = NODES | {"label": ["p", "q", "p", "q", "p", "q", "p", "q", "p", "q"]}
    edges = {"source": list("abcdef"), "target": list("bcdefa")}
    kept, excluded = load(edges, nodes), load(edges, nodes, isolated="exclude")
    assert int((kept.dataset.train | kept.dataset.val | kept.dataset.test).sum()) == 10
    parts = excluded.dataset.train | excluded.dataset.val | excluded.dataset.test
    assert parts[0].nonzero().flatten().tolist() == list(range(6))
    split = nodes | {"split": ["train", "train", "val"] * 3 + ["val"]}
    data = load(edges, split, isolated="exclude")
    assert "4 nodes of column 'split' have no label or no edge: in no part" in data.notes
    with pytest.raises(DataError, match="there must be labelled nodes for training"):
        load({"source": ["a"], "target": ["a"]}, nodes | {"split": ["val", *["train"] * 9]}, isolated="exclude")  # fmt: skip


# --- links -----------------------------------------------------------------------------------

RING = {
    "source": [f"n{i}" for i in range(40)],
    "target": [f"n{(i + 1) % 40}" for i in range(40)],
    "when": [f"{1990 + i}-06-01" for i in range(40)],
}
PEOPLE = {"id": [f"n{i}" for i in range(40)], "x": list(range(40)), "fold": [0, 1] * 20}


def test_links_in_order_of_time() -> None:
    data = load_tables(PEOPLE, RING, task="link", time="when")
    assert data.dataset.task == "link" or data.schema.task == "link"
    assert data.encoder.names == ("x",)  # 'fold' is never a feature unasked
    assert any("'fold' look like a split" in note for note in data.notes)
    drawn = load_tables(PEOPLE, RING, task="link")
    assert drawn.schema.time is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "x"}, "--target must be left out where links are predicted"),
        ({"edge_features": ["when"]}, "--edge-features must be left out where links"),
        ({"self_loops": "add"}, "self_loops must be 'keep' or 'remove'"),
        ({"time": "then"}, r"`edges` has no column 'then' \(wanted as the edge time\)"),
        ({"duplicates": "merge"}, "--duplicates must be left out"),
    ],
)
def test_options_without_a_meaning_for_links(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_tables(PEOPLE, RING, task="link", **options)
