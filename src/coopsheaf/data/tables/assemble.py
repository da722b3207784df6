"""From what was read of tables to a dataset: the part that first and later readings share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from coopsheaf.data.dataset import (
    GraphDataset,
    NodeDataset,
    Processing,
    default_metric,
    process_edges,
)
from coopsheaf.data.errors import DataError
from coopsheaf.data.links import LinkDataset, split_links
from coopsheaf.data.tables.columns.encoding import FeatureEncoder
from coopsheaf.data.tables.edges import (
    EdgeColumns,
    EdgeFacts,
    edge_facts,
    edge_weights,
    merge_edges,
    node_ids,
    read_edges,
)
from coopsheaf.data.tables.graph_tables import GraphRows, cut_graphs
from coopsheaf.data.tables.parts import Parts
from coopsheaf.data.tables.reading.cells import Ids
from coopsheaf.data.tables.reading.graph_objects import GivenGraph
from coopsheaf.data.tables.reading.inputs import OpenTable
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.data.tables.targets.reader import Targets


@dataclass(frozen=True)
class ReadGraph:
    """The nodes as a table, the edges as numbers.

    Args:
        name: of the dataset.
        nodes: the columns that were asked for.
        ids: the names of the nodes.
        edge_index: ``(2, m)``, as listed.
        edges: the columns of the edges that are no ends.
        weight: ``(m,)``.
        checksum: of the files, empty if there are none.
        facts: what the edges are like.
    """

    name: str
    nodes: Table
    ids: Ids
    edge_index: Tensor
    edges: Table
    weight: Tensor | None
    checksum: str
    facts: EdgeFacts


def read_graph(
    given: GivenGraph,
    nodes: Table,
    id: str,
    columns: EdgeColumns,
    weight: str | None,
    notes: list[str],
    graph: str | None = None,
) -> ReadGraph:
    """Read the edges of nodes that have been read; what they are like goes into the notes.

    Args:
        graph: the column of the nodes that says of which graph they are. Edges that say it, too,
            name nodes of their graph.
    """
    ids = node_ids(nodes, id, None if columns.graph is None else graph)
    edges = read_edges(given.edges, columns, ids, nodes.name)
    notes += edges.notes
    facts = edge_facts(edges.edge_index, len(ids))
    return ReadGraph(
        name=_name(given.nodes),
        nodes=nodes,
        ids=ids,
        edge_index=edges.edge_index,
        edges=edges.table,
        weight=None if weight is None else edge_weights(edges.table, weight),
        checksum=_checksum(given.nodes, given.edges),
        facts=facts,
    )


_ODDITIES = {
    "duplicates": ("edges repeat earlier ones", "--duplicates merge makes one of them"),
    "self_loops": ("edges join a node to itself", "--self-loops remove takes them out"),
    "isolated": ("nodes have no edge", "--isolated exclude leaves them out of the split"),
}
_DONE = {
    "keep": "kept",
    "merge": "merged",
    "remove": "taken out",
    "add": "kept, and every other node gets one",
    "exclude": "in no part of the split",
}


def say_oddities(facts: EdgeFacts, how: dict[str, str], *, hints: bool = True) -> list[str]:
    """What is unusual about the edges, and what is done about it.

    Args:
        how: what is done, by the names of the options.
        hints: say what else could be done.
    """
    found = (facts.repeated, facts.loops, int(facts.lonely.sum()))
    notes = []
    for count, (name, (what, hint)) in zip(found, _ODDITIES.items(), strict=True):
        done = _DONE[how[name]] + (f"; {hint}" if hints and how[name] == "keep" else "")
        if count:
            notes.append(f"{count} {what}: {done}")
    return notes


def edge_attributes(
    read: ReadGraph, encoder: FeatureEncoder | None, notes: list[str]
) -> Tensor | None:
    """``(m, k)`` features of the edges."""
    if encoder is None:
        return None
    made = encoder.transform(read.edges)
    notes += made.notes
    return made.x


def nodes_dataset(
    read: ReadGraph,
    schema: TableSchema,
    x: Tensor,
    attributes: Tensor | None,
    targets: Targets,
    parts: Parts,
) -> NodeDataset:
    """One graph whose nodes have targets."""
    edge_index, weight, attributes = _edges(read, schema, attributes)
    dataset = NodeDataset(
        name=read.name,
        x=x,
        edge_index=edge_index,
        y=targets.y,
        train=parts.train,
        val=parts.val,
        test=parts.test,
        task=targets.task,
        metric=default_metric(targets.task, targets.y, parts.val, parts.test),
        class_names=targets.class_names,
        node_ids=tuple(read.ids.texts),
        edge_weight=weight,
        edge_attr=attributes,
        edge_names=() if schema.edge_encoder is None else schema.edge_encoder.feature_names,
        checksum=read.checksum,
    )
    if _processing(schema) != Processing():
        dataset = dataset.process(_processing(schema))
    if not dataset.checksum:
        dataset = replace(dataset, checksum=_digest(dataset.x, dataset.edge_index, dataset.y))
    return dataset


def graphs_dataset(
    read: ReadGraph,
    schema: TableSchema,
    x: Tensor,
    attributes: Tensor | None,
    rows: GraphRows,
    targets: Targets,
    parts: Parts,
) -> GraphDataset:
    """Many graphs with targets."""
    edges = _edges(read, schema, attributes)
    processing = _processing(schema)
    edge_index, _, attributes = process_edges(edges, processing, len(read.ids))
    return GraphDataset(
        name=read.name,
        graphs=cut_graphs(x, edge_index, attributes, targets.y, rows.of_node),
        train=parts.train[0].nonzero().flatten(),
        val=parts.val[0].nonzero().flatten(),
        test=parts.test[0].nonzero().flatten(),
        task=targets.task,
        metric=default_metric(targets.task, targets.y, parts.val, parts.test),
        class_names=targets.class_names,
        graph_ids=tuple(rows.ids.texts),
        checksum=read.checksum or _digest(x, edge_index, targets.y),
        processing=processing,
    )


def links_dataset(
    read: ReadGraph, schema: TableSchema, x: Tensor, time: Tensor | None, seed: int
) -> tuple[LinkDataset, list[str]]:
    """One graph whose edges are split into known and hidden ones."""
    if schema.self_loops == "add":
        raise DataError(
            "self_loops must be 'keep' or 'remove' where links are predicted; got 'add'"
        )
    edge_index, weight = read.edge_index, read.weight
    if schema.self_loops == "remove":
        kept = edge_index[0] != edge_index[1]
        edge_index = edge_index[:, kept]
        weight = None if weight is None else weight[kept]
        time = None if time is None else time[kept]
    split = split_links(
        x,
        edge_index,
        weight,
        time=time,
        undirected=schema.undirected,
        seed=seed,
        name=read.name,
        node_ids=tuple(read.ids.texts),
        checksum=read.checksum,
        processing=_processing(schema),
    )
    return split.dataset, list(split.notes)


def say_graph(read: ReadGraph, schema: TableSchema) -> str:
    """What the graph is like; people who meant the other direction see it here."""
    return (
        f"{len(read.ids)} nodes, {read.edge_index.shape[1]} edges; {read.facts.reciprocated:.1%} "
        "of the edges between different nodes have their reverse; "
        + ("all are used both ways" if schema.undirected else "the graph is kept directed")
    )


def _processing(schema: TableSchema) -> Processing:
    direction = "undirected" if schema.undirected else "stored"
    return Processing(direction=direction, self_loops=schema.self_loops)


def _edges(
    read: ReadGraph, schema: TableSchema, attributes: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    if schema.duplicates == "merge":
        return merge_edges(read.edge_index, read.weight, attributes, len(read.ids))
    return read.edge_index, read.weight, attributes


def _name(nodes: OpenTable) -> str:
    """A name of its own, so that no table is taken for a benchmark; without a path."""
    if nodes.file is None:
        return "own-graph"
    name = Path(nodes.file).name
    return "own-" + (name.split(".")[0] or "graph")


def _checksum(*tables: OpenTable) -> str:
    """Of the contents of the files, whatever they are called; empty if they are not files."""
    if not all(table.checksum for table in tables):
        return ""
    return hashlib.sha256("".join(table.checksum for table in tables).encode()).hexdigest()


def _digest(*tensors: Tensor) -> str:
    """What names data that never was in a file."""
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()
