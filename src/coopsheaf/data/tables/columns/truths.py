"""Columns that say yes or no, in whatever way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.words import is_missing, plain_number

TRUTH = {
    "true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "on": 1.0,
    "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0, "off": 0.0,
}  # fmt: skip


class Truths(NamedTuple):
    """What a column says.

    Args:
        values: ``(rows,)`` 1 for yes, 0 for no, NaN where missing or not understood.
        odd: the rows that are not understood.
    """

    values: NDArray[np.float64]
    odd: NDArray[np.int64]


def read_truths(cells: Cells, blank: Callable[[str], bool] = is_missing) -> Truths:
    """Yes and no as words of ``TRUTH`` (any case) or as 1 and 0.

    Args:
        blank: whether a text says that there is no value.
    """
    numbers = cells.numbers
    if numbers is not None and blank is is_missing:  # without a look at texts
        good = (numbers == 0) | (numbers == 1)
        odd = np.flatnonzero(~good & ~np.isnan(numbers))
        return Truths(np.where(good, numbers, np.nan), odd)
    codes, texts = cells.distinct
    values = np.full(len(texts), np.nan)
    strange = np.zeros(len(texts), dtype=np.bool_)
    for code, text in enumerate(texts):
        if blank(text):
            continue
        word = text.strip()
        value = TRUTH.get(word.lower(), plain_number(word))
        strange[code] = value not in (0, 1)
        if not strange[code]:
            values[code] = value
    return Truths(values[codes], np.flatnonzero(strange[codes]))
