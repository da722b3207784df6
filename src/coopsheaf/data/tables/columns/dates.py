"""Dates and times as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.nearly import GOOD, MISSING_CELL, ODD, nearly_all
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.words import is_missing

# The order of day, month and year. A date that begins with its year is read in every one.
PATTERNS = {"ymd": "2020-01-31", "dmy": "31/01/2020", "mdy": "01/31/2020"}
MAX_LENGTH = 64

_TIME = re.compile(
    r"(?:([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})|([0-9]{1,2})([./-])([0-9]{1,2})\6([0-9]{4}))"
    r"(?:(?:T|,?\s+)([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?"
    r"\s?([AaPp][Mm])?\s?(Z|z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DAY = 86_400_000_000  # microseconds
_NO_REST = -2 * _DAY  # or less: there is no such second or zone


@dataclass(frozen=True)
class Times:
    """A column read as dates and times.

    Args:
        values: ``(rows,)`` of ``datetime64[us]``, in UTC where a cell names its offset; NaT where
            missing or odd.
        odd: rows that are neither times nor missing.
        pattern: how they were read, one of ``"ymd"``, ``"dmy"`` and ``"mdy"``.
        remarks: what was not clear about the pattern, a line each.
    """

    values: NDArray[np.datetime64]
    odd: NDArray[np.int64]
    pattern: str
    remarks: tuple[str, ...] = ()


class TimeReading(NamedTuple):
    """Different texts as times: ``(texts,)`` of ``datetime64[us]``, and what each text is."""

    values: NDArray[np.datetime64]
    kinds: NDArray[np.int8]


def read_times(cells: Cells, pattern: str | None = None) -> Times | None:
    """Read a column as dates and times.

    Args:
        pattern: the one to apply, whatever the cells are. By default it is decided from the
            column, and the result is ``None`` unless (nearly) every filled cell is a time.
    """
    if cells.times is not None:
        return Times(cells.times, np.empty(0, dtype=np.int64), pattern or "ymd")
    codes, texts = cells.distinct
    scan = TimeTexts(texts)
    remarks: tuple[str, ...] = ()
    counts = np.bincount(codes, minlength=len(texts))
    decided = pattern
    if decided is None:
        decided, remarks = scan.decide(counts)
    values, kinds = scan.read(decided)
    if pattern is None:
        filled = int(counts[kinds != MISSING_CELL].sum())
        if not nearly_all(int(counts[kinds == GOOD].sum()), filled):
            return None
    return Times(values[codes], np.flatnonzero((kinds == ODD)[codes]), decided, remarks)


class TimeTexts:
    """Different texts, taken apart once, that can be read in several patterns."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._fields = np.full((len(texts), 8), -1, dtype=np.int64)
        self._kinds = np.full(len(texts), ODD, dtype=np.int8)
        for at, text in enumerate(texts):
            found = None if len(text) > MAX_LENGTH else _TIME.fullmatch(text.strip())
            if found is not None:
                self._fields[at] = _fields(found)
            elif is_missing(text):
                self._kinds[at] = MISSING_CELL

    def read(self, pattern: str) -> TimeReading:
        """The times of one pattern, and what each text is."""
        year_first, year, first, second, hour, minute, rest, _ = self._fields.T
        swapped = (year_first == 0) & (pattern == "dmy")
        month, day = np.where(swapped, second, first), np.where(swapped, first, second)
        sound = (year > 0) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
        sound &= (hour >= 0) & (hour <= 23) & (minute >= 0) & (minute <= 59) & (rest > _NO_REST)
        if pattern == "ymd":
            sound &= year_first == 1
        months = np.where(sound, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
        dates = months.astype("datetime64[D]") + np.where(sound, day - 1, 0)
        sound &= dates.astype("datetime64[M]") == months  # no 30 February
        clock = np.where(sound, (hour * 60 + minute) * 60_000_000 + rest, 0)
        values = dates.astype("datetime64[us]") + clock.astype("timedelta64[us]")
        values[~sound] = np.datetime64("NaT")
        return TimeReading(values, np.where(sound, GOOD, self._kinds))

    def decide(self, counts: NDArray[np.int64]) -> tuple[str, tuple[str, ...]]:
        """The pattern that most cells are written in, and what to say about it.

        Args:
            counts: ``(texts,)`` how often each text occurs; those with 0 say nothing.
        """
        good = {p: np.where(self.read(p).kinds == GOOD, counts, 0) for p in PATTERNS}
        totals = {pattern: int(found.sum()) for pattern, found in good.items()}
        best = max(PATTERNS, key=lambda pattern: totals[pattern])  # the first of the largest
        remarks: tuple[str, ...] = ()
        if best == "dmy" and totals["dmy"] == totals["mdy"]:
            remarks = self._say_unclear(good["dmy"] > 0)
        local, zoned = (int(good[best][self._fields[:, 7] == zone].sum()) for zone in (0, 1))
        if local and zoned:
            remarks += (f"{zoned} times name their offset and {local} do not: those are UTC",)
        return best, remarks

    def _say_unclear(self, used: NDArray[np.bool_]) -> tuple[str, ...]:
        """Whether day and month could be taken for each other, ``used (texts,)`` all told."""
        day, month = self.read("dmy").values, self.read("mdy").values
        for at in np.flatnonzero(used & (day != month)).tolist():
            text = self._texts[at]
            if "." not in text.strip()[:5]:  # between points the day is first everywhere
                return (
                    f"{show(text)} could have the day or the month first, and no other cell tells: "
                    f"taken as day first ({day[at].astype('datetime64[D]')}); write dates as "
                    "2020-01-31 to be understood",
                )
        return ()


def _fields(found: re.Match[str]) -> tuple[int, int, int, int, int, int, int, int]:
    """Whether the year is first; year, the two other numbers, hour, minute, microseconds, zone.

    The last is 1 if there is an offset, 0 if there is none, -1 if there is no time of day.
    """
    groups = found.groups()
    if groups[0] is not None:
        date = 1, int(groups[0]), int(groups[2]), int(groups[3])
    else:
        date = 0, int(groups[7]), int(groups[4]), int(groups[6])
    if groups[8] is None:
        return (*date, 0, 0, 0, -1)
    hour, minute, second, fraction, half, zone = groups[8:]
    rest = int(second or 0) * 1_000_000 + int((fraction or "").ljust(6, "0")[:6])
    if int(second or 0) > 59:
        rest = _NO_REST
    rest -= _offset(zone or "Z")
    return (*date, _hour(int(hour), half), int(minute), rest, int(zone is not None))


def _hour(hour: int, half: str | None) -> int:
    if half is None:
        return hour
    return hour % 12 + 12 * (half.lower() == "pm") if 1 <= hour <= 12 else -1


def _offset(zone: str) -> int:
    """Microseconds east of UTC; a day and more if there is no such zone."""
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        return 3 * _DAY
    return (1 if zone[0] == "+" else -1) * (hours * 60 + minutes) * 60_000_000
