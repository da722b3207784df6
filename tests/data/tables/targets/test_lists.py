"""Several labels in one cell."""

from __future__ import annotations

import pytest
import torch
from small_tables import refuses, table

from coopsheaf.data.tables.targets.reader import TargetReader, Targets


def fit(
    values: list[str], task: str | None = None, unlabelled: list[str] | None = None
) -> tuple[TargetReader, Targets]:
    return TargetReader.fit(table(label=values), ["label"], task=task, unlabelled=unlabelled)


def read(
    values: list[str], task: str | None = None, unlabelled: list[str] | None = None
) -> Targets:
    return fit(values, task, unlabelled)[1]


GENRES = ["drama|comedy", "comedy | drama", "drama", "war", "", "comedy|war", "war|drama|", "|"]


def test_lists_of_labels() -> None:
    reader, targets = fit(GENRES)
    nan = [-9.0] * 3
    assert (targets.task, reader.separator) == ("multilabel", "|")
    assert targets.class_names == ("comedy", "drama", "war")
    assert targets.y.dtype == torch.float32
    assert targets.y.nan_to_num(-9).tolist() == [
        [1, 1, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], nan, [1, 0, 1], [0, 1, 1], [0, 0, 0]
    ]  # fmt: skip
    assert targets.known.tolist() == [True] * 4 + [False] + [True] * 3
    assert targets.notes[0].endswith("--task multiclass would take each combination as a class")
    assert read(GENRES, "multiclass").task == "multiclass"


def test_lists_of_a_later_table() -> None:
    reader, _ = fit(GENRES)
    targets = reader.read(table(label=["war|opera", "opera", "drama", ""]))
    assert targets.foreign == 2
    assert targets.y.nan_to_num(-9)[:, 2].tolist() == [1, -9, 0, -9]
    assert targets.known.tolist() == [True, False, True, False]
    assert reader.read(table(other=["a", "b"])).y.isnan().all()


def test_lists_by_other_separators_on_request() -> None:
    reader, targets = fit(["1;2", "2", "3;1"], "multilabel")
    assert (reader.separator, reader.label_type) == (";", "whole")
    assert targets.y.tolist() == [[1, 1, 0], [0, 1, 0], [1, 0, 1]]
    assert fit(["x, y", "y"], "multilabel")[0].class_names == ("x", "y")
    assert fit(["x, y|z", "z"], "multilabel")[0].class_names == ("x, y", "z")


def test_classes_with_a_bar_in_their_name() -> None:
    assert read(["high|risk", "low|risk"] * 5).task == "binary"
    assert read(["a|b", "b|a"] * 5).task == "binary"
    targets = read(["a", "b"] * 9 + ["a|b"])
    assert targets.task == "multiclass"
    assert targets.notes[0].endswith("--task multilabel would take a|b as two labels")


def test_doubtful_lists_ask() -> None:
    with refuses(r", column 'label': .*got 1 'unknown'"):
        read([*GENRES, "unknown"])
    assert not read([*GENRES, "unknown"], unlabelled=["unknown"]).known[-1]


def test_labels_that_would_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coopsheaf.data.tables.targets.lists.MAX_CELLS", 20)
    with refuses(", column 'label': targets must have at most 20 cells; 8 rows x 3 are more"):
        fit(GENRES)
    reader = TargetReader(("label",), "multilabel", ("a", "b", "c"), separator="|")
    with refuses(", column 'label': targets must have at most 20 cells"):
        reader.read(table(other=["1"] * 8))
