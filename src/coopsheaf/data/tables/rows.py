"""Which nodes of a graph some rows are: names of nodes, or a table with the column of names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.edges import node_ids
from coopsheaf.data.tables.reading.cells import Cells, Ids, columns_of
from coopsheaf.data.tables.reading.given import open_given
from coopsheaf.data.tables.reading.inputs import open_table
from coopsheaf.data.tables.reading.table import NODE
from coopsheaf.data.tables.roles import find_id


@dataclass(frozen=True)
class NodeNames:
    """The names of the nodes of a graph, in the order of its table.

    Args:
        column: that they stand in; ``<node>`` of a graph that is no table.
        ids: the names.
    """

    column: str
    ids: Ids

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, rows: Any) -> NDArray[np.int64]:
        """``(k,)`` positions of rows, each of them another node.

        Args:
            rows: ``(k,)`` or ``(k, 1)`` names, numbers where nodes have no names; or a table with
                the column of names.
        """
        cells = self._cells(rows)
        found = cells.look_up(self.ids)
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise DataError(
                f"rows must be nodes of the graph; row {row} is {show(cells.text(row))}, which is "
                f"none of its {len(self)} nodes (column {show(self.column)})"
            )
        first = np.full(len(self), -1)
        first[found[::-1]] = np.arange(len(found))[::-1]
        if (first[found] != np.arange(len(found))).any():
            row = int(np.argmax(first[found] != np.arange(len(found))))
            raise DataError(
                f"rows must be different nodes; {show(cells.text(row))} is in row "
                f"{first[found[row]]} and in row {row}"
            )
        return found

    def _cells(self, rows: Any) -> Cells:
        named = hasattr(rows, "columns") or isinstance(rows, dict) or hasattr(rows, "column_names")
        if named:
            table = open_table(rows, "rows")
            if self.column not in table.names:
                raise DataError(
                    f"rows must have the column {show(self.column)}, which names the nodes; they "
                    f"have {show_list(table.names)}"
                )
            return table.read([self.column]).columns[self.column]
        columns = columns_of("rows", rows, "rows")
        if len(columns) != 1:
            raise DataError(
                f"rows must say which nodes of the graph they are: (k,) names, or a table with "
                f"column {show(self.column)}; got {len(columns)} columns without names. Features "
                "are those of the graph"
            )
        return next(iter(columns.values()))


def read_names(nodes: Any, edges: Any, id: str | None, taken: Collection[str] = ()) -> NodeNames:
    """The names of the nodes of a graph.

    Args:
        nodes, edges: as in :func:`~coopsheaf.data.load_tables`.
        id: the column of names, if it was said.
        taken: columns with another role.
    """
    given = open_given(nodes, edges)
    column = NODE if NODE in given.nodes.names else id
    column = column or find_id(given.nodes.name, given.nodes.names, taken)
    return NodeNames(column, node_ids(given.nodes.read([column]), column))
