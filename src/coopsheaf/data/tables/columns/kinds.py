"""The kinds of feature columns: what was decided about each in training, applied to any table."""

from __future__ import annotations

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.tables.columns.dates import PATTERNS, read_times
from coopsheaf.data.tables.columns.findings import Report
from coopsheaf.data.tables.columns.formats import (
    AS_PYTHON,
    DECIMAL_MARKS,
    PLAIN,
    THOUSANDS_MARKS,
    NumberFormat,
    read_numbers,
)
from coopsheaf.data.tables.columns.hashing import category_hashes, category_rows, scatter, word_rows
from coopsheaf.data.tables.columns.scaling import FAR, Scale, fill_scaled
from coopsheaf.data.tables.columns.stored import Stored
from coopsheaf.data.tables.reading.words import MISSING, is_missing

HASHED_WIDTH = 128
WORDS_WIDTH = 256
GAP = "(missing)"
MAX_WIDTH = 65_536  # of a stored hashed column
# The words for a gap that encoders knew before they stored them.
OLD_MISSING = frozenset({"", "NA", "N/A"})

_DAY = 86_400_000_000  # microseconds
_ROUNDING = 2e-3  # days that single precision may take off a date
_MAX_DAYS = 1.1e8  # 300,000 years, all that microseconds can count
_CYCLES = ("weekday sin", "weekday cos", "year sin", "year cos", "clock sin", "clock cos")


@dataclass(frozen=True)
class Column(ABC):
    """A column of a table that becomes one or more features."""

    kind: ClassVar[str]

    name: str

    @property
    @abstractmethod
    def label(self) -> str:
        """The kind in a message."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature."""

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.feature_names)

    @abstractmethod
    def fill(self, part: NDArray[np.float32], report: Report) -> None:
        """Write ``(rows, width)`` features of ``report.table`` in place; ``part`` is zero."""

    def spell(self, part: NDArray[np.float32]) -> str:
        """The cell that ``(width,)`` features were made of, as they tell it; empty if they do not.

        A missing number in a column without any in training was set to the mean, and reads so.
        """
        return ""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain values."""

    @classmethod
    @abstractmethod
    def from_json(cls, stored: Stored) -> Column: ...


@dataclass(frozen=True)
class NumericColumn(Column):
    """One column ``(value - mean) / std``; zero where missing, and everywhere if constant.

    Args:
        mean, std: of the training rows; ``std`` is 0 for a constant column. A column of truth
            values has mean 0 and deviation 1.
        indicator: whether a second column says where the value is missing: if it was, somewhere
            in training.
        format: how the numbers are written.
        low, high: the smallest and largest number of the training rows, if known.
    """

    kind: ClassVar[str] = "numeric"

    mean: float
    std: float
    indicator: bool
    format: NumberFormat = PLAIN
    low: float | None = None
    high: float | None = None

    @property
    def label(self) -> str:
        return "0/1" if self.format.truths else "numeric"

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}=(missing)")[: 1 + self.indicator]

    def fill(self, part: NDArray[np.float32], report: Report) -> None:
        numbers = read_numbers(report.table.columns[self.name], self.format)
        report.add_odd(self.name, numbers.odd, numbers.values, "a number")
        scale = Scale(self.mean, self.std, self.low, self.high)
        far = 0.0 if self.format.truths else FAR
        fill_scaled(part[:, 0], self.name, numbers.values, scale, report, far=far)
        absent = np.isnan(numbers.values)
        if self.indicator:
            part[:, 1] = absent
        else:
            report.add_imputed(self.name, absent, "0" if self.format.truths else "the mean")

    def spell(self, part: NDArray[np.float32]) -> str:
        if self.indicator and part[1]:
            return GAP
        value = self.mean + float(part[0]) * self.std
        return ("yes" if value else "no") if self.format.truths else f"{value:.4g}"

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **vars(self), "format": dict(vars(self.format))}

    @classmethod
    def from_json(cls, stored: Stored) -> NumericColumn:
        format = AS_PYTHON
        if "format" in stored:
            part = stored.part("format")
            format = NumberFormat(
                part.text("decimal", DECIMAL_MARKS),
                part.text("thousands", THOUSANDS_MARKS),
                part.truth("truths"),
                part.truth("zeros"),
            )
        return cls(
            stored.text("name"),
            stored.number("mean"),
            stored.number("std", low=0),
            stored.truth("indicator"),
            format,
            stored.optional_number("low"),
            stored.optional_number("high"),
        )


@dataclass(frozen=True)
class TimeColumn(Column):
    """A date or time: days, standardised, and where it is in the week, the year and the day.

    Args:
        mean, std, low, high: as of a number: days since 1970 began.
        indicator: whether a last column says where the time is missing.
        pattern: how dates are written.
        clock: whether there are columns for the time of day: if training had any but midnight.
    """

    kind: ClassVar[str] = "time"

    mean: float
    std: float
    indicator: bool
    pattern: str
    clock: bool
    low: float | None = None
    high: float | None = None

    @property
    def label(self) -> str:
        return "date"

    @property
    def feature_names(self) -> tuple[str, ...]:
        cycles = _CYCLES if self.clock else _CYCLES[:4]
        names = (self.name, *(f"{self.name} {cycle}" for cycle in cycles))
        return (*names, f"{self.name}=(missing)") if self.indicator else names

    def fill(self, part: NDArray[np.float32], report: Report) -> None:
        times = read_times(report.table.columns[self.name], self.pattern)
        assert times is not None  # a pattern was given
        days = days_of(times.values)
        report.add_odd(self.name, times.odd, days, f"a date such as {PATTERNS[self.pattern]}")
        scale = Scale(self.mean, self.std, self.low, self.high)
        fill_scaled(part[:, 0], self.name, days, scale, report, spell=spell_day)
        there = ~np.isnan(days)
        dates = times.values[there].astype("datetime64[D]")
        turns = [
            (dates.astype(np.int64) + 3) % 7 / 7,  # Monday is 0; 1970 began on a Thursday
            (dates - dates.astype("datetime64[Y]")).astype(np.int64) / 365.25,
            (times.values[there] - dates).astype(np.int64) / _DAY,
        ]
        for at, turn in enumerate(turns[: 2 + self.clock]):
            part[there, 1 + 2 * at] = np.sin(2 * np.pi * turn)
            part[there, 2 + 2 * at] = np.cos(2 * np.pi * turn)
        if self.indicator:
            part[:, -1] = ~there
        else:
            report.add_imputed(self.name, ~there, "the mean")

    def spell(self, part: NDArray[np.float32]) -> str:
        if self.indicator and part[-1]:
            return GAP
        return spell_day(self.mean + float(part[0]) * self.std + _ROUNDING)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **vars(self)}

    @classmethod
    def from_json(cls, stored: Stored) -> TimeColumn:
        return cls(
            stored.text("name"),
            stored.number("mean", -_MAX_DAYS, _MAX_DAYS),
            stored.number("std", 0, _MAX_DAYS),
            stored.truth("indicator"),
            stored.text("pattern", PATTERNS),
            stored.truth("clock"),
            stored.optional_number("low", -_MAX_DAYS, _MAX_DAYS),
            stored.optional_number("high", -_MAX_DAYS, _MAX_DAYS),
        )


@dataclass(frozen=True)
class CategoricalColumn(Column):
    """One-hot: a column per category seen in training, one for others, one for missing.

    Args:
        missing: the words for a gap.
    """

    kind: ClassVar[str] = "categorical"

    categories: tuple[str, ...]
    missing: frozenset[str] = MISSING

    @property
    def label(self) -> str:
        return "categorical"

    @property
    def width(self) -> int:
        return len(self.categories) + 2

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={v}" for v in (*self.categories, "(other)", GAP))

    def fill(self, part: NDArray[np.float32], report: Report) -> None:
        codes, texts = report.table.columns[self.name].distinct
        known = {category: code for code, category in enumerate(self.categories)}
        other, missing = len(known), len(known) + 1
        place = np.array(
            [missing if t.strip() in self.missing else known.get(t, other) for t in texts],
            dtype=np.int64,
        )[codes]
        part[np.arange(len(place)), place] = 1
        report.add_unseen(self.name, np.flatnonzero(place == other))

    def spell(self, part: NDArray[np.float32]) -> str:
        return (*self.categories, "(other)", GAP)[int(part.argmax())]

    def to_json(self) -> dict[str, Any]:
        lists = {"categories": list(self.categories), "missing": sorted(self.missing)}
        return {"kind": self.kind, "name": self.name, **lists}

    @classmethod
    def from_json(cls, stored: Stored) -> CategoricalColumn:
        missing = frozenset(stored.texts("missing")) if "missing" in stored else OLD_MISSING
        return cls(stored.text("name"), stored.texts("categories"), missing)


@dataclass(frozen=True)
class HashedColumn(Column):
    """More categories than columns: each has a few signed entries; the last column is for missing.

    Args:
        size: number of columns that the categories share.
        seen: the numbers of the training categories, sorted, four bytes each: to know later
            which are new.
    """

    kind: ClassVar[str] = "hashed"

    size: int
    seen: bytes

    @classmethod
    def of(cls, name: str, categories: Sequence[str]) -> HashedColumn:
        numbers = np.unique(category_hashes(categories)[:, -1])
        return cls(name, HASHED_WIDTH, numbers.astype("<u4").tobytes())

    @property
    def label(self) -> str:
        return "hashed categorical"

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (*(f"{self.name} hash {i}" for i in range(self.size)), f"{self.name}=(missing)")

    def fill(self, part: NDArray[np.float32], report: Report) -> None:
        codes, texts = report.table.columns[self.name].distinct
        scatter(part[:, : self.size], codes, texts, category_rows)
        gap = np.array([is_missing(text) for text in texts], dtype=bool)
        part[gap[codes], : self.size] = 0
        part[:, self.size] = gap[codes]
        numbers = category_hashes(texts)[:, -1]
        unseen = ~np.isin(numbers, np.frombuffer(self.seen, dtype="<u4")) & ~gap
        report.add_unseen(self.name, np.flatnonzero(unseen[codes]))

    def spell(self, part: NDArray[np.float32]) -> str:
        return GAP if part[self.size] else ""

    def to_json(self) -> dict[str, Any]:
        seen = base64.b64encode(self.seen).decode()
        return {"kind": self.kind, "name": self.name, "size": self.size, "seen": seen}

    @classmethod
    def from_json(cls, stored: Stored) -> HashedColumn:
        size = stored.whole("size", 1, MAX_WIDTH)
        return cls(stored.text("name"), size, stored.data("seen", 4))


@dataclass(frozen=True)
class WordsColumn(Column):
    """Free text as hashed word counts, of unit length; zero where missing.

    Args:
        size: number of columns that the words share.
    """

    kind: ClassVar[str] = "words"

    size: int = WORDS_WIDTH

    @property
    def label(self) -> str:
        return "text"

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name} words {i}" for i in range(self.size))

    def fill(self, part: NDArray[np.float32], report: Report) -> None:
        codes, texts = report.table.columns[self.name].distinct
        scatter(part, codes, ["" if is_missing(text) else text for text in texts], word_rows)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **vars(self)}

    @classmethod
    def from_json(cls, stored: Stored) -> WordsColumn:
        return cls(stored.text("name"), stored.whole("size", 1, MAX_WIDTH))


KINDS: dict[str, type[Column]] = {
    kind.kind: kind
    for kind in (NumericColumn, TimeColumn, CategoricalColumn, HashedColumn, WordsColumn)
}


def days_of(times: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """``(rows,)`` days since 1970 began, NaN where missing."""
    days = times.astype("datetime64[us]").astype(np.int64) / _DAY
    return np.where(np.isnat(times), np.nan, days)


def spell_day(days: float) -> str:
    """A number of days as a date."""
    return str(np.datetime64(math.floor(days), "D"))
