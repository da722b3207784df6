"""What the columns are is decided at the first reading: said, kept, and never against a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import TableData, load_tables

N = 20
NODES: dict[str, list[Any]] = {
    "name": [f"p{i}" for i in range(N)],
    "age": list(range(N)),
    "label": ["yes", "no"] * 10,
}
EDGES: dict[str, list[Any]] = {"src": [f"p{i}" for i in range(N - 1)], "dst": [f"p{i}" for i in range(1, N)]}  # fmt: skip


def load(more: dict[str, list[Any]] | None = None, **options: Any) -> TableData:
    return load_tables(NODES | (more or {}), EDGES, **{"target": "label", **options})


# --- row numbers -----------------------------------------------------------------------------


def test_tables_that_pandas_saved_with_its_index(tmp_path: Path) -> None:
    plain = load()
    for name, table in (("n", NODES), ("e", EDGES)):
        frame = pd.DataFrame(table)
        frame.to_csv(tmp_path / f"{name}1.csv")
        pd.read_csv(tmp_path / f"{name}1.csv").to_csv(tmp_path / f"{name}2.csv")
        pd.read_csv(tmp_path / f"{name}1.csv").to_csv(tmp_path / f"{name}3.csv", index=False)
    for number in (1, 2, 3):
        data = load_tables(tmp_path / f"n{number}.csv", tmp_path / f"e{number}.csv", target="label")
        assert torch.equal(data.dataset.edge_index, plain.dataset.edge_index)
        assert data.ids == plain.ids
        assert data.encoder == plain.encoder
        assert any("not used: 'Unnamed: 0" in note for note in data.notes)


# --- splits ----------------------------------------------------------------------------------


def test_a_split_with_one_unknown_word_is_an_error() -> None:
    words = [*["train"] * 12, *["val"] * 4, *["test"] * 3, "tset"]
    with pytest.raises(
        DataError, match=r"`nodes`, row 19, column 'split': .* got 'tset': correct it"
    ):
        load({"split": words})
    assert "split" not in load({"split": words}, drop=["split"]).encoder.names
    asked = load({"split": words}, features=["age", "split"])
    assert asked.encoder.names == ("age", "split")


def test_folds_are_several_splits_and_no_feature() -> None:
    data = load({"Fold": [i // 2 % 5 for i in range(N)]})
    assert data.dataset.num_splits == 5
    assert data.encoder.names == ("age",)
    assert data.schema.parts == ("Fold",)


@pytest.mark.parametrize("name", ["fold", "part", "split"])
def test_a_target_of_that_name_is_no_split(name: str) -> None:
    words: dict[str, list[Any]] = {"fold": [0, 1, 2, 3] * 5, "part": ["train", "plane"] * 10, "split": ["train", "test"] * 10}  # fmt: skip
    data = load_tables({**NODES, name: words[name]}, EDGES, target=name, drop=["label"])
    assert data.dataset.num_splits == 1
    assert data.schema.parts == ()
    assert int(data.dataset.train.sum()) == 12


def test_the_split_is_the_same_with_named_features() -> None:
    words = {"set": ["train"] * 14 + ["valid"] * 3 + ["test"] * 3}
    every, named = load(words), load(words, features=["age"])
    assert every.schema.parts == named.schema.parts == ("set",)
    assert torch.equal(every.dataset.train, named.dataset.train)


def test_masks() -> None:
    truths = {f"{p}_mask": [i // 7 == k for i in range(N)] for k, p in enumerate(("train", "val", "test"))}  # fmt: skip
    data = load(truths)
    assert data.dataset.val[0].nonzero().flatten().tolist() == list(range(7, 14))
    assert data.encoder.names == ("age",)
    lone = load({"train_mask": truths["train_mask"]})
    assert lone.encoder.names == ("age",)
    assert any("'train_mask'" in n and "not used, and no feature" in n for n in lone.notes)


def test_a_later_table_says_its_parts_by_the_same_columns() -> None:
    words = {"split": ["train"] * 12 + ["val"] * 4 + ["test"] * 4}
    data = load(words)
    later = load_tables(NODES | {"split": ["test"] * 5 + [""] * 15}, EDGES, like=data.schema)
    assert later.dataset.test[0].nonzero().flatten().tolist() == list(range(5))


# --- features --------------------------------------------------------------------------------


def test_what_is_not_used_is_said() -> None:
    data = load(
        {"b": [1, 2] * 10, "c": [f"word {i} is free text" for i in range(N)]}, features=["age"]
    )
    assert "node ids: column 'name'; not used: 'b', 'c'" in data.notes
    texts = load({"c": [f"text{i:04}" for i in range(N)]}, drop=["age"])
    assert texts.encoder.names in ((), ("c",))
    empty = load({"c": [None] * N})
    assert "column 'c' is left out: it has no value in any training row" in empty.notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["x"]}, r"`nodes` has no column 'x' \(wanted as a column to drop\)"),
        ({"drop": ["age"], "features": ["age"]}, "column 'age' is to be used and dropped"),
        ({"drop": ["label"]}, "column 'label' is to be used and dropped"),
        ({"features": ["x"]}, r"no column 'x' \(wanted as a feature\)"),
        ({"categorical": ["x"]}, r"no column 'x' \(wanted as a feature\)"),
        ({"text": ["age"], "categorical": ["age"]}, "'age': a column is categorical or text"),
        ({"split": "x"}, r"no column 'x' \(wanted as the split\)"),
        ({"id": "x"}, r"no column 'x' \(wanted as the id\)"),
        ({"edge_features": ["x"]}, r"`edges` has no column 'x' \(wanted as a feature of edges\)"),
        ({"id": "age"}, "`edges`, row 0, column 'src': an edge must join nodes of `nodes`"),
        ({"features": ["age"], "categorical": ["name"]}, "categorical and text columns must be features"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(**options)


def test_time_goes_with_links_alone() -> None:
    with pytest.raises(ValueError, match="`time` orders edges to predict"):
        load(time="when")


# --- targets ---------------------------------------------------------------------------------


def test_several_labels_and_several_numbers() -> None:
    lists = load({"tags": ["a|b", "b", "a", "c|a"] * 5}, target="tags", drop=["label"])
    assert (lists.dataset.task, lists.class_names) == ("multilabel", ("a", "b", "c"))
    both = load({"u": [0.5 + i for i in range(N)], "v": [1.5 * i for i in range(N)]}, target=["u", "v"], drop=["label"])  # fmt: skip
    assert (both.dataset.task, both.dataset.y.shape) == ("regression", (N, 2))


def test_a_leak_is_a_warning() -> None:
    many = 200
    nodes = {
        "id": list(range(many)),
        "age": [i % 17 for i in range(many)],
        "outcome": ["won" if i % 2 else "lost" for i in range(many)],
        "label": ["yes" if i % 2 else "no" for i in range(many)],
    }
    data = load_tables(nodes, {"u": [0], "v": [1]}, target="label")
    assert any("'outcome'" in note and "WARNING" in note.upper() for note in data.notes)


def test_unknown_words_of_the_target_ask() -> None:
    words = ["yes", "no", "unknown", "yes"] * 5
    with pytest.raises(DataError, match="unknown"):
        load({"label": words})
    data = load({"label": words}, unlabelled=["unknown"])
    assert data.dataset.y.tolist() == [1, 0, -1, 1] * 5


def test_an_unscaled_column_is_standardised() -> None:
    data = load({"income": [1e6 * i for i in range(N)]})
    assert data.dataset.x.abs().max() < 5


def test_names_and_labels_may_be_numbers() -> None:
    frame = pd.DataFrame({0: NODES["name"], 1: NODES["age"], 2: [0, 1, -1, 1] * 5})
    data = load_tables(frame, EDGES, target=2, unlabelled=[-1])
    assert data.encoder.names == ("1",)
    assert data.dataset.y.tolist() == [0, 1, -1, 1] * 5
