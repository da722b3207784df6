"""Many graphs in two tables: a column says of which graph a node or edge is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.edges import node_ids
from coopsheaf.data.tables.reading.cells import Ids
from coopsheaf.data.tables.reading.inputs import OpenTable
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.roles import counts_rows, find_id

GRAPH_NAMES = ("graph", "graph_id", "graphid")


class GraphRows(NamedTuple):
    """The table of graphs, and the graph of each node."""

    table: Table
    column: str  # of the names of the graphs
    ids: Ids
    of_node: NDArray[np.int64]  # (n,)


def graph_like(names: Sequence[str]) -> str | None:
    """The column that is called as if it said of which graph a row is."""
    spelled = {name.strip().lower(): name for name in reversed(names)}
    return next((spelled[wanted] for wanted in GRAPH_NAMES if wanted in spelled), None)


def find_graph(opened: OpenTable, given: str | None) -> str:
    """The column that says of which graph a row is."""
    if given is not None:
        opened.check([given], "the graph")
        return given
    found = graph_like(opened.names)
    if found is not None:
        return found
    raise DataError(
        f"{opened.name}: a column must say of which graph a row is; there is none called graph: "
        "name it with --graph"
    )


def read_graph_rows(
    opened: OpenTable, nodes: Table, graph: str, taken: Collection[str] = ()
) -> GraphRows:
    """Read the table of graphs and find the graph of each node.

    Args:
        graph: the column of the nodes that says it; that of the graphs is called alike, or
            ``graph`` or ``id``, else it is the first one.
        taken: columns with another role.
    """
    names = [name for name in opened.names if not counts_rows(name)]
    column = graph if graph in names else graph_like(names) or find_id(opened.name, names, taken)
    table = opened.read(names)
    ids = node_ids(table, column)
    of_node = nodes.column(graph, "the graph").look_up(ids)
    unknown = np.flatnonzero(of_node < 0)
    if len(unknown):
        row = int(unknown[0])
        raise DataError(
            f"{nodes.at(row, graph)}: a node must be of a graph of {opened.name}; it has no graph "
            f"{show(nodes.columns[graph].text(row))}"
        )
    empty = np.flatnonzero(np.bincount(of_node, minlength=len(ids)) == 0)
    if len(empty):
        row = int(empty[0])
        raise DataError(
            f"{table.at(row, column)}: every graph must have nodes; {show(ids.texts[row])} "
            f"has none in {nodes.name}"
        )
    return GraphRows(table, column, ids, of_node)


def refuse_between(edge_index: Tensor, of_node: NDArray[np.int64], edges: Table, ids: Ids) -> None:
    """Refuse edges from one graph to another."""
    source, target = of_node[edge_index.numpy()]
    bad = np.flatnonzero(source != target)
    if len(bad):
        ends = " and ".join(show(ids.texts[graph[bad[0]]]) for graph in (source, target))
        raise DataError(
            f"{edges.at(int(bad[0]))}: an edge must join nodes of one graph; these are of {ends}"
        )


def cut_graphs(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, y: Tensor, of_node: NDArray[np.int64]
) -> list[Data]:
    """The graphs, in the order of their table; nodes in the order of theirs.

    Args:
        x: ``(n, F)`` features of all nodes.
        edge_index: ``(2, m)`` edges, each inside of one graph.
        edge_attr: ``(m, k)``.
        y: ``(graphs,)`` or ``(graphs, k)`` targets.
        of_node: ``(n,)`` the graph of each node.
    """
    graphs = torch.from_numpy(of_node)
    order = torch.argsort(graphs, stable=True)
    sizes = torch.bincount(graphs, minlength=y.shape[0])
    place = torch.empty_like(order)  # of each node in its own graph
    starts = sizes.cumsum(0) - sizes
    place[order] = torch.arange(len(order)) - starts[graphs[order]]
    of_edge = graphs[edge_index[0]]
    edge_order = torch.argsort(of_edge, stable=True)
    edge_sizes = torch.bincount(of_edge, minlength=y.shape[0]).tolist()
    features = x[order].split(sizes.tolist())
    ends = place[edge_index][:, edge_order].split(edge_sizes, dim=1)
    attributes = None if edge_attr is None else edge_attr[edge_order].split(edge_sizes)
    targets = y if y.dim() == 2 or not y.is_floating_point() else y[:, None]
    return [
        Data(
            x=features[g],
            edge_index=ends[g].contiguous(),
            y=targets[g : g + 1],
            **({} if attributes is None else {"edge_attr": attributes[g]}),
        )
        for g in range(y.shape[0])
    ]
