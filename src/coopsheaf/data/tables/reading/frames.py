"""DataFrames and Arrow tables in memory as tables. Imports pyarrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from coopsheaf.data.errors import DataError
from coopsheaf.data.files import one_line
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.arrow_cells import arrow_cells
from coopsheaf.data.tables.reading.cells import Cells, cells_of
from coopsheaf.data.tables.reading.table import Table


def frame_table(frame: Any, name: str) -> Table:
    """A pandas DataFrame, or anything with ``__arrow_c_stream__``.

    An index of pandas that has a name is a column like the others; one without a name counts rows
    and is left out.
    """
    if hasattr(frame, "to_numpy") and hasattr(frame, "index") and hasattr(frame, "reset_index"):
        columns = _pandas_columns(frame, name)
        rows = len(frame)
    else:
        try:
            whole = pa.table(frame)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"{name} must be an Arrow table; {one_line(error)}") from None
        columns = list(zip(whole.column_names, whole.columns, strict=True))
        rows = whole.num_rows
    cells: dict[str, Cells] = {}
    for column, values in columns:
        made = values if isinstance(values, dict) else arrow_cells(column, values, name)
        if made.keys() & cells.keys():
            raise DataError(f"{name}: column names must differ; {show(column)} occurs twice")
        cells |= made
    return Table(name, cells, range(rows), place="row")


def _pandas_columns(frame: Any, name: str) -> list[tuple[str, Any]]:
    named = [level for level in frame.index.names if level is not None]
    if named:
        frame = frame.reset_index(level=named)
    found: list[tuple[str, Any]] = []
    for number, column in enumerate(frame.columns):
        series = frame.iloc[:, number]
        try:
            found.append((str(column), pa.chunked_array([pa.array(series, from_pandas=True)])))
        except (pa.ArrowException, TypeError, ValueError):  # objects of several kinds
            found.append((str(column), {str(column): cells_of(list(series))}))
    return found
