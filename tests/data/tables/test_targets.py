"""Labels: classes or real targets, and when to ask."""

from __future__ import annotations

import pytest
import torch

from coopsheaf.data.delimited import Table
from coopsheaf.data.errors import DataError
from coopsheaf.data.targets import Targets, apply_targets, read_targets


def labels(values: list[str]) -> Table:
    return Table("nodes.csv", {"label": values}, range(2, len(values) + 2))


def read(values: list[str], task: str | None = None) -> Targets:
    return read_targets(labels(values), "label", task)


def test_texts_are_classes_in_order() -> None:
    targets = read(["b", "", "a", "b", "NA"])
    assert targets.class_names == ("a", "b")
    assert targets.y.tolist() == [1, -1, 0, 1, -1]
    assert targets.known.tolist() == [True, False, True, True, False]
    assert targets.task == "binary"


def test_whole_numbers_are_classes_by_value() -> None:
    targets = read(["10", "9", "-1", "10"])
    assert targets.class_names == ("-1", "9", "10")
    assert targets.y.tolist() == [2, 1, 0, 2]
    assert targets.task == "multiclass"
    assert read(["1.0", "0.0", ""]).class_names == ("0.0", "1.0")


def test_large_whole_numbers_stay_different() -> None:
    assert read(["9007199254740993", "9007199254740992"]).class_names == (
        "9007199254740992",
        "9007199254740993",
    )


def test_fractions_are_real_targets() -> None:
    targets = read(["0.5", "", "2", "1.25"])
    assert targets.task == "regression"
    assert targets.class_names == ()
    assert torch.equal(targets.y.nan_to_num(-9), torch.tensor([0.5, -9, 2, 1.25]))
    assert read([str(i % 30 / 4) for i in range(300)]).task == "regression"


def test_whole_numbers_as_real_targets_on_request() -> None:
    assert read(["3", "4"], "regression").y.tolist() == [3, 4]


def test_many_classes_that_repeat() -> None:
    assert len(read([str(i % 150) for i in range(1500)]).class_names) == 150
    assert len(read([f"c{i % 100}" for i in range(200)]).class_names) == 100


def test_task_can_be_chosen() -> None:
    assert read(["a", "b"], "multiclass").task == "multiclass"
    assert read(["a", "b"], "classification").task == "binary"
    assert len(read([f"text {i}" for i in range(50)], "multiclass").class_names) == 50


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["", "NA"], None, "column 'label': some labels must be there to train on"),
        (
            ["a", "a", ""],
            None,
            "column 'label': labels must be of two classes or more; got only 'a'",
        ),
        (
            ["a", "nan"],
            None,
            "line 3, column 'label': a label must be a class or a finite number; got 'nan'",
        ),
        (["1", "inf"], None, "line 3, column 'label': a label must be"),
        (
            [f"words {i}" for i in range(30)],
            None,
            "column 'label': labels must be classes that repeat.*free text",
        ),
        (
            [f"words {i}" for i in range(120)] * 4,
            None,
            "column 'label': labels must be classes that repeat",
        ),
        (
            [str(i) for i in range(150)] * 2,
            None,
            "column 'label': 150 different whole numbers.*choose --task",
        ),
        (
            ["0.5", "1.5"] * 9,
            None,
            "column 'label': 2 different numbers with fractions.*choose --task",
        ),
        (
            ["1", "x"],
            "regression",
            "line 3, column 'label': the target of a regression must be.*'x'",
        ),
        (["1", "1e60"], "regression", "line 3, column 'label': the target of a regression must be"),
        (["a", "b", "c"], "binary", "column 'label': a binary task must have two classes; got 3"),
        (
            ["1", "1.0", "2"],
            None,
            "column 'label': a class must be written one way; got '1' and '1.0'",
        ),
    ],
)
def test_bad_labels(values: list[str], task: str | None, message: str) -> None:
    with pytest.raises(DataError, match=rf"^nodes\.csv, {message}"):
        read(values, task)


def test_labels_of_a_trained_task() -> None:
    table = labels(["b", "z", "", "a"])
    targets = apply_targets(table, "label", "binary", ("a", "b"))
    assert targets.y.tolist() == [1, -1, -1, 0]
    assert targets.foreign == 1
    assert apply_targets(table, None, "binary", ("a", "b")).y.tolist() == [-1] * 4
    assert apply_targets(table, "gone", "regression", ()).y.isnan().all()
    assert apply_targets(labels(["2", ""]), "label", "regression", ()).known.tolist() == [
        True,
        False,
    ]
