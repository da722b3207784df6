"""Features that give the target away.

A column that determines the target on every labelled training node is rarely a lucky find: mostly
it was written down when the answer was known. It is reported, loudly, and kept.

What counts as too good to be chance is one rule for all tests. Suppose that a column has nothing to
do with the target; then every order of the ``m`` targets is equally likely, and there are
``N = m! / prod m_c!`` of them if class ``c`` occurs ``m_c`` times. If the column determines the
targets, they can be written down, given the column, in ``L`` nats: which value has which class,
instead of which node has. Fewer than ``e^L`` of the ``N`` orders can be written as shortly, so that
the chance is below ``e^L / N``. A column is reported if that is below ``FALSE_ALARMS`` divided by
the number of tests: at most one table of random columns in a thousand has a false alarm, however
few its nodes and however rare a class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.reading.words import is_missing
from coopsheaf.data.tables.targets.reader import Targets

MIN_ROWS = 20
FALSE_ALARMS = 1e-3
CLOSE = 0.9999  # a correlation
TESTS = 3  # of a column


@dataclass(frozen=True)
class Grouped:
    """Values by number: row ``i`` has value ``codes[i]``; ``counts[k]`` rows have value ``k``."""

    codes: NDArray[np.int64]
    counts: NDArray[np.int64]

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """``(m,)`` rows, those of one value after those of another."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where in ``order`` the rows of each value start."""
        return np.cumsum(self.counts) - self.counts


@dataclass(frozen=True)
class Answer:
    """One target of the training nodes.

    Args:
        what: the target in a message.
        rows: ``(m,)`` the training nodes of which it is known.
        values: ``(m,)`` class numbers, labels or real targets.
        grouped: the same by number.
        classes: the names of the classes, by number; empty if the values are numbers.
    """

    what: str
    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    grouped: Grouped
    classes: tuple[str, ...]


def find_leaks(
    table: Table, names: Sequence[str], targets: Targets, train: NDArray[np.bool_]
) -> list[str]:
    """A warning for each column that determines the target on the training nodes.

    - Values repeat (two rows a value on the average, at least), and each has one class, or one
      real target; or whether the column is filled says it.
    - Numbers of each class are in an interval of their own.
    - Numbers whose correlation with a real target, or that of their ranks, is above 0.9999.

    Args:
        names: the feature columns.
        train: ``(n,)`` mask of the training rows.
    """
    answers = _answers(targets, train)
    need = math.log(TESTS * max(1, len(names) * len(answers)) / FALSE_ALARMS)
    notes: list[str] = []
    for name in names:
        for answer in answers:
            reason = _reason(table.columns[name], answer, need)
            if reason:
                notes.append(
                    f"WARNING: column {show(name)} gives {answer.what} away on the "
                    f"{len(answer.rows)} labelled training nodes: {reason}; --drop {show(name)} "
                    "unless it is known before the target is"
                )
    return notes


def _answers(targets: Targets, train: NDArray[np.bool_]) -> list[Answer]:
    """The targets that can be looked at: enough nodes, more than one value."""
    y = targets.y.numpy()
    several = y.ndim == 2
    found: list[Answer] = []
    for i, values in enumerate(y.T if several else [y]):
        known = targets.known.numpy() & ~np.isnan(values)
        rows = np.flatnonzero(train & known)
        what = "the target"
        classes = targets.class_names
        if several:
            what = f"target {i + 1}"
            if targets.task == "multilabel":
                what, classes = f"label {show(targets.class_names[i])}", ("no", "yes")
        chosen = values[rows].astype(np.float64)
        if len(rows) >= MIN_ROWS and np.ptp(chosen) > 0:
            found.append(Answer(what, rows, chosen, _group(chosen), classes))
    return found


def _reason(cells: Cells, answer: Answer, need: float) -> str:
    """Why a column determines a target; empty if it does not, or may by chance.

    Args:
        need: how many nats must be saved.
    """
    y = answer.grouped
    values = _numbers(cells)
    if values is None:
        codes, texts = cells.distinct
        absent = np.array([is_missing(text) for text in texts])[codes[answer.rows]]
        x = _compact(codes[answer.rows])
    else:
        values = values[answer.rows]
        absent = np.isnan(values)
        reason = _by_size(values, answer, need)
        if reason:
            return reason + (
                f", at the {(~absent).sum()} where it is filled" if absent.any() else ""
            )
        x = _group(values if _repeat(values) else values[:0])
    if _saved(x, y) > need:
        which = "class" if answer.classes else "target"
        return f"each of its {len(x.counts)} values has one {which} only"
    if absent.any() and _saved(_compact(absent.astype(np.int64)), y) > need:
        return "whether it is filled says it"
    return ""


def _by_size(values: NDArray[np.float64], answer: Answer, need: float) -> str:
    """Why numbers, NaN where missing, determine a target by their size."""
    filled = ~np.isnan(values)
    x, targets = values[filled], answer.values[filled]
    if len(x) < MIN_ROWS or np.ptp(targets) == 0 or x.min() == x.max():
        return ""
    y = answer.grouped if filled.all() else _group(targets)
    if answer.classes:
        lengths = math.lgamma(len(y.counts) + 1)  # in which order the classes are
        if _orders(y.counts) - lengths <= need:
            return ""
        return _intervals(x, y, answer.classes, targets)
    grouped = _group(x)
    if min(_orders(y.counts), _orders(grouped.counts)) <= need:
        return ""
    ranks = _correlation(_ranks(grouped), _ranks(y))
    if abs(ranks) > CLOSE:
        return f"the correlation of their ranks is {ranks:.6f}"
    plain = _correlation(x, targets)
    # Two huge values on the same node by chance make a correlation, but not one of ranks.
    if abs(plain) > CLOSE and abs(ranks) > 0.9:
        return f"their correlation is {plain:.6f}"
    return ""


def _intervals(
    x: NDArray[np.float64], y: Grouped, classes: Sequence[str], targets: NDArray[np.float64]
) -> str:
    """Where the numbers of each class are, if each class has an interval of its own."""
    sorted_x = x[y.order]
    low = np.minimum.reduceat(sorted_x, y.starts)
    high = np.maximum.reduceat(sorted_x, y.starts)
    by_size = np.argsort(low)
    if not (high[by_size][:-1] < low[by_size][1:]).all():
        return ""
    names = [classes[int(targets[y.order[y.starts[c]]])] for c in by_size[:2]]
    first, second = by_size[:2]
    more = f", and so on for {len(by_size)} classes" if len(by_size) > 2 else ""
    return (
        f"all up to {high[first]:g} are {show(names[0])} and all from {low[second]:g} on "
        f"{show(names[1])}{more}"
    )


def _saved(x: Grouped, y: Grouped) -> float:
    """How many nats shorter targets can be written given a column; -inf if it says too little.

    The column must have two values or more that occur twice on the average, each with one target.
    """
    values, targets = len(x.counts), len(y.counts)
    if values < 2 or 2 * values > len(x.codes):
        return -math.inf
    target_of = np.empty(values, dtype=np.int64)
    target_of[x.codes] = y.codes
    if not np.array_equal(target_of[x.codes], y.codes):
        return -math.inf
    sizes = np.bincount(target_of, minlength=targets)
    how_many = _log_choose(values + targets - 1, targets - 1)
    return _orders(y.counts) - _orders(sizes) - how_many


def _orders(counts: NDArray[np.int64]) -> float:
    """The logarithm of the number of orders of so many things of each kind."""
    logs = torch.from_numpy(counts + 1.0).lgamma().sum().item()
    return math.lgamma(int(counts.sum()) + 1) - logs


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _numbers(cells: Cells) -> NDArray[np.float64] | None:
    """``(rows,)`` numbers or times, NaN where missing."""
    times = cells.times
    if times is None:
        return cells.numbers
    return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))


def _group(values: NDArray[np.float64]) -> Grouped:
    """Values in ascending order."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return Grouped(codes.reshape(-1), counts)


def _repeat(values: NDArray[np.float64]) -> bool:
    """Whether each value occurs twice on the average; to sort is quicker than to group."""
    ordered = np.sort(values)
    changes = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1])
    return 2 * (1 + int(changes.sum())) <= len(values)


def _compact(codes: NDArray[np.int64]) -> Grouped:
    """Numbers from zero on, without those that do not occur."""
    counts = np.bincount(codes)
    number = np.cumsum(counts > 0) - 1
    return Grouped(number[codes], counts[counts > 0])


def _ranks(values: Grouped) -> NDArray[np.float64]:
    """``(m,)`` ranks; equal values have the mean of theirs."""
    return (np.cumsum(values.counts) - (values.counts - 1) / 2)[values.codes]


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """That of two columns, neither constant."""
    scaled = [v / np.abs(v).max() for v in (x, y)]  # squares of large numbers overflow
    a, b = (v - v.mean() for v in scaled)
    size = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / size if size > 0 else 0.0
