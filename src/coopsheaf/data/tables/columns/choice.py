"""What kind of feature a column is: decided from its training rows, and said."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.dates import PATTERNS, TimeTexts
from coopsheaf.data.tables.columns.findings import Notes
from coopsheaf.data.tables.columns.formats import (
    CODE,
    INFINITE,
    PLAIN,
    TRUTHS,
    NumberFormat,
    NumberTexts,
)
from coopsheaf.data.tables.columns.kinds import (
    HASHED_WIDTH,
    CategoricalColumn,
    Column,
    HashedColumn,
    NumericColumn,
    TimeColumn,
    WordsColumn,
    days_of,
    spell_day,
)
from coopsheaf.data.tables.columns.nearly import GOOD, nearly_all
from coopsheaf.data.tables.columns.scaling import Scale, fit_scale
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.reading.words import is_missing

MAX_ONE_HOT = 300  # categories
FREE_TEXT_VALUES = 50
FREE_TEXT_SHARE = 0.5
_TRUTH_SPELLINGS = 40
_TWINS = 3  # groups of categories to show
_NO_VALUE = "it has no value in any training row"


class _LeftOut(Exception):
    """Why a column is no feature."""


class Chooser:
    """Chooses the kinds of the columns of one table, and keeps what is to be said about it.

    Args:
        train: ``(rows,)`` mask of the training rows; they alone decide.
    """

    def __init__(self, table: Table, train: NDArray[np.bool_]) -> None:
        self.table = table
        self.train = train
        self.notes = Notes()
        self.constant: list[str] = []
        self.missing: dict[str, int] = {}  # number of gaps in all rows
        self.left_out: dict[str, str] = {}

    def choose(self, name: str, *, categorical: bool = False, text: bool = False) -> Column | None:
        """The kind of a column; ``None`` if it is left out, for a reason in ``left_out``."""
        look = _Look(self.table, name, self.train)
        if look.missing:
            self.missing[name] = look.missing
        try:
            if text:
                return self._words(look)
            if categorical:
                return self._categories(look, asked=True)
            return (
                self._typed(look)
                or self._truths(look)
                or self._numbers(look)
                or self._times(look)
                or self._categories(look)
            )
        except _LeftOut as why:
            self.left_out[name] = str(why)
            return None

    def hashed(self, column: CategoricalColumn, why: str) -> HashedColumn:
        """The same categories in a fixed number of columns."""
        count = len(column.categories)
        self.notes.add(
            f"categories hashed into {HASHED_WIDTH} columns",
            column.name,
            f"{count} categories are hashed into {HASHED_WIDTH} columns ({why})",
        )
        return HashedColumn.of(column.name, column.categories)

    def _typed(self, look: _Look) -> Column | None:
        """A column that has no oddity: it came as times, or all of it is plain numbers."""
        if look.cells.times is not None:
            return self._time(look, look.cells.times, "ymd")
        numbers = look.cells.numbers
        return None if numbers is None else self._numeric(look, numbers, PLAIN)

    def _truths(self, look: _Look) -> Column | None:
        """Truth words, perhaps 0 and 1 among them.

        Both values must be there: "F" alone may be a sex. "True" alone means what it says.
        """
        if not 1 <= len(look.values) <= _TRUTH_SPELLINGS:
            return None
        found, kinds = NumberTexts(look.values).read(TRUTHS)
        if (kinds != GOOD).any() or not np.isin(found, (0, 1)).all():
            return None
        certain = all(value.strip().lower() in ("true", "false") for value in look.values)
        if found.min() == found.max() and not certain:
            return None
        values, _ = NumberTexts(look.texts).read(TRUTHS)
        return self._numeric(look, values[look.codes], TRUTHS)

    def _numbers(self, look: _Look) -> Column | None:
        scan = NumberTexts(look.texts)
        format, remarks = scan.decide(look.counts)
        values, kinds = scan.read(format)
        codes = int(look.counts[kinds == CODE].sum())
        good = int(look.counts[kinds == GOOD].sum())
        # Infinity is a number that cannot be used, not a sign of another kind of column.
        filled = look.filled - int(look.counts[kinds == INFINITE].sum())
        if codes and nearly_all(good + codes, filled):
            example = look.texts[int(np.flatnonzero((kinds == CODE) & (look.counts > 0))[0])]
            self.notes.add(
                "codes with leading zeros are text",
                look.name,
                f"{codes} cells have leading zeros, such as {show(example)}: codes, not numbers",
            )
            return None
        if not nearly_all(good, filled):
            return None
        for remark in remarks:
            self.notes.add("numbers that can be read in two ways", look.name, remark)
        if format != PLAIN:
            marks = f"{show(format.decimal)} before the fraction" + (
                f", {show(format.thousands)} between thousands" if format.thousands else ""
            )
            self.notes.add("formats of numbers", look.name, f"numbers with {marks}")
        return self._numeric(look, values[look.codes], format)

    def _numeric(self, look: _Look, values: NDArray[np.float64], format: NumberFormat) -> Column:
        inside = values[self.train]
        present = inside[~np.isnan(inside)]
        if len(present) == 0:
            raise _LeftOut(_NO_VALUE)
        indicator = len(present) < len(inside)
        scale = Scale(0.0, 1.0, 0.0, 1.0)
        if np.isin(present, (0, 1)).all():  # later tables may have words for it
            format = replace(format, truths=True)
        if not format.truths or present.min() == present.max():
            scale = fit_scale(self.table, look.name, values, self.train, self.notes)
        self._note_constant(look.name, scale)
        return NumericColumn(
            look.name, scale.mean, scale.std, indicator, format, scale.low, scale.high
        )

    def _times(self, look: _Look) -> Column | None:
        scan = TimeTexts(look.texts)
        pattern, remarks = scan.decide(look.counts)
        values, kinds = scan.read(pattern)
        if not nearly_all(int(look.counts[kinds == GOOD].sum()), look.filled):
            return None
        if pattern != "ymd":
            remarks = (f"dates are read like {PATTERNS[pattern]}", *remarks)
        for remark in remarks:
            self.notes.add("formats of dates", look.name, remark)
        return self._time(look, values[look.codes], pattern)

    def _time(self, look: _Look, times: NDArray[np.datetime64], pattern: str) -> Column:
        days = days_of(times)
        inside = days[self.train]
        present = inside[~np.isnan(inside)]
        if len(present) == 0:
            raise _LeftOut(_NO_VALUE)
        scale = fit_scale(self.table, look.name, days, self.train, self.notes, spell_day)
        clock = bool((present != np.floor(present)).any())
        if not clock:
            self._note_constant(look.name, scale)
        return TimeColumn(
            look.name,
            scale.mean,
            scale.std,
            len(present) < len(inside),
            pattern,
            clock,
            scale.low,
            scale.high,
        )

    def _categories(self, look: _Look, *, asked: bool = False) -> Column:
        count = len(look.values)
        if count == 0:
            raise _LeftOut(_NO_VALUE)
        if not asked and count > FREE_TEXT_VALUES and count > FREE_TEXT_SHARE * look.filled:
            raise _LeftOut(
                f"{count} of {look.filled} training cells differ, such as {show(look.values[0])}: "
                "free text or ids; --text uses its words, --categorical its values, --drop says "
                "that it is not wanted"
            )
        column = CategoricalColumn(look.name, tuple(sorted(look.values)))
        self._note_twins(column)
        if count == 1:
            self.constant.append(look.name)
        if count <= MAX_ONE_HOT:
            return column
        return self.hashed(column, f"more than {MAX_ONE_HOT} are not one-hot")

    def _words(self, look: _Look) -> Column:
        if look.filled == 0:
            raise _LeftOut(_NO_VALUE)
        return WordsColumn(look.name)

    def _note_constant(self, name: str, scale: Scale) -> None:
        if scale.std == 0:
            self.constant.append(name)

    def _note_twins(self, column: CategoricalColumn) -> None:
        groups: dict[str, list[str]] = {}
        for category in column.categories:
            groups.setdefault(" ".join(category.casefold().split()), []).append(category)
        twins = [group for group in groups.values() if len(group) > 1]
        if twins:
            shown = "; ".join(" and ".join(map(show, group)) for group in twins[:_TWINS])
            more = f"; and {len(twins) - _TWINS} more" if len(twins) > _TWINS else ""
            self.notes.add(
                "categories that differ only by case or spaces",
                column.name,
                f"categories that differ only by case or spaces are kept apart: {shown}{more}",
            )


class _Look:
    """One column as the training rows show it."""

    def __init__(self, table: Table, name: str, train: NDArray[np.bool_]) -> None:
        self.name = name
        self.cells = table.column(name, "a feature")
        self._train = train

    @property
    def texts(self) -> list[str]:
        """The different texts of all rows."""
        return self.cells.distinct.texts

    @property
    def codes(self) -> NDArray[np.int64]:
        """``(rows,)`` which text stands in each row."""
        return self.cells.distinct.codes

    @cached_property
    def gaps(self) -> NDArray[np.bool_]:
        """``(texts,)`` which texts say that there is no value."""
        return np.array([is_missing(text) for text in self.texts], dtype=bool)

    @cached_property
    def missing(self) -> int:
        """The number of gaps in all rows."""
        cells = self.cells
        if cells.times is not None:
            return int(np.isnat(cells.times).sum())
        if cells.numbers is not None:
            return int(np.isnan(cells.numbers).sum())
        return int(self.gaps[self.codes].sum())

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """``(texts,)`` in how many training rows each text stands; gaps are not counted."""
        counts = np.bincount(self.codes[self._train], minlength=len(self.texts))
        counts[self.gaps] = 0
        return counts

    @cached_property
    def values(self) -> list[str]:
        """The different filled texts of the training rows."""
        return [self.texts[at] for at in np.flatnonzero(self.counts).tolist()]

    @property
    def filled(self) -> int:
        """The number of training rows with a value."""
        return int(self.counts.sum())
