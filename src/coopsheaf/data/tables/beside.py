"""Targets that are not in the table of nodes: columns beside it, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.options import TableOptions
from coopsheaf.data.tables.reading.cells import Cells, columns_of
from coopsheaf.data.tables.reading.graph_objects import GivenGraph
from coopsheaf.data.tables.reading.inputs import OpenTable, Result
from coopsheaf.data.tables.reading.table import Table

UNNAMED, OTHERWISE = "y", "<y>"  # what targets without a name are called; and if that is taken
VALIDATION = 0.2  # the share that validates if nobody says another one


class WithColumns(OpenTable):
    """A table and further columns, which stand instead of its own ones of the same names.

    It is in no file: who wants to read it again has to bring the columns along.
    """

    def __init__(self, table: OpenTable, columns: Mapping[str, Cells]) -> None:
        names = tuple(dict.fromkeys((*table.names, *columns)))
        super().__init__(table.name, names, lists=table._lists)
        self._table, self._columns = table, columns

    def fold(self, names: Sequence[str], consume: Callable[[Iterator[Table]], Result]) -> Result:
        table = self._table.read([name for name in names if name not in self._columns])
        for cells in self._columns.values():
            if len(cells) != table.num_rows:
                raise DataError(
                    f"`y` must have one entry for each of the {table.num_rows} rows of "
                    f"{self.name}; got {len(cells)}"
                )
        columns = {
            name: self._columns[name] if name in self._columns else table.columns[name]
            for name in names
        }
        return consume(iter([replace(table, columns=columns, checksum="")]))


def put_beside(given: GivenGraph, options: TableOptions, y: Any) -> tuple[GivenGraph, TableOptions]:
    """A graph whose targets are ``y``, whatever targets it has of its own.

    Those of its own are left out, for they may be what ``y`` was taken from; so are splits of its
    own, which are about them.

    Args:
        y: ``(n,)`` or ``(n, k)``, in the order of the table of nodes. A name that it has, as a
            column of a frame does, is that of the target; a column of that name is then no feature.
    """
    if options.target:
        raise ValueError(
            f"`y` and `target` exclude each other: the targets are given, or in column "
            f"{options.target[0]!r}"
        )
    name = getattr(y, "name", None)
    if not isinstance(name, str) or not name:
        name = OTHERWISE if UNNAMED in given.nodes.names else UNNAMED
        name = UNNAMED if UNNAMED in given.target else name
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):  # a frame of several targets, or of one
        y = y.to_numpy()
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    columns = columns_of(name, y, "y")
    old = [column for column in given.target if column not in columns]
    masks = (None, None, None)
    nodes = WithColumns(given.nodes, columns)
    given = replace(given, nodes=nodes, target=tuple(columns), masks=masks)
    share = VALIDATION if options.validation is None else options.validation
    return given, replace(options, drop=(*options.drop, *old), validation=share)
