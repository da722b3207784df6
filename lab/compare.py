"""Paired comparisons of our runs, over splits. Imports no PyTorch.

How two settings are compared split by split is in :mod:`coopsheaf.report.paired`; here is which
runs may be compared at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import stdev

from coopsheaf.report.paired import Paired
from coopsheaf.report.reference import base_name
from coopsheaf.report.rows import Row, ablation, newest, sign_of, summarise, validation
from coopsheaf.train.records import Record
from lab.published import PAPER


def compare(first: Row, second: Row) -> Paired | None:
    """The first against the second on the splits where both have a test score.

    ``None`` if there are none, or if the runs differ in seeds: equal seeds have nothing in common.
    """
    if first.column != second.column:
        raise ValueError(f"rows of different data: {first.column} and {second.column}")
    if first.over != "splits":
        return None
    ours, theirs = first.test_by_run, second.test_by_run
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    a, b = (tuple(side[split] for split in common) for side in (ours, theirs))
    table = PAPER.table_with(base_name(first.dataset))
    return Paired(a, b, sign_of(first.metric), table.test_per_train if table else 0.5)


def standard_error(row: Row) -> float | None:
    """Of the mean test score: sample deviation over the root of the runs; ``None`` for one run."""
    return stdev(row.tests) / len(row.tests) ** 0.5 if len(row.tests) > 1 else None


@dataclass(frozen=True)
class Question:
    """What two settings that are alike in everything else differ in.

    Args:
        name: of its place in a document.
        first, second: what the two are called.
        is_first, is_second: which records belong to them.
        ignored: settings of the model in which the two may differ.
    """

    name: str
    first: str
    second: str
    is_first: Callable[[Record], bool]
    is_second: Callable[[Record], bool]
    ignored: tuple[str, ...]


def _is_csnn(record: Record, semantics: str) -> bool:
    return record.model == "csnn" and record.semantics == semantics and not ablation(record)


def _has_zeros(record: Record) -> bool:
    return record.semantics == "paper" and ablation(record) == "exact zeros"


QUESTIONS: tuple[Question, ...] = (
    Question(
        "order",
        "paper's order",
        "released order",
        lambda r: _is_csnn(r, "paper"),
        lambda r: _is_csnn(r, "released"),
        ("semantics",),
    ),
    Question(
        "maps",
        "learned maps",
        "identity maps",
        lambda r: _is_csnn(r, "paper"),
        lambda r: r.model == "csnn-identity" and r.semantics == "paper",
        ("name", "orthogonal", "scale"),
    ),
    Question(
        "scales",
        "exact zeros",
        "positive scales",
        _has_zeros,
        lambda r: _is_csnn(r, "paper"),
        ("scale",),
    ),
)

Pair = tuple[Row, Row, Paired]


def twins(question: Question, records: Iterable[Record]) -> list[Pair]:
    """Pairs of settings that a question compares, on graphs whose edges go both ways.

    Only the newest version of a model counts. Of a dataset's pairs those with the most common
    splits are kept, the best first by their two mean validation scores together.
    """
    sides: tuple[dict[str, list[Record]], dict[str, list[Record]]] = ({}, {})
    for record in newest(records):
        if record.processing.get("direction") != "undirected":
            continue
        for side, belongs in zip(sides, (question.is_first, question.is_second), strict=True):
            if belongs(record):
                side.setdefault(_likeness(record, question.ignored), []).append(record)
    found: dict[object, list[Pair]] = {}
    for likeness in (key for key in sides[0] if key in sides[1]):
        for first in summarise(sides[0][likeness], PAPER):
            for second in summarise(sides[1][likeness], PAPER):
                paired = compare(first, second)
                if paired is not None:
                    found.setdefault(first.column, []).append((first, second, paired))
    kept = []
    for pairs in found.values():
        pairs.sort(key=_worth, reverse=True)
        most = len(pairs[0][2].differences)
        kept += [pair for pair in pairs if len(pair[2].differences) == most]
    return kept


def _likeness(record: Record, ignored: Sequence[str]) -> str:
    """What two records must share to be twins: data, seed and all settings but those ignored."""
    settings = {key: value for key, value in record.config.items() if key != "recipe"}
    model = settings.get("model", {})
    settings["model"] = {key: value for key, value in model.items() if key not in ignored}
    data = (record.dataset, record.dataset_checksum, record.dataset_remark, record.metric)
    return json.dumps([settings, data, record.seed], sort_keys=True)


def _worth(pair: Pair) -> tuple[int, float]:
    first, second, paired = pair
    return len(paired.differences), validation(first) + validation(second)
