"""Graphs that are one object, as a table of nodes and a table of edges.

networkx itself is not imported: a graph brings its methods along. Nothing that is passed in is
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.cells import Cells, NumberCells, TextCells, cells_of
from coopsheaf.data.tables.reading.inputs import MemoryTable, OpenTable
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.roles import NODE, SOURCE, TARGET


@dataclass(frozen=True)
class GivenGraph:
    """A graph as two tables whose ids and ends are known.

    Args:
        nodes, edges: the tables.
        attributes, edge_attributes: the columns that a name stands for, where one attribute of
            nodes or edges became several.
        undirected: every edge is listed once and means both ways.
        weight: the column of weights, if the object has some of its own.
        target: the columns of targets, if it has some of its own.
        unlabelled: what stands for an unknown target there.
        masks: of train, val and test, ``(n,)`` or ``(n, splits)``, or ``None`` each.
        notes: what else there is to say.
    """

    nodes: OpenTable
    edges: OpenTable
    attributes: dict[str, list[str]] = field(default_factory=dict)
    edge_attributes: dict[str, list[str]] = field(default_factory=dict)
    undirected: bool = False
    weight: str | None = None
    target: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] | None = None
    masks: tuple[Any, ...] = (None, None, None)
    notes: tuple[str, ...] = ()


def is_networkx(given: object) -> bool:
    return all(hasattr(given, name) for name in ("nodes", "edges", "is_directed", "adjacency"))


def networkx_tables(graph: Any) -> GivenGraph:
    """Attributes of nodes and edges are columns; a list or array is one column per entry."""
    ids = [str(node) for node in graph.nodes]
    if len(set(ids)) < len(ids):
        raise DataError(
            "`graph` must have nodes that differ as text, unlike 1 and '1': relabel them"
        )
    if not ids:
        raise DataError("`graph` must have nodes; it is empty")
    node_cells, columns = _attributes((values for _, values in graph.nodes(data=True)), ids, "node")
    ends = [(str(a), str(b)) for a, b in graph.edges()]
    labels = [f"{a} - {b}" for a, b in ends]
    values = (values for _, _, values in graph.edges(data=True))
    edge_cells, edge_columns = _attributes(values, labels, "edge")
    nodes = Table(
        "`graph`", {NODE: TextCells(ids), **node_cells}, range(len(ids)), place="node number"
    )
    both: dict[str, Cells] = {
        SOURCE: TextCells([a for a, _ in ends]),
        TARGET: TextCells([b for _, b in ends]),
    }
    edges = Table("`graph`", both | edge_cells, range(len(ends)), place="edge number")
    return GivenGraph(
        MemoryTable(nodes),
        MemoryTable(edges),
        columns,
        edge_columns,
        undirected=not graph.is_directed(),
    )


def _attributes(
    things: Any, labels: Sequence[str], what: str
) -> tuple[dict[str, Cells], dict[str, list[str]]]:
    attributes: dict[str, list[Any]] = {}
    for row, values in enumerate(things):
        for key, value in values.items():
            attributes.setdefault(str(key), [None] * len(labels))[row] = value
    cells: dict[str, Cells] = {}
    columns: dict[str, list[str]] = {}
    for key, values in attributes.items():
        expanded = _attribute_cells(key, values, labels, what)
        if expanded.keys() & {*cells, NODE, SOURCE, TARGET}:
            raise DataError(f"`graph`: attribute {show(key)} has the name of another; rename it")
        columns[key] = list(expanded)
        cells |= expanded
    return cells, columns


def _attribute_cells(
    key: str, values: list[Any], labels: Sequence[str], what: str
) -> dict[str, Cells]:
    rows = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    lengths = {len(v) for v in rows if isinstance(v, list | tuple)}
    if not lengths:
        return {key: cells_of(rows)}
    (width, *others) = sorted(lengths)
    for row, value in enumerate(rows):
        if value is not None and (others or not isinstance(value, list | tuple)):
            raise DataError(
                f"`graph`, {what} {show(labels[row])}: attribute {show(key)} must be a list of one "
                f"length at every {what}; got {show(str(value))}"
            )
    filled = [[None] * width if v is None else v for v in rows]
    return {f"{key}[{i}]": cells_of([row[i] for row in filled]) for i in range(width)}


def is_pyg(given: object) -> bool:
    """Whether it is a ``Data`` or ``HeteroData`` of PyG; which is not imported for asking."""
    return any(kind.__module__.startswith("torch_geometric.data") for kind in type(given).__mro__)


def array_columns(name: str, values: Any, argument: str) -> dict[str, Cells]:
    """``(n,)`` or ``(n, k)`` numbers as columns ``name`` or ``name[0]``, ``name[1]``, ..."""
    array = np.asarray(values)
    if array.ndim == 1:
        return {name: cells_of(array if array.dtype.kind in "iufM" else array.tolist())}
    if array.ndim != 2 or array.dtype.kind not in "iufb":
        raise DataError(
            f"`{argument}` must be numbers of shape (n, k); got {array.dtype} of {array.shape}"
        )
    kind = np.int64 if array.dtype.kind in "iub" else np.float64
    columns = np.ascontiguousarray(array.T, dtype=kind)
    return {f"{name}[{i}]": NumberCells(column) for i, column in enumerate(columns)}


def numbered_nodes(count: int) -> Cells:
    """Nodes without names are called by their numbers."""
    return NumberCells(np.arange(count))


def edge_table(edge_index: Any, others: dict[str, Cells]) -> Table:
    """``(2, m)`` numbers of nodes as a table."""
    ends: dict[str, Cells] = {
        SOURCE: NumberCells(np.asarray(edge_index[0], dtype=np.int64)),
        TARGET: NumberCells(np.asarray(edge_index[1], dtype=np.int64)),
    }
    return Table("`edges`", ends | others, range(len(ends[SOURCE])), place="edge number")
