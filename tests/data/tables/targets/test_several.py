"""Several target columns."""

from __future__ import annotations

import numpy as np
import pytest
from small_tables import Values, refuses, table

from coopsheaf.data.tables.targets.reader import TargetReader, Targets


def several(
    task: str | None = None, unlabelled: list[str] | None = None, **columns: Values
) -> tuple[TargetReader, Targets]:
    return TargetReader.fit(table(**columns), list(columns), task=task, unlabelled=unlabelled)


def test_columns_of_yes_and_no_are_labels() -> None:
    reader, targets = several(
        a=["1", "0", "", ""], b=["Yes", "no", "?", ""], c=np.array([1.0, np.nan, 0, np.nan])
    )
    assert targets.task == "multilabel"
    assert targets.class_names == ("a", "b", "c")
    assert targets.y.nan_to_num(-9).tolist() == [[1, 1, 1], [0, 0, -9], [-9, -9, 0], [-9] * 3]
    assert targets.known.tolist() == [True, True, True, False]
    later = reader.read(table(b=["no", "maybe"]))
    assert later.y.nan_to_num(-9).tolist() == [[-9, 0, -9], [-9, -9, -9]]
    assert later.foreign == 1


def test_columns_of_numbers_are_real_targets() -> None:
    reader, targets = several(a=["1.5", "", "2"], b=np.array([1, 0, 1]))
    assert (targets.task, targets.class_names) == ("regression", ())
    assert targets.y.nan_to_num(-9).tolist() == [[1.5, 1], [-9, 0], [2, 1]]
    assert targets.notes[0] == ("task: regression (real targets 'a', 'b'); 3 nodes labelled, 0 not")
    assert reader.read(table(a=["3", "x"][:1])).y.nan_to_num(-9).tolist() == [[3, -9]]
    zeros = {"a": ["0", "1"], "b": ["1", "0"]}
    assert several("regression", **zeros)[1].task == "regression"
    assert several(**zeros)[1].notes[0].endswith("--task regression would take 0 and 1 as numbers")


def test_columns_of_several_kinds() -> None:
    with refuses(
        ": several targets must all be yes or no, or all numbers; 'a' has numbers, 'b' has yes or "
        "no, 'c' has texts such as 'x': name columns of one kind"
    ):
        several(a=["1.5", "2"], b=["yes", "no"], c=["x", "1"])
    with refuses(", line 3, column 'b': a label of its own column must be 0 or 1.*got '2'"):
        several("multilabel", a=["1", "0"], b=["1", "2"])
    with refuses(": the task multiclass must have one target column; got 'a', 'b'"):
        several("multiclass", a=["1", "0"], b=["1", "2"])
    with refuses(", column 'b': some labels must be there"):
        several(a=["1", "0"], b=["", ""])
    with refuses(": target columns must differ"):
        TargetReader.fit(table(a=["1", "0"]), ["a", "a"], task=None)
    with refuses(r" has no column 'z' \(wanted as the target\)"):
        TargetReader.fit(table(a=["1", "0"]), ["a", "z"], task=None)
    with pytest.raises(ValueError, match="`columns` must name a target column"):
        TargetReader.fit(table(a=["1", "0"]), [], task=None)


def test_minus_one_in_columns_of_labels_asks() -> None:
    columns: dict[str, Values] = {"a": ["1", "0", "1"], "b": np.array([0, -1, 1])}
    with refuses(", column 'b': .*got 1 '-1': .*as a number"):
        several(**columns)
    reader, targets = several(None, ["-1"], **columns)
    assert targets.task == "multilabel"
    assert targets.y[:, 1].nan_to_num(-9).tolist() == [0, -9, 1]
    assert reader.read(table(b=["-1", "1"])).foreign == 0
    assert several(None, [""], **columns)[1].task == "regression"
