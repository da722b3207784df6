"""Paired comparisons over splits. Imports no PyTorch.

Two settings that were run on the same splits are compared split by split: the splits differ more
from each other than the settings do, and what they have in common cancels. The interval is that
of Student's t for the mean difference,

    mean ± t(0.975, n - 1) · s / sqrt(n),

with s the sample standard deviation of the n differences. Splits of one graph overlap, so the
interval is a little too narrow; it is a guide, not a proof.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from coopsheaf.bench.records import Record
from coopsheaf.bench.tables import LOWER_IS_BETTER, Row

# The 0.975 quantile of Student's t by degrees of freedom; benchmarks have at most ten splits.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_NORMAL = 1.960

VERDICTS = ("better", "worse", "undecided")


@dataclass(frozen=True)
class Paired:
    """Two settings on their common splits, in the order of the splits.

    Args:
        first, second: their test scores.
        lower_is_better: whether the scores are errors.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    lower_is_better: bool = False

    @property
    def differences(self) -> tuple[float, ...]:
        """One per split; positive where the first is better."""
        sign = -1.0 if self.lower_is_better else 1.0
        return tuple(sign * (a - b) for a, b in zip(self.first, self.second, strict=True))

    @property
    def mean(self) -> float:
        return fmean(self.differences)

    @property
    def half_width(self) -> float | None:
        """Of the 95 % interval around the mean; ``None`` for a single split."""
        n = len(self.differences)
        if n < 2:
            return None
        t = _T[n - 2] if n - 2 < len(_T) else _NORMAL
        return t * stdev(self.differences) / n**0.5

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` if the interval excludes zero, ``"undecided"`` if not."""
        half = self.half_width
        if half is None or abs(self.mean) <= half:
            return "undecided"
        return "better" if self.mean > 0 else "worse"


def compare(first: Row, second: Row) -> Paired | None:
    """The first against the second on their common splits; ``None`` if they have none."""
    if first.column != second.column:
        raise ValueError(f"rows of different data: {first.column} and {second.column}")
    if any(len(row.runs) != len(row.tests) for row in (first, second)):
        return None  # where a score is not defined, nobody knows which splits the others are of
    ours, theirs = (dict(zip(row.runs, row.tests, strict=True)) for row in (first, second))
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    a, b = (tuple(side[split] for split in common) for side in (ours, theirs))
    return Paired(a, b, first.metric in LOWER_IS_BETTER)


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


def _model(record: Record) -> Mapping[str, Any]:
    model: Mapping[str, Any] = record.config.get("model", {})
    return model


def _is_plain(record: Record) -> bool:
    """CSNN with learned maps and the scales of the paper."""
    return record.model == "csnn" and _model(record).get("scale") == "exp"


QUESTIONS: tuple[Question, ...] = (
    Question(
        "order",
        "paper's order",
        "released order",
        lambda r: _is_plain(r) and r.semantics == "paper",
        lambda r: _is_plain(r) and r.semantics == "released",
        ("semantics",),
    ),
    Question(
        "maps",
        "learned maps",
        "identity maps",
        lambda r: _is_plain(r) and r.semantics == "paper",
        lambda r: r.model == "csnn-identity" and r.semantics == "paper",
        ("name", "orthogonal", "scale"),
    ),
    Question(
        "scales",
        "exact zeros",
        "positive scales",
        lambda r: (
            r.model == "csnn" and _model(r).get("scale") == "rectified" and r.semantics == "paper"
        ),
        lambda r: _is_plain(r) and r.semantics == "paper",
        ("scale",),
    ),
)


def twins(
    question: Question, records: Iterable[Record], make_rows: Callable[[list[Record]], list[Row]]
) -> list[tuple[Row, Row, Paired]]:
    """Pairs of settings that a question compares, on graphs whose edges go both ways.

    Where several settings of a dataset have such a twin, the pair with the most common splits is
    kept, and of equals the one whose two mean validation scores are the best together.
    """
    sides: list[dict[str, list[Record]]] = [{}, {}]
    for record in records:
        if record.processing.get("direction") != "undirected":
            continue
        for side, belongs in zip(sides, (question.is_first, question.is_second), strict=True):
            if belongs(record):
                side.setdefault(_likeness(record, question.ignored), []).append(record)
    found: dict[tuple[object, ...], tuple[Row, Row, Paired]] = {}
    for likeness in (key for key in sides[0] if key in sides[1]):
        first, second = (make_rows(side[likeness]) for side in sides)
        paired = compare(first[0], second[0])
        if paired is None:
            continue
        pair = (first[0], second[0], paired)
        place = first[0].column
        if place not in found or _worth(pair) > _worth(found[place]):
            found[place] = pair
    return list(found.values())


def _likeness(record: Record, ignored: Sequence[str]) -> str:
    """What two records must share to be twins: data, seed and all settings but those ignored."""
    settings = {
        "model": {key: value for key, value in _model(record).items() if key not in ignored},
        "train": record.config.get("train", {}),
        "data": record.config.get("data", {}),
        "dataset": (record.dataset, record.dataset_checksum, record.metric, record.seed),
        "version": record.model_version,
    }
    return json.dumps(settings, sort_keys=True)


def _worth(pair: tuple[Row, Row, Paired]) -> tuple[int, float]:
    first, second, paired = pair
    sign = -1.0 if first.metric in LOWER_IS_BETTER else 1.0
    values = [row.val_mean for row in (first, second) if row.val_mean is not None]
    return len(paired.differences), sign * sum(values)
