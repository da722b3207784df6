"""What the user is told about the columns of a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.reading.table import Table

LINES = 5  # per topic; the columns beyond are named in one
PLACES = 3  # per line


class Notes:
    """Lines about columns, by topic; a topic that concerns many columns is cut short."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, list[str]]] = {}

    def add(self, topic: str, column: str, line: str) -> None:
        """Say something about a column; ``topic`` stands for it where there are many."""
        self._topics.setdefault(topic, {}).setdefault(column, []).append(line)

    def lines(self) -> list[str]:
        out: list[str] = []
        for topic, columns in self._topics.items():
            names = list(columns)
            for name in names[:LINES]:
                out += [f"column {show(name)}: {line}" for line in columns[name]]
            if len(names) > LINES:
                more = names[LINES:]
                out.append(f"{topic}, also in {len(more)} more columns: {show_list(more)}")
        return out


class Report:
    """What a table had that training had not, gathered while its columns are read.

    Args:
        unseen: number of cells with an unseen category, by column; only columns with any.
        imputed: number of missing values in columns without a missing one in training.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.notes = Notes()
        self.unseen: dict[str, int] = {}
        self.imputed: dict[str, int] = {}

    def add_odd(
        self, name: str, odd: NDArray[np.int64], values: NDArray[np.float64], wanted: str
    ) -> None:
        """Cells of another kind are gaps; but if most are, it is another column.

        Args:
            odd: their rows.
            values: ``(rows,)`` of the column, NaN where missing or odd.
        """
        if len(odd) == 0:
            return
        table = self.table
        filled = int((~np.isnan(values)).sum()) + len(odd)
        if len(odd) > filled / 2:
            row = int(odd[0])
            raise DataError(
                f"{table.at(row, name)}: every cell must be {wanted}, as in training; got "
                f"{show(table.columns[name].text(row))}, and {len(odd)} of {filled} cells are "
                "none: name the right column, or train with it as categorical"
            )
        self.notes.add(
            f"cells that are not {wanted} count as missing",
            name,
            f"{len(odd)} of {filled} cells are not {wanted} and count as missing: "
            + show_cells(table, name, odd),
        )

    def add_imputed(self, name: str, absent: NDArray[np.bool_], value: str) -> None:
        """Gaps in a column that had none in training are filled with a value."""
        count = int(absent.sum())
        if count:
            self.imputed[name] = count
            line = f"{count} missing cells, where training had none: set to {value}"
            self.notes.add("missing cells where training had none", name, line)

    def add_unseen(self, name: str, rows: NDArray[np.int64]) -> None:
        """Cells with a category that training had not."""
        if len(rows):
            self.unseen[name] = len(rows)
            self.notes.add(
                "categories not seen in training",
                name,
                f"{len(rows)} cells have a category not seen in training: "
                + show_cells(self.table, name, rows),
            )


def show_cells(
    table: Table,
    column: str,
    rows: NDArray[np.int64],
    spell: Callable[[int], str] | None = None,
) -> str:
    """The first few cells of some rows with their places: ``'x' (nodes.csv, line 7), ...``."""
    cells = table.columns[column]
    spell = spell or (lambda row: show(cells.text(row)))
    few = [f"{spell(row)} ({table.at(row)})" for row in rows[:PLACES].tolist()]
    return ", ".join(few) + (" ..." if len(rows) > PLACES else "")
