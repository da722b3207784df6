"""Later readings: other tables, or the same ones again, by what the first reading decided."""

from __future__ import annotations

from dataclasses import replace

import torch

from coopsheaf.data.convert import given_masks
from coopsheaf.data.errors import DataError
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.assemble import (
    ReadGraph,
    edge_attributes,
    graphs_dataset,
    nodes_dataset,
    read_graph,
    say_graph,
    say_oddities,
)
from coopsheaf.data.tables.edges import EdgeColumns
from coopsheaf.data.tables.graph_tables import graph_like, read_graph_rows, refuse_between
from coopsheaf.data.tables.parts import Parts, later_parts
from coopsheaf.data.tables.reading.graph_objects import GivenGraph
from coopsheaf.data.tables.reading.inputs import OpenTable
from coopsheaf.data.tables.reading.table import NODE, SOURCE, TARGET
from coopsheaf.data.tables.roles import find_ends, find_id, say_ends
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.data.tables.targets.reader import Targets

Later = tuple[AnyDataset, TableSchema, list[str]]


def read_later(
    given: GivenGraph, graphs: OpenTable | None, schema: TableSchema, *, labelled: bool = True
) -> Later:
    """Read tables with the columns, encoders and classes of a former reading.

    Args:
        labelled: look at the targets, if there are any.
    """
    notes = list(given.notes)
    schema = _at_home(given, schema)
    read = _read(given, schema, notes, labelled)
    features = schema.encoder.transform(read.nodes)
    notes += features.notes
    attributes = edge_attributes(read, schema.edge_encoder, notes)
    if schema.graph is None and graphs is not None:
        raise DataError(f"{graphs.name}: the model does not predict whole graphs; leave it out")
    if schema.graph is not None:
        if graphs is None:
            raise DataError(
                f"{given.nodes.name}: the model predicts whole graphs; give --graphs, too"
            )
        assert schema.targets is not None
        rows = read_graph_rows(graphs, read.nodes, schema.graph, schema.targets.columns)
        refuse_between(read.edge_index, rows.of_node, read.edges, rows.ids)
        targets = schema.targets.read(rows.table)
        parts = later_parts(rows.table, targets, schema.parts or None)
        dataset = graphs_dataset(read, schema, features.x, attributes, rows, targets, parts)
        return dataset, schema, [*notes, *([*targets.notes, *parts.notes] if labelled else ())]
    if schema.targets is None:
        n = len(read.ids)
        unknown = torch.zeros(n, dtype=torch.bool)
        targets = Targets(torch.full((n,), torch.nan), unknown, "regression", ())
        parts = _no_parts(n)
    else:
        targets = schema.targets.read(read.nodes)
        parts = later_parts(read.nodes, targets, schema.parts or None)
        if labelled and all(mask is not None for mask in given.masks):
            train, val, test = given_masks(given.masks, targets.y, targets.known, 0)
            parts = Parts(train, val, test)
        notes += [*targets.notes, *parts.notes] if labelled else []
    graph = nodes_dataset(read, schema, features.x, attributes, targets, parts)
    notes.append(say_graph(read, schema))
    return graph, schema, notes


def _at_home(given: GivenGraph, schema: TableSchema) -> TableSchema:
    """The columns of this table for those that a graph object has and a table has not, or the
    other way round."""
    names, ends = given.nodes.names, given.edges.names
    id = NODE if NODE in names else schema.id
    if id == NODE and NODE not in names:
        others = () if schema.targets is None else schema.targets.columns
        id = find_id(given.nodes.name, names, {*schema.encoder.names, *others, *schema.parts})
    source, target = schema.source, schema.edge_target
    if SOURCE in ends:
        source, target = SOURCE, TARGET
    elif source == SOURCE:
        taken = {*schema.edge_features, schema.weight or "", schema.time or "", schema.graph or ""}
        source, target = find_ends(given.edges.name, ends, None, None, taken)
    return replace(
        schema,
        id=id,
        source=source,
        edge_target=target,
        undirected=schema.undirected or given.undirected,
    )


def _read(given: GivenGraph, schema: TableSchema, notes: list[str], labelled: bool) -> ReadGraph:
    if given.weight is not None and schema.weight is None:
        raise DataError(
            f"{given.edges.name}: the model was trained without weights of edges; leave "
            f"{show(given.weight)} out"
        )
    names = given.nodes.names
    needed = [schema.id, *schema.encoder.names, *([schema.graph] if schema.graph else [])]
    given.nodes.check([schema.id], "the id")
    lacking = [name for name in schema.encoder.names if name not in names]
    if lacking:
        raise DataError(
            f"{given.nodes.name} must have the feature columns of the training table; it lacks "
            f"{show_list(lacking)} (its columns are {show_list(names)})"
        )
    targets = schema.targets.columns if schema.targets and labelled else ()
    optional = [name for name in (*targets, *schema.parts) if name in names]
    table = given.nodes.read(list(dict.fromkeys([*needed, *optional])))
    within = None
    if schema.graph is not None:
        ends_of = given.edges.names
        within = schema.graph if schema.graph in ends_of else graph_like(ends_of)
    numbers = () if schema.weight is None else (schema.weight,)
    given.edges.check(numbers, "the edge weight")
    given.edges.check(schema.edge_features, "a feature of edges")
    ends = (schema.source, schema.edge_target)
    columns = EdgeColumns(*ends, graph=within, numbers=numbers, features=schema.edge_features)
    read = read_graph(given, table, schema.id, columns, schema.weight, notes, schema.graph)
    how = {"duplicates": schema.duplicates, "self_loops": schema.self_loops, "isolated": "keep"}
    notes += say_oddities(read.facts, how, hints=False)
    said = say_ends(ends, columns.names, given.edges.names, schema.id, hint="")
    notes.append(said)
    return read


def _no_parts(n: int) -> Parts:
    nothing = torch.zeros(1, n, dtype=torch.bool)
    return Parts(nothing, nothing, nothing, (), ())
