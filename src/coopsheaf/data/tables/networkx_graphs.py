"""networkx graphs, read as tables of nodes and edges.

networkx itself is not imported: a graph brings its methods along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.delimited import Table
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables import TableData, load_tables

# Columns of the tables made of a networkx graph; attributes can have any other name.
NODE, SOURCE, TARGET = "<node>", "<source>", "<target>"


def from_networkx(
    graph: Any,
    *,
    target: str,
    features: Sequence[str] | None = None,
    categorical: Collection[str] = (),
    split: str | None = None,
    weight: str | None = None,
    task: str | None = None,
    seed: int = 0,
) -> NodeDataset:
    """A graph from a networkx graph whose nodes have attributes.

    Attributes are read as the columns of a node table are (see
    :func:`~coopsheaf.data.tables.load_tables`): numbers are standardised over the training nodes,
    texts are categories, a list or array is one column per entry, absent or ``None`` is missing.
    """
    return read_networkx(
        graph,
        target=target,
        features=features,
        categorical=categorical,
        split=split,
        weight=weight,
        task=task,
        seed=seed,
    ).dataset


def read_networkx(
    graph: Any, *, features: Sequence[str] | None = None, weight: str | None = None, **options: Any
) -> TableData:
    """As :func:`from_networkx`, with the fitted encoder and notes; ``options`` are those of
    :func:`~coopsheaf.data.tables.load_tables`."""
    nodes, edges, columns = networkx_tables(graph, weight=weight)
    if features is not None:
        for attribute in features:
            if attribute not in columns:
                raise DataError(f"`graph`: no node has an attribute {show(attribute)}")
        features = [column for attribute in features for column in columns[attribute]]
    options.setdefault("undirected", not graph.is_directed())
    options |= {"id": NODE, "source": SOURCE, "edge_target": TARGET}
    return load_tables(nodes, edges, features=features, weight=weight, **options)


def networkx_tables(
    graph: Any, *, weight: str | None = None
) -> tuple[Table, Table, dict[str, list[str]]]:
    """The nodes and edges of a networkx graph as tables, and the columns of each attribute.

    The first column holds the nodes as text; those of undirected graphs are listed once.
    """
    missing = [m for m in ("nodes", "edges", "is_directed") if not hasattr(graph, m)]
    if missing:
        raise DataError(f"`graph` must be a networkx graph; got {type(graph).__name__}")
    ids = [str(node) for node in graph.nodes]
    if len(set(ids)) < len(ids):
        raise DataError(
            "`graph` must have nodes that differ as text, unlike 1 and '1': relabel them"
        )
    if not ids:
        raise DataError("`graph` must have nodes; it is empty")
    attributes: dict[str, list[Any]] = {}
    for row, (_, values) in enumerate(graph.nodes(data=True)):
        for key, value in values.items():
            attributes.setdefault(str(key), [None] * len(ids))[row] = value
    cells: dict[str, Sequence[str]] = {NODE: ids}
    columns: dict[str, list[str]] = {}
    for key, values in attributes.items():
        expanded = _attribute_columns(key, values, ids)
        if expanded.keys() & cells.keys():
            raise DataError(f"`graph`: attribute {show(key)} has the name of another; rename it")
        columns[key] = list(expanded)
        cells |= expanded
    nodes = Table("`graph`", cells, range(len(ids)), place="node number")
    ends = [(str(a), str(b)) for a, b in graph.edges()]
    edge_cells: dict[str, Sequence[str]] = {
        SOURCE: [a for a, _ in ends],
        TARGET: [b for _, b in ends],
    }
    if weight is not None:
        edge_cells[weight] = [_text(w) for _, _, w in graph.edges(data=weight, default=1)]
    return nodes, Table("`graph`", edge_cells, range(len(ends)), place="edge number"), columns


def _attribute_columns(key: str, values: list[Any], ids: list[str]) -> dict[str, list[str]]:
    """One column of text, or one for each entry if the values are lists or arrays."""
    rows = [v.tolist() if hasattr(v, "tolist") else v for v in values]
    lengths = {len(v) for v in rows if isinstance(v, list | tuple)}
    if not lengths:
        return {key: [_text(v) for v in rows]}
    (width, *others) = sorted(lengths)
    for row, value in enumerate(rows):
        if value is not None and (others or not isinstance(value, list | tuple)):
            raise DataError(
                f"`graph`, node {show(ids[row])}: attribute {show(key)} must be a list of one "
                f"length at every node; got {show(str(value))}"
            )
    filled = [[None] * width if v is None else v for v in rows]
    return {f"{key}[{i}]": [_text(row[i]) for row in filled] for i in range(width)}


def _text(value: object) -> str:
    """A cell: numbers so that they are read back exactly, truth values as 0 and 1."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return str(value)
