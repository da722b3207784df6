"""DataFrames and Arrow tables in memory as tables. Imports pyarrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from coopsheaf.data.errors import DataError
from coopsheaf.data.files import one_line
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.arrow_cells import arrow_cells
from coopsheaf.data.tables.reading.cells import Cells, cells_of
from coopsheaf.data.tables.reading.delimited import row_numbers
from coopsheaf.data.tables.reading.inputs import MemoryTable, with_rows
from coopsheaf.data.tables.reading.table import Table


def frame_table(frame: Any, name: str) -> MemoryTable:
    """A pandas DataFrame, or anything with ``__arrow_c_stream__``.

    An index of pandas that has a name is a column like the others; one without a name is what
    ``to_csv`` would make of it, a column that nobody uses unless asked to, and left out altogether
    where it only counts the rows.
    """
    if hasattr(frame, "to_numpy") and hasattr(frame, "index") and hasattr(frame, "reset_index"):
        columns, rows = _pandas_columns(frame, name), len(frame)
    else:
        try:
            whole = pa.table(frame)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"{name} must be an Arrow table; {one_line(error)}") from None
        columns = list(zip(whole.column_names, whole.columns, strict=True))
        rows = whole.num_rows
    cells: dict[str, Cells] = {}
    lists: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    for column, values in columns:
        try:
            made = values if isinstance(values, dict) else arrow_cells(column, values, name)
        except DataError as error:  # of a column that may not be wanted
            made, refused[column] = {}, str(error)
        if column in lists or made.keys() & cells.keys():
            raise DataError(f"{name}: column names must differ; {show(column)} occurs twice")
        lists[column] = list(made) or [column]
        cells |= made
    return with_rows(Table(name, cells, range(rows), place="row"), lists, refused)


def _pandas_columns(frame: Any, name: str) -> list[tuple[str, Any]]:
    levels = list(frame.index.names)
    counted = levels == [None] and type(frame.index).__name__ == "RangeIndex"
    series = [] if counted else [frame.index.get_level_values(at) for at in range(len(levels))]
    titles = [f"Unnamed: {at}" if level is None else level for at, level in enumerate(levels)]
    found = [(str(title), values) for title, values in zip(titles, series, strict=False)]
    found += [(str(title), frame.iloc[:, at]) for at, title in enumerate(frame.columns)]
    if found and not found[0][0].strip():
        found[0] = (row_numbers([title for title, _ in found]), found[0][1])
    return [(title, _pandas_column(title, values)) for title, values in found]


def _pandas_column(title: str, values: Any) -> Any:
    try:
        made = pa.array(values, from_pandas=True)
        return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])
    except (pa.ArrowException, TypeError, ValueError):  # objects of several kinds
        return {title: cells_of(list(values))}
