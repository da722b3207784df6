"""Comparisons over splits: intervals, verdicts, and which runs may be compared at all."""

from __future__ import annotations

from typing import Any

import pytest
from bench.example import make
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from coopsheaf.bench.compare import QUESTIONS, Paired, compare, standard_error, twins
from coopsheaf.bench.records import Record
from coopsheaf.bench.tables import Row, summarise

SCORES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=10)


def splits(tests: dict[int, float], **changes: Any) -> list[Record]:
    return [make(split=split, test=test, **changes) for split, test in tests.items()]


def row(tests: dict[int, float], **changes: Any) -> Row:
    (only,) = summarise(splits(tests, **changes))
    return only


@given(SCORES)
def test_the_interval_is_that_of_the_paired_t_test(scores: list[tuple[float, float]]) -> None:
    first, second = zip(*scores, strict=True)
    paired = Paired(first, second)
    half = paired.half_width
    assert half is not None
    differences = [a - b for a, b in scores]
    scale = stats.sem(differences)
    want = stats.t.ppf(0.975, len(scores) - 1) * scale
    assert half == pytest.approx(want, rel=1e-3, abs=1e-12)
    assert (paired.verdict == "undecided") == (abs(paired.mean) <= half)


def test_many_runs_have_the_normal_interval() -> None:
    paired = Paired((0.5, 0.6) * 20, (0.4, 0.4) * 20)
    want = 1.96 * stats.sem([0.1, 0.2] * 20)
    assert paired.half_width == pytest.approx(want, rel=1e-3)


def test_only_common_splits_count_and_better_is_positive() -> None:
    paired = compare(row({0: 0.5, 2: 0.7, 3: 0.8}), row({3: 0.6, 0: 0.4, 1: 0.9}))
    assert paired is not None
    assert paired.first == (0.5, 0.8)
    assert paired.differences == pytest.approx((0.1, 0.2))
    error = compare(
        row({0: 0.2, 1: 0.2}, dataset="own", metric="mae"),
        row({0: 0.3, 1: 0.4}, dataset="own", metric="mae"),
    )
    assert error is not None
    assert error.mean == pytest.approx(0.15)
    assert compare(row({0: 0.5}), row({1: 0.5})) is None
    with pytest.raises(ValueError, match="different data"):
        compare(row({0: 0.5}), row({0: 0.5}, dataset="wisconsin"))


def test_verdicts() -> None:
    assert Paired((0.9, 0.91), (0.5, 0.5)).verdict == "better"
    assert Paired((0.5, 0.5), (0.9, 0.91)).verdict == "worse"
    assert Paired((0.5, 0.5), (0.9, 0.91), lower_is_better=True).verdict == "better"
    assert Paired((0.9, 0.1), (0.5, 0.5)).verdict == "undecided"
    assert Paired((0.9,), (0.5,)).verdict == "undecided"  # one split proves nothing


def test_standard_errors() -> None:
    tests = [0.1, 0.4, 0.3, 0.9]
    assert standard_error(row(dict(enumerate(tests)))) == pytest.approx(stats.sem(tests))
    assert standard_error(row({0: 0.5})) is None


# --- questions ------------------------------------------------------------------------------------

ORDER, MAPS, SCALES = QUESTIONS
UNDIRECTED = {"direction": "undirected"}


def csnn(tests: dict[int, float], hash: str, **options: Any) -> list[Record]:
    name = options.pop("name", "csnn")
    lr = options.pop("lr", 0.1)
    processing = options.pop("processing", UNDIRECTED)
    model = {"name": name, "scale": "exp", "semantics": "paper", "orthogonal": "x", **options}
    return splits(
        tests,
        model=name,
        semantics=model["semantics"],
        config_hash=hash,
        config={"model": model, "train": {"lr": lr}, "data": {}},
        processing=processing,
    )


def test_twins_differ_in_one_thing() -> None:
    records = [
        *csnn({0: 0.5, 1: 0.6}, "a"),
        *csnn({0: 0.4, 1: 0.4}, "b", semantics="released"),
        *csnn({0: 0.9, 1: 0.9}, "c", semantics="released", lr=0.2),
        *csnn({0: 0.3, 1: 0.3}, "d", name="csnn-identity", scale="unit", orthogonal="identity"),
        *csnn({0: 0.7, 1: 0.7}, "e", scale="rectified"),
    ]
    for question, differences in ((ORDER, (0.1, 0.2)), (MAPS, (0.2, 0.3)), (SCALES, (0.2, 0.1))):
        ((_, _, paired),) = twins(question, records, summarise)
        assert paired.differences == pytest.approx(differences)


def test_one_way_edges_and_other_versions_are_not_compared() -> None:
    stored = {"direction": "stored"}
    records = [
        *csnn({0: 0.5}, "a", processing=stored),
        *csnn({0: 0.4}, "b", semantics="released", processing=stored),
        *csnn({0: 0.5}, "c"),
        *(
            make(**{**vars(r), "model_version": 2})
            for r in csnn({0: 0.1}, "d", semantics="released")
        ),
    ]
    assert twins(ORDER, records, summarise) == []


def test_of_several_pairs_the_one_with_the_most_splits_is_kept() -> None:
    records = [
        *csnn({0: 0.5}, "a", lr=0.3),
        *csnn({0: 0.1}, "b", lr=0.3, semantics="released"),
        *csnn({0: 0.5, 1: 0.6}, "c"),
        *csnn({0: 0.4, 1: 0.4}, "d", semantics="released"),
    ]
    ((first, _, paired),) = twins(ORDER, records, summarise)
    assert first.config_hash == "c"
    assert len(paired.differences) == 2
