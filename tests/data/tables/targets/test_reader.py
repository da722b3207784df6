"""Labels: classes, lists of labels or real targets, and when to ask."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import Values, refuses, table

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.targets.reader import TargetReader, Targets


def fit(
    values: Values, task: str | None = None, unlabelled: list[str] | None = None
) -> tuple[TargetReader, Targets]:
    return TargetReader.fit(table(label=values), ["label"], task=task, unlabelled=unlabelled)


def read(values: Values, task: str | None = None, unlabelled: list[str] | None = None) -> Targets:
    return fit(values, task, unlabelled)[1]


# --- classes ---------------------------------------------------------------------------------


def test_texts_are_classes_in_order() -> None:
    targets = read(["b", "", "a", "b", "NA"])
    assert targets.class_names == ("a", "b")
    assert targets.y.tolist() == [1, -1, 0, 1, -1]
    assert targets.y.dtype == torch.int64
    assert targets.known.tolist() == [True, False, True, True, False]
    assert targets.task == "binary"
    assert targets.notes == (
        "task: binary ('a', 'b'); 3 nodes labelled, 2 not",
        "column 'label': 1 'NA' mean unknown; --unlabelled '' keeps them as classes",
    )


def test_whole_numbers_are_classes_by_value() -> None:
    reader, targets = fit(["10", "9", "-2", "10"])
    assert targets.class_names == ("-2", "9", "10")
    assert targets.y.tolist() == [2, 1, 0, 2]
    assert targets.task == "multiclass"
    assert targets.notes[0].endswith("--task regression would take the numbers as they are")
    assert reader.labels().tolist() == [-2, 9, 10]


def test_floats_because_of_gaps_are_the_whole_numbers() -> None:
    for values in (["1.0", "0.0", ""], np.array([1, 0, np.nan]), ["1", "0", ""]):
        reader, targets = fit(values)
        assert (reader.class_names, reader.label_type) == (("0", "1"), "whole")
        assert targets.y.tolist() == [1, 0, -1]


def test_large_whole_numbers_stay_different() -> None:
    names = ("9007199254740992", "9007199254740993")
    assert read(list(names[::-1])).class_names == names
    assert read(np.array([2**53 + 1, 2**53])).class_names == names
    assert fit(["9" * 30, "1"])[0].label_type == "text"


def test_types_of_labels() -> None:
    assert fit(["True", "False"])[0].labels().tolist() == [False, True]
    assert fit(["true", "false"])[0].labels().tolist() == ["false", "true"]
    assert fit(["007", "008"])[0].labels().tolist() == ["007", "008"]
    assert fit(["0.5", "1.5", "2.5"])[0].labels().tolist() == []


def test_plus_and_minus_are_classes() -> None:
    assert read(["+", "-", "+", ""]).class_names == ("+", "-")
    assert read(["a", "-", "b", "b"]).known.tolist() == [True, False, True, True]


def test_many_classes_that_repeat() -> None:
    assert len(read([str(i % 150) for i in range(1500)]).class_names) == 150
    assert len(read(np.arange(1, 1001).repeat(6)).class_names) == 1000
    assert len(read([f"c{i % 100}" for i in range(200)]).class_names) == 100


def test_task_can_be_chosen() -> None:
    assert read(["a", "b"], "multiclass").task == "multiclass"
    assert read(["a", "b"], "classification").task == "binary"
    assert len(read([f"text {i}" for i in range(50)], "multiclass").class_names) == 50
    assert read(["0.5", "1.5"] * 9, "multiclass").class_names == ("0.5", "1.5")
    with pytest.raises(ValueError, match="`task` must be one of 'classification', 'binary'"):
        read(["a", "b"], "ranking")


def test_classes_that_differ_by_case_or_space_are_kept_apart_loudly() -> None:
    targets = read(["Yes", "yes", "no", "no ", "new york", "New  York"])
    assert len(targets.class_names) == 6
    assert targets.notes[-1] == (
        "WARNING: nodes.csv, column 'label': the classes 'New  York', 'new york' differ by case or "
        "space only (and 2 more such groups); they are kept apart: correct the table if they are "
        "one"
    )
    assert not any("WARNING" in note for note in read(["a", "b"]).notes)


# --- real targets ----------------------------------------------------------------------------


def test_fractions_are_real_targets() -> None:
    targets = read(["0.5", "", "2", "1.25"])
    assert targets.task == "regression"
    assert targets.class_names == ()
    assert torch.equal(targets.y.nan_to_num(-9), torch.tensor([0.5, -9, 2, 1.25]))
    assert targets.notes == (
        "task: regression (real targets); 3 nodes labelled, 1 not; --task multiclass would take "
        "each as a class",
    )
    assert read([str(i % 30 / 4) for i in range(300)]).task == "regression"


def test_words_beside_real_targets_are_missing() -> None:
    targets = read(["0.5", "?", "2", "1.25", "TBD", "Unknown"])
    assert targets.known.tolist() == [True, False, True, True, False, False]
    assert "column 'label': 1 '?', 1 'TBD', 1 'Unknown' mean unknown" in targets.notes
    assert read(["1", "2", "?"], "regression").known.tolist() == [True, True, False]
    assert read(["1.5", "2", "none", "?"], "regression", ["none"]).known.sum() == 2


def test_whole_numbers_as_real_targets_on_request() -> None:
    targets = read(["3", "4"], "regression")
    assert targets.y.tolist() == [3, 4]
    assert targets.notes == ("task: regression (real targets); 2 nodes labelled, 0 not",)


def test_years_are_real_targets() -> None:
    years = [str(1980 + i % 30) for i in range(900)]
    for values in (years, np.array([int(y) for y in years])):
        targets = read(values)
        assert targets.task == "regression"
        assert targets.notes[0].endswith(
            "they look like years; --task multiclass would take each as a class"
        )
    assert read([*years, "?"]).y[-1].isnan()
    assert read([str(2015 + i % 5) for i in range(900)]).task == "multiclass"
    assert len(read(years, "multiclass").class_names) == 30
    with refuses(r", column 'label': .*got 1 '-1': .*--unlabelled -1 .*keep it as a number"):
        read([*years, "-1"])


def test_a_lone_negative_target_is_mentioned() -> None:
    values = ["0.5", "2", "-1", "1.25", "-1"]
    note = "column 'label': 2 targets are -1, the only ones below zero; --unlabelled -1 if they"
    assert any(n.startswith(note) for n in read(values).notes)
    assert read(values, None, ["-1"]).known.tolist() == [True, True, False, True, False]
    assert len(read(["0.5", "-2", "-1", "1.25"]).notes) == 1


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["", "NA"], None, ", column 'label': some labels must be there to train on"),
        (["", "NA"], "regression", ", column 'label': some labels must be there to train on"),
        (["a", "a", ""], None, ", column 'label': labels must be of two.*; got only 'a'"),
        (["a", "nAN"], None, ", line 3, column 'label': a label must be a class or .*got 'nAN'"),
        (["1", "inf"], None, ", line 3, column 'label': a label must be"),
        (np.array([1, np.inf]), None, ", line 3, column 'label': a label must be"),
        (
            [f"words {i}" for i in range(30)],
            None,
            ", column 'label': labels must be classes that repeat.*free text",
        ),
        (
            [f"words {i}" for i in range(120)] * 4,
            None,
            ", column 'label': labels must be classes that repeat",
        ),
        (
            [*(str(i / 8) for i in range(40)), "err"],
            None,
            ", line 42, column 'label': most labels are numbers; 'err' is none",
        ),
        (
            [str(i) for i in range(150)] * 2,
            None,
            ", column 'label': 150 different whole numbers.*choose --task",
        ),
        (  # they repeat, but are no codes of classes
            [str(i * i) for i in range(150)] * 20,
            None,
            ", column 'label': 150 different whole numbers in 3000 labels.*choose --task",
        ),
        (
            np.arange(100, 250).repeat(20),
            None,
            ", column 'label': 150 different whole numbers in 3000 labels.*choose --task",
        ),
        (
            np.arange(1001).repeat(6),
            None,
            ", column 'label': 1001 different whole numbers in 6006 labels.*choose --task",
        ),
        (
            [str(i) for i in range(20)],
            None,
            ", column 'label': 20 different whole numbers in 20 labels.*choose --task",
        ),
        (
            ["0.5", "1.5"] * 9,
            None,
            ", column 'label': 2 different numbers with fractions.*choose --task",
        ),
        (
            ["1", "x"],
            "regression",
            ", line 3, column 'label': the target of a regression must be.*'x'",
        ),
        (["1", "1e60"], "regression", ", line 3, column 'label': the target of a regression"),
        (["a", "b", "c"], "binary", ", column 'label': a binary task must have two classes; got 3"),
        (
            ["1", "1.0", "2"],
            None,
            ", column 'label': a class must be written one way; got '1' and '1.0'",
        ),
        (["a", "b"], "multilabel", ", column 'label': several labels in a cell must be separated"),
    ],
)
def test_bad_labels(values: Values, task: str | None, message: str) -> None:
    with refuses(message) as error:
        read(values, task)
    assert len(str(error.value).splitlines()) == 1


# --- labels that may mean unknown ------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "word", "option"),
    [
        (["0", "1", "-1", "2", "-1"], "2 '-1'", "-1"),
        (["0", "-1"], "1 '-1'", "-1"),
        (["0.0", "1.0", "-1.0"], "1 '-1.0'", "-1.0"),
        (["a", "b", "-1"], "1 '-1'", "-1"),
        (["a", "b", "?"], "1 '?'", "'?'"),
        (["a", "b", "Unknown"], "1 'Unknown'", "Unknown"),
        (["a", "b", "n/k", "TBD"], "1 'n/k' and 1 'TBD'", "n/k TBD"),
        (["1", "2", "unlabeled"], "1 'unlabeled'", "unlabeled"),
        (["?", "?"], "2 '?'", "'?'"),
    ],
)
@pytest.mark.parametrize("task", [None, "classification"])
def test_labels_that_may_mean_unknown_ask(
    values: list[str], word: str, option: str, task: str | None
) -> None:
    message = (
        f"nodes.csv, column 'label': labels that may mean unknown are not guessed; got {word}: "
        f"choose --unlabelled {option} to have these nodes predicted, or --unlabelled '' to keep "
    )
    with pytest.raises(DataError, match="^" + re.escape(message)):
        read(values, task)


def test_both_answers() -> None:
    values = ["0", "1", "-1", "2", "", "1"]
    reader, targets = fit(values, unlabelled=["-1"])
    assert targets.class_names == ("0", "1", "2")
    assert targets.y.tolist() == [0, 1, -1, 2, -1, 1]
    assert "column 'label': 1 '-1' mean unknown" in targets.notes
    assert reader.read(table(label=["-1", "-1.0", "2"])).y.tolist() == [-1, -1, 2]
    assert reader.read(table(label=["-1", "-1.0", "2"])).foreign == 0
    targets = read(values, unlabelled=[""])
    assert targets.class_names == ("-1", "0", "1", "2")
    assert targets.y.tolist() == [1, 2, 0, 3, -1, 2]


def test_only_what_was_said_means_unknown() -> None:
    assert read(["a", "NA", "?", "b"], unlabelled=["a"]).class_names == ("?", "NA", "b")
    assert read(["a", "x", "b"], unlabelled=["x", "y"]).notes[-1] == (
        "no label is 'y', which was said to mean unknown"
    )
    assert read(np.array([0, 1, -1]), unlabelled=["-1.0"]).class_names == ("0", "1")


@pytest.mark.parametrize("values", [["-1", "1"], ["-1", "0.5", "2"], ["-1", "-2", "3"]])
def test_minus_one_that_is_a_value(values: list[str]) -> None:
    assert read(values).known.all()


# --- later tables and stored readers ---------------------------------------------------------


def test_labels_of_a_trained_task() -> None:
    reader, _ = fit(["a", "b", "b"])
    targets = reader.read(table(label=["b", "z", "", "a"]))
    assert targets.y.tolist() == [1, -1, -1, 0]
    assert targets.foreign == 1
    assert targets.notes == (
        "task: binary ('a', 'b'); 2 nodes labelled, 2 not",
        "WARNING: 1 labels are none of the model's classes; not counted",
    )
    assert reader.read(table(other=["b", "z"])).y.tolist() == [-1, -1]
    real, _ = fit(["0.5", "1.25", "3"])
    assert real.read(table(other=["b"])).y.isnan().all()
    assert real.read(table(label=["2", ""])).known.tolist() == [True, False]


def test_whole_numbers_are_the_same_however_they_come() -> None:
    reader, _ = fit(["1", "2", "3"])
    for values in (["3", "1"], ["3.0", "1.0"], np.array([3, 1]), np.array([3.0, 1.0])):
        assert reader.read(table(label=values)).y.tolist() == [2, 0]


READERS = [
    fit(["a", "b"])[0],
    fit(["1", "2", "3"], unlabelled=["-1"])[0],
    fit(["True", "False"])[0],
    fit(["a|b", "a", "b", "a|b"])[0],
    fit(["0.5", "1.25"])[0],
    TargetReader(("a", "b"), "multilabel", ("a", "b")),
    TargetReader(("a", "b"), "regression"),
]


@pytest.mark.parametrize("reader", READERS)
def test_stored_and_restored(reader: TargetReader) -> None:
    assert TargetReader.from_json(json.loads(json.dumps(reader.to_json()))) == reader


@pytest.mark.parametrize(
    "change",
    [
        {"columns": []},
        {"columns": "label"},
        {"columns": ["label", "label"]},
        {"columns": [1]},
        {"task": "ranking"},
        {"task": ["binary"]},
        {"task": "regression"},
        {"task": "multilabel"},
        {"class_names": ["1"]},
        {"class_names": ["1", "1"]},
        {"class_names": ["1", "x"]},
        {"class_names": ["1", "02"]},
        {"class_names": ["1", "2", "3"], "task": "binary"},
        {"separator": "|"},
        {"separator": "--"},
        {"label_type": "truth"},
        {"label_type": None},
        {"unlabelled": None},
        {"more": 1},
    ],
)
def test_damaged_readers(change: dict[str, object]) -> None:
    stored = fit(["1", "2"])[0].to_json()
    with pytest.raises(DataError, match=r"^a stored target reader must have"):
        TargetReader.from_json(stored | change)


@pytest.mark.parametrize("stored", [None, [], {}, "x"])
def test_no_readers(stored: object) -> None:
    with pytest.raises(DataError, match=r"^a stored target reader must have"):
        TargetReader.from_json(stored)


# --- properties ------------------------------------------------------------------------------

odd_texts = st.sampled_from([
    "", "NA", "?", "-", "+", "-1", "0", "1", "1.0", "2", "0.5", "1e400", "9" * 400, "nan", "inf",
    "a", "A", "a|b", "b|a", "|", "a;b", "True", "False", "yes", "unknown", "\n", " 1 ", "007",
])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(odd_texts | st.text(max_size=4), min_size=1, max_size=12),
    task=st.sampled_from([None, "multiclass", "multilabel", "regression"]),
    unlabelled=st.none() | st.lists(odd_texts, max_size=2),
)
def test_any_labels_are_read_alike_twice_or_refused_in_one_line(
    values: list[str], task: str | None, unlabelled: list[str] | None
) -> None:
    try:
        reader, targets = fit(values, task, unlabelled)
    except DataError as error:
        assert len(str(error).splitlines()) == 1
        return
    again = TargetReader.from_json(reader.to_json()).read(table(label=values))
    assert torch.equal(again.y.nan_to_num(-9), targets.y.nan_to_num(-9))
    assert targets.foreign == 0
    assert targets.known.any()
    assert all(len(note.splitlines()) == 1 for note in targets.notes)
    if targets.task in ("binary", "multiclass"):
        assert targets.y.max() < len(targets.class_names)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-3, 3) | st.none(), min_size=2, max_size=20),
    task=st.sampled_from([None, "multiclass", "regression"]),
)
def test_typed_numbers_and_their_texts_mean_the_same(
    values: list[int | None], task: str | None
) -> None:
    typed = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    results: list[object] = []
    for column in (typed, ["" if v is None else str(v) for v in values]):
        try:
            reader, targets = fit(column, task)
            results.append((reader, targets.y.nan_to_num(-9).tolist(), targets.notes))
        except DataError as error:
            results.append(str(error))
    assert results[0] == results[1]
