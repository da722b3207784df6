"""Columns that give the target away are reported; random ones are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import Values, table

from coopsheaf.data.tables.leaks import find_leaks
from coopsheaf.data.tables.targets.reader import Targets

RNG = np.random.default_rng(0)
CLASSES = np.array([0, 1] * 20)


def classes(y: np.ndarray) -> Targets:
    y = torch.from_numpy(y.astype(np.int64))
    return Targets(y, y >= 0, "multiclass", ("a", "b", "c", "d", "e"))


def real(y: np.ndarray, task: str = "regression", names: tuple[str, ...] = ()) -> Targets:
    y = torch.from_numpy(y.astype(np.float32))
    known = ~y.isnan()
    return Targets(y, known if y.dim() == 1 else known.any(1), task, names)


def leaks(targets: Targets, train: np.ndarray | None = None, **columns: Values) -> list[str]:
    n = len(targets.known)
    rows = np.ones(n, bool) if train is None else train
    return find_leaks(table(**columns), list(columns), targets, rows)


# --- what is reported ------------------------------------------------------------------------


def test_each_value_has_one_class() -> None:
    words = [("x", "y", "z", "w")[int(c) + 2 * (i % 3 == 0)] for i, c in enumerate(CLASSES)]
    assert leaks(classes(CLASSES), age=RNG.random(40), code=words) == [
        "WARNING: column 'code' gives the target away on the 40 labelled training nodes: each of "
        "its 4 values has one class only; --drop 'code' unless it is known before the target is"
    ]
    numbers = np.where(CLASSES == 0, RNG.choice([1, 3, 5], 40), RNG.choice([2, 4], 40))
    (note,) = leaks(classes(CLASSES), number=numbers)
    assert "each of its 5 values has one class only" in note


def test_numbers_with_a_threshold() -> None:
    (note,) = leaks(classes(CLASSES), score=CLASSES * 5.0 + RNG.random(40))
    assert "all up to 0.9" in note
    assert "are 'a' and all from 5.0" in note
    three = np.arange(60) % 3
    (note,) = leaks(classes(three), score=np.array([7, 1, 4])[three] + RNG.random(60))
    assert "are 'b' and all from 4.0" in note
    assert "'c', and so on for 3 classes" in note


def test_a_number_of_two_classes_is_no_threshold() -> None:
    score = CLASSES + np.arange(40) / 50
    score[0] = score[CLASSES == 1].min()
    assert score[CLASSES == 0].max() == score[0]
    assert not leaks(classes(CLASSES), score=score)


def test_times_with_a_threshold() -> None:
    days = np.datetime64("2020-01-01") + CLASSES * 400 + np.arange(40)
    assert len(leaks(classes(CLASSES), closed=days)) == 1
    assert not leaks(classes(CLASSES), closed=np.datetime64("2020-01-01") + np.arange(40))


def test_a_column_that_is_filled_for_one_class() -> None:
    words = ["" if c else f"note {i}" for i, c in enumerate(CLASSES)]
    dates = np.where(CLASSES == 1, np.nan, RNG.random(40))
    notes = leaks(classes(CLASSES), note=words, date=dates)
    assert len(notes) == 2
    assert all("whether it is filled says it" in note for note in notes)


def test_only_where_it_is_filled() -> None:
    score = np.where(np.arange(40) < 30, CLASSES + 0.1 * RNG.random(40), np.nan)
    (note,) = leaks(classes(CLASSES), score=score)
    assert note.endswith("at the 30 where it is filled; --drop 'score' unless it is known before "
                         "the target is")  # fmt: skip


def test_labelled_training_nodes_alone_count() -> None:
    y = np.concatenate([CLASSES, [-1, 0, 1]])
    train = np.arange(43) < 41
    column = np.concatenate([CLASSES, [0, 1, 0]])
    assert len(leaks(classes(y), train, x=column)) == 1
    assert not leaks(classes(y), None, x=column)


def test_real_targets() -> None:
    y = RNG.normal(size=50)
    notes = leaks(
        real(y),
        scaled=3 - 2 * y + 1e-6 * RNG.normal(size=50),
        ordered=np.exp(5 * y),
        near=y + 0.2 * RNG.normal(size=50),
        other=RNG.normal(size=50),
    )
    assert [note.split("'")[1] for note in notes] == ["scaled", "ordered"]
    assert "the correlation of their ranks is" in notes[1]
    rounded = np.round(y * 200) / 200
    assert len(leaks(real(y), rounded=rounded)) == 1
    coded = [f"group {int(v * 4)}" for v in np.round(y)]
    assert "one target only" in leaks(real(np.round(y) ** 2), coded=coded)[0]


def test_large_numbers_do_not_overflow() -> None:
    y = RNG.normal(size=30)
    assert len(leaks(real(y), huge=1e300 * np.round(y, 6))) == 1


def test_several_targets() -> None:
    y = RNG.integers(0, 2, (60, 2)).astype(np.float64)
    y[:10, 0] = np.nan
    (note,) = leaks(real(y, "multilabel", ("m", "n")), x=y[:, 1])
    assert "gives label 'n' away on the 60 labelled" in note
    y = RNG.normal(size=(60, 2))
    (note,) = leaks(real(y), x=y[:, 1])
    assert "gives target 2 away" in note


# --- what is not -----------------------------------------------------------------------------


def test_too_little_is_no_evidence() -> None:
    assert not leaks(classes(CLASSES[:18]), x=CLASSES[:18])
    rare = np.array([1, 1] + [0] * 28)  # one of 435 columns of two such nodes does it
    assert not leaks(classes(rare), x=rare, y=rare + RNG.random(30) / 2)
    rare = np.array([1] * 10 + [0] * 400)
    assert len(leaks(classes(rare), x=rare)) == 1


def test_ids_and_constants_determine_nothing() -> None:
    ids = [f"p{i}" for i in range(40)]
    assert not leaks(classes(CLASSES), id=ids, row=np.arange(40), one=np.ones(40), no=[""] * 40)


def test_outliers_on_one_node_are_no_correlation() -> None:
    x, y = RNG.normal(size=(2, 50))
    x[7], y[7] = 1e9, 1e9
    assert np.corrcoef(x, y)[0, 1] > 0.9999
    assert not leaks(real(y), x=x)


def test_constant_or_unknown_targets() -> None:
    assert not leaks(classes(np.zeros(40)), x=CLASSES)
    assert not leaks(classes(np.full(40, -1)), x=CLASSES)
    assert not leaks(classes(CLASSES))


@pytest.mark.parametrize("positives", [1, 2, 3, 10])
def test_random_columns_of_small_tables_are_no_leaks(positives: int) -> None:
    """In 1,600 tables of 20 nodes and 5 random columns each at most a few may alarm."""
    alarms = 0
    for _ in range(400):
        y = RNG.permutation(np.array([1] * positives + [0] * (20 - positives)))
        columns = {f"c{k}": RNG.integers(0, k + 2, 20) for k in range(4)}
        alarms += bool(leaks(classes(y), real=RNG.random(20), **columns))
    assert alarms <= 2


def test_as_much_as_chance_allows() -> None:
    """Three tests of one column: the chance must be below 1/3000. Two of the C(20, k) orders of k
    nodes among 20 have a threshold."""
    for k, reported in ((4, False), (5, True)):
        y = np.array([1] * k + [0] * (20 - k))
        assert (2 / math.comb(20, k) < 1e-3 / 3) == reported
        assert bool(leaks(classes(y), x=y)) == reported


@settings(max_examples=60, deadline=None)
@given(
    m=st.integers(30, 80),
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(2, 5),
)
def test_a_copy_of_the_classes_is_found_in_any_spelling(m: int, seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(m) % k)
    spelling = rng.permutation(10)[:k]
    assert len(leaks(classes(y), x=spelling[y], z=[f"w{v}" for v in spelling[y]])) == 2
