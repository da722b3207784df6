"""What was given, in whatever form, as a table of nodes and one of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.graph_objects import (
    GivenGraph,
    array_columns,
    edge_table,
    is_networkx,
    is_pyg,
    networkx_tables,
    numbered_nodes,
)
from coopsheaf.data.tables.reading.inputs import MemoryTable, Progress, open_table
from coopsheaf.data.tables.reading.source import STANDARD_INPUT
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.roles import NODE


def open_given(nodes: Any, edges: Any, progress: Progress | None = None) -> GivenGraph:
    """Open tables, a graph of networkx or PyG, or arrays of features and edges."""
    if is_networkx(nodes):
        _no_edges(edges, "a networkx graph")
        return networkx_tables(nodes)
    if is_pyg(nodes):
        from coopsheaf.data.tables.reading.pyg_objects import pyg_tables

        _no_edges(edges, f"a {type(nodes).__name__}")
        return pyg_tables(nodes)
    if edges is None:
        raise DataError(
            "`edges` must be given beside `nodes`: a table, or an array of shape (2, m); only a "
            "networkx graph or a PyG Data has them inside"
        )
    if _is_array(nodes):
        return _array_tables(nodes, edges, progress)
    if all(isinstance(given, str) and given == STANDARD_INPUT for given in (nodes, edges)):
        raise DataError("standard input has one table; `nodes` and `edges` cannot both be -")
    opened = open_table(nodes, "nodes", progress)
    return GivenGraph(opened, _open_edges(edges, progress))


def _no_edges(edges: Any, what: str) -> None:
    if edges is not None:
        raise DataError(f"`edges` must be left out: {what} has its own")


def _is_array(given: Any) -> bool:
    return not isinstance(given, str) and hasattr(given, "shape") and not hasattr(given, "columns")


def _open_edges(edges: Any, progress: Progress | None) -> Any:
    if _is_array(edges) and len(getattr(edges, "shape", ())) == 2 and edges.shape[0] == 2:
        return MemoryTable(edge_table(np.asarray(edges), {}))
    return open_table(edges, "edges", progress)


def _array_tables(nodes: Any, edges: Any, progress: Progress | None) -> GivenGraph:
    """``(n, F)`` features and ``(2, m)`` edges or an ``(n, n)`` adjacency; nodes are numbers."""
    dense = nodes.toarray() if hasattr(nodes, "toarray") else nodes
    features = array_columns("x", dense, "nodes")
    count = len(next(iter(features.values()), ()))
    columns: dict[str, Cells] = {NODE: numbered_nodes(count), **features}
    table = Table("`nodes`", columns, range(count), place="row")
    weight = None
    if getattr(edges, "shape", None) == (count, count) and count != 2:
        from coopsheaf.data.convert import adjacency_edges

        edge_index, weights = adjacency_edges(edges, count)
        others: dict[str, Cells] = {}
        if weights is not None:
            weight = "weight"
            others = array_columns("weight", weights.numpy(), "edges")
        opened: Any = MemoryTable(edge_table(edge_index.numpy(), others))
    else:
        opened = _open_edges(edges, progress)
    return GivenGraph(MemoryTable(table), opened, weight=weight)
