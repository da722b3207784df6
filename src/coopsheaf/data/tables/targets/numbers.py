"""Columns of numbers to predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns import formats
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.reading.words import plain_number
from coopsheaf.data.tables.targets.labels import says_no_number, task_of_fractions, where

LARGEST = float(np.finfo(np.float32).max)


class RealCells(NamedTuple):
    """A column as numbers.

    Args:
        values: ``(rows,)``, NaN where there is none.
        odd: the rows that have something else.
    """

    values: NDArray[np.float64]
    odd: NDArray[np.int64]


def read_numbers(cells: Cells, unlabelled: Sequence[str]) -> RealCells:
    """The one place where targets are read as numbers.

    Args:
        unlabelled: texts that mean unknown, besides the usual and the doubtful words.
    """
    numbers = cells.numbers
    if numbers is not None:
        known = ~np.isin(numbers, number_values(unlabelled))
        return RealCells(np.where(known, numbers, np.nan), np.empty(0, dtype=np.int64))
    codes, texts = cells.distinct
    blank = np.array(list(map(says_no_number(unlabelled), texts)))[codes]
    read = formats.read_numbers(cells)
    values = np.where(blank | np.isin(read.values, number_values(unlabelled)), np.nan, read.values)
    return RealCells(values, read.odd[~blank[read.odd]])


def has_fractions(table: Table, column: str, unlabelled: Sequence[str]) -> bool:
    """Whether a column of numbers alone is real targets because of its fractions.

    Long columns of numbers are not looked at as texts.
    """
    values, odd = read_numbers(table.columns[column], unlabelled)
    present = values[~np.isnan(values)]
    if len(odd) or not (present % 1).any():
        return False
    distinct = len(np.unique(present))
    return task_of_fractions(where(table, column), distinct, len(present)) == "regression"


def real_targets(table: Table, column: str, unlabelled: Sequence[str]) -> NDArray[np.float64]:
    """``(rows,)``, NaN where unknown or where the column is not there."""
    cells = table.columns.get(column)
    if cells is None:
        return np.full(table.num_rows, np.nan)
    values, odd = read_numbers(cells, unlabelled)
    odd = np.union1d(odd, np.flatnonzero(np.abs(values) > LARGEST))
    if len(odd):
        row = int(odd[0])
        raise DataError(
            f"{table.at(row, column)}: the target of a regression must be a finite number; got "
            f"{show(cells.text(row))}"
        )
    return values


def number_values(texts: Sequence[str]) -> list[float]:
    """Those of the texts that are numbers."""
    return [value for value in map(plain_number, texts) if value is not None]
