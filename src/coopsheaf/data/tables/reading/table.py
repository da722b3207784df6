"""A table: named columns, and where each row came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from coopsheaf.checks import did_you_mean
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list, show_path
from coopsheaf.data.tables.reading.cells import Cells, join_cells

# Columns of tables that are made of a graph: nobody has to look for ids and ends there.
NODE, SOURCE, TARGET = "<node>", "<source>", "<target>"


@dataclass(frozen=True)
class Table:
    """Columns and the place each row came from.

    Args:
        path: the file, as messages name it, or what else the table came from.
        columns: the cells of each column, by its name; all columns are equally long.
        lines: the line of the file on which each row starts; looked up only for a message.
        checksum: sha256 of what was read, in hexadecimal; empty if there is no file.
        place: what ``lines`` counts.
    """

    path: str
    columns: Mapping[str, Cells]
    lines: Sequence[int]
    checksum: str = ""
    place: str = "line"

    @property
    def name(self) -> str:
        """The table in a message."""
        return show_path(self.path)

    @property
    def num_rows(self) -> int:
        return len(self.lines)

    def at(self, row: int, column: str | None = None) -> str:
        """Where a row or cell is: ``nodes.csv, line 7, column 'age'``."""
        place = f"{self.name}, {self.place} {self.lines[row]}"
        return place if column is None else f"{place}, column {show(column)}"

    def column(self, name: str, role: str) -> Cells:
        """The cells of one column; ``role`` says in the error what it was wanted for."""
        if name not in self.columns:
            raise no_column(self.name, name, role, list(self.columns))
        return self.columns[name]


def no_column(table: str, name: str, role: str, columns: Sequence[str]) -> DataError:
    """The error of a column that is not there."""
    known = sorted(columns, key=len)[:1000]  # a look-alike among thousands would take seconds
    return DataError(
        f"{table} has no column {show(name)} (wanted as {role}){did_you_mean(name, known)}; "
        f"its columns are {show_list(columns)}"
    )


def join_tables(parts: Sequence[Table]) -> Table:
    """Parts of one table, one below the other."""
    first = parts[0]
    columns = {name: join_cells([part.columns[name] for part in parts]) for name in first.columns}
    rows = sum(part.num_rows for part in parts)
    return replace(first, columns=columns, lines=_more_lines(first.lines, rows))


def _more_lines(lines: Sequence[int], rows: int) -> Sequence[int]:
    """The places of so many rows, of which the first ones are known."""
    if isinstance(lines, range):
        return range(lines.start, lines.start + rows)
    assert isinstance(lines, LazyLines)
    return replace(lines, rows=rows)


@dataclass(frozen=True)
class LazyLines(Sequence[int], ABC):
    """The line on which each row starts, found when it is asked for.

    Args:
        rows: how many.
    """

    rows: int

    def __len__(self) -> int:
        return self.rows

    @overload
    def __getitem__(self, row: int) -> int: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[int]: ...
    def __getitem__(self, row: int | slice) -> Any:
        places = range(self.rows)[row]
        return self.find(places) if isinstance(places, int) else [self.find(i) for i in places]

    @abstractmethod
    def find(self, row: int) -> int: ...
