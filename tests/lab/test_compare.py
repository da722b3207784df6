"""Comparisons over splits: which runs may be compared at all."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from report.example import make
from scipy import stats

from coopsheaf.report import rows
from coopsheaf.report.rows import Row
from coopsheaf.train.records import Record
from lab.compare import QUESTIONS, compare, standard_error, twins
from lab.published import PAPER

summarise = partial(rows.summarise, reference=PAPER)


def splits(tests: dict[int, float], **changes: Any) -> list[Record]:
    return [make(split=split, test=test, **changes) for split, test in tests.items()]


def row(tests: dict[int, float], **changes: Any) -> Row:
    (only,) = summarise(splits(tests, **changes))
    return only


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
    undefined = row({0: 0.5, 1: None, 2: 0.9})  # type: ignore[dict-item]
    paired = compare(undefined, row({0: 0.4, 1: 0.4, 2: 0.4}))
    assert paired is not None
    assert paired.first == (0.5, 0.9)
    seeds = {"dataset": "peptides-func", "metric": "ap"}
    first, second = (summarise([make(seed=k, **seeds) for k in (1, 2)])[0] for _ in range(2))
    assert compare(first, second) is None  # equal seeds have nothing in common
    with pytest.raises(ValueError, match="different data"):
        compare(row({0: 0.5}), row({0: 0.5}, dataset="wisconsin"))


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
    more = {key: options.pop(key) for key in ("processing", "model_version", "dataset_remark", "val") if key in options}  # fmt: skip
    config = {"train": {"lr": lr}, "data": {}, **options.pop("config", {})}
    config["recipe"] = {"name": hash}
    model = {"name": name, "scale": "exp", "semantics": "paper", "orthogonal": "cayley", **options}
    return splits(
        tests,
        model=name,
        semantics=model["semantics"],
        config_hash=hash,
        config={"model": model, **config},
        **more,
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
        ((_, _, paired),) = twins(question, records)
        assert paired.differences == pytest.approx(differences)


def test_what_differs_in_more_is_not_compared() -> None:
    stored = {"direction": "stored"}
    for other in (
        {"processing": stored},
        {"dataset_remark": "another file"},
        {"config": {"batch": {"kind": "clusters"}}},
        {"lr": 0.2},
        {"stalk_dim": 5},
    ):
        first = csnn({0: 0.5}, "a", **({"processing": stored} if "processing" in other else {}))
        records = [*first, *csnn({0: 0.4}, "b", semantics="released", **other)]
        assert twins(ORDER, records) == [], other
    assert (
        len(twins(ORDER, [*csnn({0: 0.5}, "a"), *csnn({0: 0.4}, "b", semantics="released")])) == 1
    )


def test_only_the_newest_version_counts() -> None:
    old = [*csnn({0: 0.5, 1: 0.5}, "a"), *csnn({0: 0.4, 1: 0.4}, "b", semantics="released")]
    new = [make(**{**vars(record), "model_version": 2, "split": 0}) for record in old[::2]]
    ((first, _, paired),) = twins(ORDER, [*old, *new])
    assert first.model_version == 2
    assert len(paired.differences) == 1
    # Each model has versions of its own.
    identity = csnn({0: 0.1}, "c", name="csnn-identity", scale="unit", orthogonal="identity")
    assert len(twins(MAPS, [*new, *identity])) == 1


def test_of_several_pairs_those_with_the_most_splits_are_kept_best_first() -> None:
    """Identity maps have twins with every kind of map; the first recorded is not the best."""
    records = [
        *csnn({0: 0.9}, "a", orthogonal="euler"),
        *csnn({0: 0.5, 1: 0.6}, "b", val=0.5),
        *csnn({0: 0.1, 1: 0.1}, "c", orthogonal="householder", val=0.6),
        *csnn({0: 0.4, 1: 0.4}, "d", name="csnn-identity", scale="unit", orthogonal="identity"),
        *csnn({0: 0.8, 1: 0.8}, "e", orthogonal="identity", val=0.9),  # nothing is learned here
    ]
    pairs = twins(MAPS, records)
    assert [first.config_hash for first, _, _ in pairs] == ["c", "b"]  # by validation, not test
    assert [paired.mean for _, _, paired in pairs] == pytest.approx([-0.3, 0.15])
