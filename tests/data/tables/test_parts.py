"""Columns that say the split: used if understood, an error if nearly so, never a feature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import Values, refuses, table

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.parts import (
    Found,
    Parts,
    find_parts,
    later_parts,
    make_parts,
    read_parts,
)
from coopsheaf.data.tables.targets.reader import TargetReader, Targets

WORDS = ["train", "TRAIN ", "Val", "valid", "validation", "test", "Testing", "", "training", "dev"]


def find(name: str | None = None, taken: tuple[str, ...] = (), /, **columns: Values) -> Found:
    return find_parts(table(**columns), name, taken)


def rows(masks: torch.Tensor) -> list[list[int]]:
    return [mask.nonzero().flatten().tolist() for mask in masks]


def numbers(parts: Parts) -> list[list[list[int]]]:
    return [rows(parts.train), rows(parts.val), rows(parts.test)]


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["split", "Split", "SPLIT", "set", "subset", "part", "Partition"])
def test_words(name: str) -> None:
    nodes = table(age=["1"] * 10, **{name: WORDS})
    assert find_parts(nodes, None, ()) == ((name,), {})
    assert numbers(read_parts(nodes, [name])) == [[[0, 1, 8]], [[2, 3, 4, 9]], [[5, 6]]]


def test_any_column_can_be_named() -> None:
    assert find("where", where=WORDS) == (("where",), {})
    assert find(where=WORDS) == (None, {})
    with refuses(r" has no column 'gone' \(wanted as the split\)"):
        find("gone", where=WORDS)


def test_a_column_that_is_not_used_may_have_any_words() -> None:
    columns: dict[str, Values] = {"split": ["train", "holdout"], "mine": ["train", "val"]}
    found = find("mine", **columns)
    assert found.columns == ("mine",)
    assert set(found.ignored) == {"split"}


@pytest.mark.parametrize("name", ["split", "set"])
def test_an_unknown_word_is_an_error(name: str) -> None:
    with refuses(f", line 4, column '{name}': a split must be train, val, test or empty; got "
                f"'holdout': correct it, or --drop '{name}'$"):  # fmt: skip
        find(**{name: ["train", "val", "holdout", "rest"]})


def test_a_split_of_other_words_is_no_feature() -> None:
    found = find(split=["7-10", "spare", ""], age=["1", "2", "3"])
    assert found == (
        None,
        {
            "split": "column 'split': it has none of the words train, val and test; not used, and "
            "no feature unless --features names it"
        },
    )
    assert set(find(split=["", "NA"]).ignored) == {"split"}
    assert set(find(split=np.array([0, 1])).ignored) == {"split"}


def test_general_names_may_be_features() -> None:
    assert find(set=["test", "control"], part=["wing", "tail"]) == (None, {})


def test_columns_with_another_role_are_left_alone() -> None:
    assert find(
        None, ("split", "fold", "train_mask"), split=["x"], fold=["x"], train_mask=["x"]
    ) == (
        None,
        {},
    )


# --- folds -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["0", "1", "2", "3", "", "0"],
        ["1", "2", "3", "4", "", "1"],
        np.array([1, 2, 3, 4, np.nan, 1]),
    ],
)
def test_folds(values: Values) -> None:
    nodes = table(Fold=values)
    assert find_parts(nodes, None, ()) == (("Fold",), {})
    parts = read_parts(nodes, ["Fold"])
    assert rows(parts.test) == [[0, 5], [1], [2], [3]]
    assert rows(parts.val) == [[1], [2], [3], [0, 5]]
    assert rows(parts.train) == [[2, 3], [0, 3, 5], [0, 1, 5], [1, 2]]
    assert parts.notes == (
        "column 'Fold': 4 splits, each tested on one fold, validated on the next one",
    )


@pytest.mark.parametrize(
    "values",
    [
        ["0", "1", "3"],
        ["2", "3", "4"],
        ["0", "0", "0"],
        ["0", "0.5", "1"],
        ["fold1", "fold2", "fold3"],
        ["", "", ""],
        [str(i) for i in range(21)],
    ],
)
def test_what_is_no_fold_is_no_feature(values: list[str]) -> None:
    found = find(fold=values)
    assert found.columns is None
    assert "the numbers of 2 to 20 folds must be 0, 1, 2" in found.ignored["fold"]


def test_a_named_column_of_folds() -> None:
    nodes = table(cv=["0", "1", "2"])
    assert find_parts(nodes, "cv", ()) == (("cv",), {})
    assert read_parts(nodes, ["cv"]).test.shape == (3, 3)
    with refuses(", column 'cv': the numbers of 2 to 20 folds must be"):
        read_parts(table(cv=["0", "1", "7"]), ["cv"])


# --- masks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("val", ["val_mask", "valid_mask", "VAL_MASK"])
def test_masks(val: str) -> None:
    nodes = table(
        **{
            "test_mask": ["False", "False", "True", "", "no"],
            val: np.array([0, 1, 0, 0, 0]),
            "train_mask": ["1", "0", "0", "1", ""],
        }
    )
    found = find_parts(nodes, None, ())
    assert found == (("train_mask", val, "test_mask"), {})
    assert find_parts(nodes, "train_mask", ()).columns == found.columns
    assert found.columns is not None
    assert numbers(read_parts(nodes, found.columns)) == [[[0, 3]], [[1]], [[2]]]


def test_masks_without_test() -> None:
    nodes = table(train_mask=["1", "0", "0"], val_mask=["0", "1", "0"])
    assert find_parts(nodes, None, ()).columns == ("train_mask", "val_mask")
    assert not read_parts(nodes, ("train_mask", "val_mask")).test.any()


def test_masks_that_overlap() -> None:
    with refuses(
        ", line 3: a node must be in one part; both 'train_mask' and 'val_mask' are true "
        r"\(and at 1 more\)$"
    ):
        find(train_mask=["1", "1", "1"], val_mask=["0", "1", "1"])


def test_a_mask_with_another_word() -> None:
    with refuses(", line 3, column 'val_mask': a mask must be true, false, 1, 0 or empty; got '2'"):
        find(train_mask=["1", "0"], val_mask=["0", "2"])


def test_incomplete_and_other_masks_are_no_features() -> None:
    found = find(train_mask=["1", "0"], test_mask=["0", "1"], face_mask=["1", "0"])
    assert found.columns is None
    assert "lacks val_mask" in found.ignored["train_mask"]
    assert "lacks val_mask" in found.ignored["test_mask"]
    assert "it is no train_mask" in found.ignored["face_mask"]
    assert "no truth values" in find(train_mask=["a"], val_mask=["1"]).ignored["val_mask"]
    with refuses(", column 'train_mask': a split by masks lacks val_mask"):
        find("train_mask", train_mask=["1", "0"])


def test_several_columns_that_are_no_masks() -> None:
    with pytest.raises(DataError, match="several columns of a split must be masks; got 'a', 'b'"):
        read_parts(table(a=["1"], b=["0"]), ["a", "b"])


def test_one_says_it_and_the_others_are_no_features() -> None:
    columns: dict[str, Values] = {
        "fold": ["0", "1", "2"],
        "train_mask": ["1", "x", "0"],  # not used, so not an error
        "val_mask": ["1", "0", "0"],
        "split": ["train", "val", "test"],
        "mine": ["train", "val", "val"],
    }
    found = find(**columns)
    assert found.columns == ("split",)
    assert set(found.ignored) == {"fold", "train_mask", "val_mask"}
    assert found.ignored["fold"].startswith("column 'fold': the split is said by 'split'; not used")
    found = find("mine", **columns)
    assert found.columns == ("mine",)
    assert set(found.ignored) == {"fold", "train_mask", "val_mask", "split"}
    assert find(None, ("split",), **(columns | {"train_mask": ["0", "1", "0"]})).columns == (
        "train_mask",
        "val_mask",
    )


# --- to train with ---------------------------------------------------------------------------


def targets(labels: list[str], task: str | None = None) -> Targets:
    return TargetReader.fit(table(label=labels), ["label"], task=task)[1]


def make(labels: list[str], found: tuple[str, ...] | None = None, **columns: Values) -> Parts:
    return make_parts(table(label=labels, **columns), ["label"], targets(labels), found, 0)


def test_a_drawn_split() -> None:
    parts = make(["a", "b"] * 10 + ["", ""])
    assert [int(m.sum()) for m in (parts.train, parts.val, parts.test)] == [12, 4, 4]
    assert parts.train.shape == (1, 22)
    assert not (parts.train | parts.val | parts.test)[0, 20:].any()
    assert parts.columns == ()
    assert parts.notes == (
        "split: a stratified 60/20/20 split (seed 0): 12/4/4 nodes to train, validate and test",
    )


def test_a_column_cannot_place_unlabelled_nodes() -> None:
    parts = make(
        ["x", "y", "", "x", "", "NA"],
        ("split",),
        split=["train", "train", "train", "val", "val", "test"],
    )
    assert numbers(parts) == [[[0, 1]], [[3]], [[]]]
    assert "3 nodes of column 'split' have no label: in no part" in parts.notes
    assert "split: column 'split': 2/1/0 nodes to train, validate and test" in parts.notes


def test_folds_to_train_with() -> None:
    parts = make(["a", "b"] * 6, ("fold",), fold=[str(i // 4) for i in range(12)])
    assert parts.train.shape == (3, 12)
    assert parts.notes[-1].endswith("4/4/4 nodes to train, validate and test in the first split")


def test_two_folds_draw_the_validation() -> None:
    parts = make(["a", "b"] * 20, ("fold",), fold=[str(i // 20) for i in range(40)])
    assert parts.train.sum(1).tolist() == [16, 16]
    assert parts.val.sum(1).tolist() == [4, 4]
    assert rows(parts.test) == [list(range(20)), list(range(20, 40))]
    assert not (parts.train & parts.val).any()
    assert (parts.train | parts.val | parts.test).all()
    assert parts.notes[0].endswith("validated on a fifth of the other one, drawn at random")


def test_classes_that_no_training_node_has() -> None:
    split = ["train", "train", "val"]
    assert "no training node has a label of 'c'" in make(list("abc"), ("split",), split=split).notes


def test_labels_that_no_training_node_has() -> None:
    nodes = table(a=["1", "0", "1"], b=["0", "0", "1"], split=["train", "train", "val"])
    found = TargetReader.fit(nodes, ["a", "b"], task=None)[1]
    parts = make_parts(nodes, ["a", "b"], found, ("split",), 0)
    assert "no training node has a label of 'b'" in parts.notes
    assert "a random 60/20/20 split" in make_parts(nodes, ["a", "b"], found, None, 0).notes[0]


@pytest.mark.parametrize(
    ("labels", "split", "message"),
    [
        (["a", "b", ""], None, ", column 'label': there must be labelled nodes for validation"),
        (["a", "b"], ["val", "test"], ", column 'split': there must be labelled nodes for train"),
        (["a", "b"], ["train", "test"], ", column 'split': there must be labelled nodes for valid"),
        (
            ["x", "x", "y"],
            ["train", "train", "val"],
            ", column 'split': training nodes must be of two classes or more; all 2 are 'x'",
        ),
        (
            ["a", "b", "", "a"],
            ["0", "1", "2", "3"],
            ", column 'split': there must be labelled nodes for validation; column 'split' of 3 "
            "labelled nodes has none in split 1: mark",
        ),
    ],
)
def test_too_little_to_learn_from(labels: list[str], split: list[str] | None, message: str) -> None:
    with refuses(message):
        make(labels, None if split is None else ("split",), split=split or [""] * len(labels))


# --- later tables ----------------------------------------------------------------------------


def later(found: tuple[str, ...] | None, **columns: Values) -> Parts:
    return later_parts(table(**columns), targets(["a", "b", "a", ""]), found)


def test_later_tables() -> None:
    tests = [[[]], [[]], [[0, 1, 2]]]
    four = ["1", "0", "1", "0"]
    assert numbers(later(None, age=four)) == tests
    assert numbers(later(("split",), age=four)) == tests
    words = later(("split",), split=["train", "val", "test", "test"])
    assert numbers(words) == [[[0]], [[1]], [[2]]]
    incomplete = later(("fold",), fold=["3", "3", "3", "4"])
    assert numbers(incomplete) == tests
    assert incomplete.notes == ("column 'fold' has not every fold: all labelled nodes are tests",)
    alone = later(("train_mask", "val_mask"), train_mask=four)
    assert numbers(alone) == tests
    assert "does not say the split alone" in alone.notes[0]
    with refuses(", line 2, column 'split': a split must be"):
        later(("split",), split=["x", "train", "val", "val"])


# --- properties ------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    k=st.integers(3, 20),
    start=st.integers(0, 1),
    extra=st.lists(st.integers(0, 19), max_size=20),
)
def test_folds_divide_the_nodes(k: int, start: int, extra: list[int]) -> None:
    folds = [*range(k), *(e % k for e in extra)]
    parts = read_parts(table(fold=[str(f + start) for f in folds]), ["fold"])
    together = parts.train.int() + parts.val.int() + parts.test.int()
    assert (together == 1).all()
    assert (parts.test.sum(0) == 1).all()
    assert (parts.val.sum(0) == 1).all()


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["split", "Split", "set", "fold", "train_mask", "val_mask", "x_mask", "age"]
        ),
        st.lists(
            st.sampled_from(["", "train", "val", "test", "0", "1", "2", "yes", "x"]),
            min_size=3,
            max_size=3,
        ),
        min_size=1,
    )
)
def test_any_columns_are_understood_refused_or_put_aside(columns: dict[str, list[str]]) -> None:
    nodes = table(**columns)
    try:
        found = find_parts(nodes, None, ())
        if found.columns is not None:
            parts = read_parts(nodes, found.columns)
            assert ((parts.train.int() + parts.val.int() + parts.test.int()) <= 1).all()
    except DataError as error:
        assert len(str(error).splitlines()) == 1
        return
    features = set(columns) - set(found.columns or ()) - set(found.ignored)
    assert features <= {"set", "age"}
