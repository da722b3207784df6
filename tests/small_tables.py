"""Tables of a few rows, in memory."""

from __future__ import annotations

import numpy as np
import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.reading.cells import Cells, NumberCells, TextCells, TimeCells
from coopsheaf.data.tables.reading.table import Table

Values = list[str] | np.ndarray


def cells(values: Values) -> Cells:
    """Texts, numbers or times."""
    if isinstance(values, list):
        return TextCells(values)
    return TimeCells(values) if values.dtype.kind == "M" else NumberCells(values)


def table(**columns: Values) -> Table:
    """Called ``nodes.csv``, with a header on line 1."""
    rows = max((len(values) for values in columns.values()), default=0)
    found = {name: cells(values) for name, values in columns.items()}
    return Table("nodes.csv", found, range(2, rows + 2))


def refuses(message: str) -> pytest.RaisesContext[DataError]:
    """A line about ``nodes.csv`` that goes on as the pattern says."""
    return pytest.raises(DataError, match=rf"^nodes\.csv{message}")
