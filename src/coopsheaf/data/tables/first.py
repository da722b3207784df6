"""The first reading of tables: what the columns are is decided here, and kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from coopsheaf.data.convert import given_masks
from coopsheaf.data.errors import DataError
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.splits import hold_out
from coopsheaf.data.tables.assemble import (
    ReadGraph,
    edge_attributes,
    graphs_dataset,
    links_dataset,
    nodes_dataset,
    read_graph,
    say_graph,
    say_oddities,
)
from coopsheaf.data.tables.columns.encoding import FeatureEncoder
from coopsheaf.data.tables.edges import EdgeColumns, edge_times, refuse_data_as_header
from coopsheaf.data.tables.graph_tables import (
    find_graph,
    graph_like,
    read_graph_rows,
    refuse_between,
)
from coopsheaf.data.tables.leaks import find_leaks
from coopsheaf.data.tables.options import EDGE_OPTIONS, TableOptions
from coopsheaf.data.tables.parts import (
    SPLIT_NAMES,
    find_parts,
    make_parts,
    part_like,
    parts_of_masks,
)
from coopsheaf.data.tables.reading.graph_objects import GivenGraph
from coopsheaf.data.tables.reading.inputs import OpenTable
from coopsheaf.data.tables.reading.table import NODE, Table
from coopsheaf.data.tables.roles import counts_rows, find_ends, find_id, say_ends
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.data.tables.targets.reader import TargetReader

First = tuple[AnyDataset, TableSchema, list[str]]
Masks = tuple[Tensor, Tensor, Tensor]
ASKED = "the split that is asked for"


def read_first(
    given: GivenGraph,
    graphs: OpenTable | None,
    options: TableOptions,
    *,
    encoder: FeatureEncoder | None = None,
    masks: Masks | None = None,
) -> First:
    """Decide what the columns are, fit the encoders, and make a dataset.

    Args:
        encoder: that of an earlier reading of the same tables, instead of a new one.
        masks: of nodes (or graphs) to train, validate and test, ``(splits, n)`` each, instead of
            those that the tables say or a draw gives.
    """
    options = _with_own_roles(given, options)
    if options.task == "link":
        assert masks is None, "links are split in their own way"
        return _links(given, graphs, options, encoder)
    if graphs is not None:
        return _graphs(given, graphs, options, encoder, masks)
    return _nodes(given, options, encoder, masks)


def _nodes(
    given: GivenGraph,
    options: TableOptions,
    fixed: FeatureEncoder | None,
    masks: Masks | None,
) -> First:
    notes = list(given.notes)
    if not options.target:
        raise DataError(
            f"{given.nodes.name}: name the target, the column to predict; the columns are "
            f"{show_list(given.nodes.names)}"
        )
    given.nodes.check(options.target, "the target")
    _refuse(options, ("graph",), "there is no table of graphs")
    read, id = _read(given, options, notes, taken=options.target)
    table = read.nodes
    found, ignored = find_parts(table, options.split, {id, *options.target, *_named(options)})
    reader, targets = TargetReader.fit(
        table,
        options.target,
        task=options.task,
        unlabelled=options.unlabelled,
        customary=options.unlabelled is given.unlabelled,
    )
    lonely = torch.from_numpy(read.facts.lonely) if options.isolated == "exclude" else None
    if masks is not None:
        parts = parts_of_masks(table, masks, targets, lonely, ASKED)
    elif options.validation is not None:
        reason = "the split is drawn; not used, and no feature unless --features names it"
        ignored |= {name: f"column {show(name)}: {reason}" for name in found or ()}
        found = None
        val = hold_out(targets.y, targets.known, options.validation, seed=options.seed)
        drawn = [mask[None] for mask in (~val, val, torch.zeros_like(val))]
        how = f"a share of {options.validation:g} for validation (seed {options.seed})"
        parts = parts_of_masks(table, drawn, targets, lonely, how)
    elif found is None and any(mask is not None for mask in given.masks):
        own = given_masks(given.masks, targets.y, targets.known, options.seed)
        parts = parts_of_masks(table, own, targets, lonely)
    else:
        parts = make_parts(table, options.target, targets, found, options.seed, lonely)
    names = _feature_names(table, options, {id: "id", **_roles(options.target, found)}, ignored)
    train = parts.train.any(0).numpy()
    train = train if given.fitted is None else train | given.fitted
    encoder = fixed or _fit(table, names, train, options, notes)
    notes += [*ignored.values(), *targets.notes, *parts.notes]
    notes += find_leaks(table, encoder.names, targets, parts.train[0].numpy())
    schema = _schema(read, given, options, encoder, reader, id, tuple(found or ()), notes)
    features = encoder.transform(table)
    notes += [note for note in features.notes if note not in notes]
    attributes = edge_attributes(read, schema.edge_encoder, notes)
    dataset = nodes_dataset(read, schema, features.x, attributes, targets, parts)
    notes.append(say_graph(read, schema))
    return dataset, schema, notes


def _graphs(
    given: GivenGraph,
    graphs: OpenTable,
    options: TableOptions,
    fixed: FeatureEncoder | None,
    masks: Masks | None,
) -> First:
    notes = list(given.notes)
    if not options.target:
        raise DataError(
            f"{graphs.name}: name the target, the column to predict; the columns are "
            f"{show_list(graphs.names)}"
        )
    graphs.check(options.target, "the target")
    _refuse(options, ("weight", "isolated"), "whole graphs are predicted")
    graph = find_graph(given.nodes, options.graph)
    read, id = _read(given, options, notes, taken=(graph,), graph=graph)
    rows = read_graph_rows(graphs, read.nodes, graph, options.target)
    refuse_between(read.edge_index, rows.of_node, read.edges, rows.ids)
    found, ignored = find_parts(rows.table, options.split, {rows.column, *options.target})
    reader, targets = TargetReader.fit(
        rows.table, options.target, task=options.task, unlabelled=options.unlabelled
    )
    if masks is not None:
        parts = parts_of_masks(rows.table, masks, targets, how=ASKED)
    else:
        parts = make_parts(rows.table, options.target, targets, found, options.seed)
    if len(parts.train) > 1:
        raise DataError(
            f"{graphs.name}: whole graphs must have one split; {len(parts.train)} folds were found "
            f"in column {show_list(found or ())}: --drop it, or give a column split"
        )
    others = _no_features(read.nodes, options, notes)
    names = _feature_names(read.nodes, options, {id: "id", graph: "graph"}, others)
    in_training = parts.train[0].numpy()[rows.of_node]
    encoder = fixed or _fit(read.nodes, names, in_training, options, notes)
    used = {*options.target, *(found or ()), *ignored, rows.column}
    unused = [name for name in rows.table.columns if name not in used]
    notes += [*ignored.values(), *targets.notes, *parts.notes]
    if unused:
        notes.append(f"{graphs.name}: not used: {show_list(unused)}")
    schema = _schema(read, given, options, encoder, reader, id, tuple(found or ()), notes, graph)
    features = encoder.transform(read.nodes)
    notes += [note for note in features.notes if note not in notes]
    attributes = edge_attributes(read, schema.edge_encoder, notes)
    dataset = graphs_dataset(read, schema, features.x, attributes, rows, targets, parts)
    notes.append(f"{len(dataset.graphs)} graphs, {len(read.ids)} nodes in all")
    return dataset, schema, notes


def _links(
    given: GivenGraph,
    graphs: OpenTable | None,
    options: TableOptions,
    fixed: FeatureEncoder | None,
) -> First:
    notes = list(given.notes)
    _refuse(
        options, ("target", "split", "unlabelled", "duplicates", "isolated"), "links are predicted"
    )
    if graphs is not None:
        raise DataError(f"{graphs.name}: a table of graphs goes with targets, not with --task link")
    if options.edge_features:
        raise DataError(
            "--edge-features must be left out where links are predicted: a link that is asked for "
            "has none"
        )
    read, id = _read(given, options, notes, taken=())
    others = _no_features(read.nodes, options, notes)
    names = _feature_names(read.nodes, options, {id: "id"}, others)
    encoder = fixed or _fit(read.nodes, names, np.ones(len(read.ids), dtype=bool), options, notes)
    schema = _schema(read, given, options, encoder, None, id, (), notes)
    features = encoder.transform(read.nodes)
    notes += [note for note in features.notes if note not in notes]
    time = None if options.time is None else edge_times(read.edges, options.time)
    dataset, more = links_dataset(read, schema, features.x, time, options.seed)
    return dataset, schema, [*notes, *more]


def _with_own_roles(given: GivenGraph, options: TableOptions) -> TableOptions:
    """What a graph object knows of itself, unless the caller says otherwise."""
    of_nodes = given.nodes.expand
    options = replace(
        options,
        features=None if options.features is None else of_nodes(options.features),
        target=of_nodes(options.target),
        drop=of_nodes(options.drop),
        categorical=of_nodes(options.categorical),
        text=of_nodes(options.text),
        edge_features=given.edges.expand(options.edge_features),
        weight=options.weight or given.weight,
        undirected=options.undirected or given.undirected,
    )
    if options.task == "link":  # targets of its own are no features
        unused = [n for n in given.target if n not in {*_named(options), *options.drop}]
        return replace(options, drop=(*options.drop, *unused))
    return replace(
        options,
        target=options.target or given.target,
        unlabelled=given.unlabelled if options.unlabelled is None else options.unlabelled,
    )


def _named(options: TableOptions) -> set[str]:
    """The columns that the user says are features."""
    return {*(options.features or ()), *options.categorical, *options.text}


def _no_features(table: Table, options: TableOptions, notes: list[str]) -> list[str]:
    """Columns that are called like a split where no node has a part: no features unless named."""
    found = [name for name in part_like(tuple(table.columns)) if name not in _named(options)]
    found = [name for name in found if name.strip().casefold() not in SPLIT_NAMES[1:]]
    if found:
        notes.append(
            f"columns {show_list(found)} look like a split of nodes, which is not used here; no "
            "features unless --features names them"
        )
    return found


def _read(
    given: GivenGraph,
    options: TableOptions,
    notes: list[str],
    *,
    taken: Collection[str],
    graph: str | None = None,
) -> tuple[ReadGraph, str]:
    """The nodes that may be of use and all edges; and the column of ids."""
    names = given.nodes.names
    given.nodes.check(options.drop, "a column to drop")
    roles = {"the id": options.id, "the split": None if graph else options.split}
    for role, name in roles.items():
        given.nodes.check([] if name is None else [name], role)
    given.nodes.check(sorted(_named(options)), "a feature")
    asked = {*_named(options), *taken, *(name for name in roles.values() if name is not None)}
    clash = sorted(asked & {*options.drop})
    if clash:
        raise DataError(f"{given.nodes.name}: column {show(clash[0])} is to be used and dropped")
    dropped = {*options.drop} | {n for n in names if counts_rows(n) and n not in asked}
    id = options.id or find_id(given.nodes.name, names, {*taken, *dropped})
    wanted = [name for name in names if name not in dropped or name == id]
    if options.features is not None:
        used = {id, *asked, *part_like(names)} | ({graph} if graph else set())
        unused = [name for name in wanted if name not in used]
        dropped |= {*unused}
        wanted = [name for name in wanted if name not in unused]
    notes.append(_say_nodes(id, [name for name in names if name in dropped]))
    table = given.nodes.read(wanted)
    columns = _edge_columns(given, options, graph)
    read = read_graph(given, table, id, columns, options.weight, notes, graph)
    notes += say_oddities(read.facts, {name: getattr(options, name) for name in EDGE_OPTIONS})
    ends = (columns.source, columns.target)
    if options.source is None and options.edge_target is None:
        refuse_data_as_header(given.edges, ends, read.ids, table.name)
    notes.append(say_ends(ends, columns.names, given.edges.names, id))
    return read, id


def _say_nodes(id: str, unused: Sequence[str]) -> str:
    text = "nodes: as the graph has them" if id == NODE else f"node ids: column {show(id)}"
    return f"{text}; not used: {show_list(unused)}" if unused else text


def _edge_columns(given: GivenGraph, options: TableOptions, graph: str | None) -> EdgeColumns:
    opened = given.edges
    numbers = tuple(name for name in (options.weight, options.time) if name is not None)
    others = (*numbers, *options.edge_features)
    for role, name in (
        ("the source of the edges", options.source),
        ("the target of the edges", options.edge_target),
        ("the edge weight", options.weight),
        ("the edge time", options.time),
    ):
        opened.check([] if name is None else [name], role)
    opened.check(options.edge_features, "a feature of edges")
    within = None
    if graph is not None:  # without one the names of nodes must tell graphs apart
        within = graph if graph in opened.names else graph_like(opened.names)
    taken = {*others, *([within] if within else [])}
    ends = find_ends(opened.name, opened.names, options.source, options.edge_target, taken)
    return EdgeColumns(*ends, graph=within, numbers=numbers, features=options.edge_features)


def _roles(target: Sequence[str], parts: Sequence[str] | None) -> dict[str, str]:
    return {**dict.fromkeys(target, "target"), **dict.fromkeys(parts or (), "split")}


def _feature_names(
    table: Table, options: TableOptions, roles: dict[str, str], ignored: Collection[str]
) -> list[str]:
    if options.features is None:
        names = [n for n in table.columns if n not in roles and n not in ignored]
        names += [n for n in (*options.categorical, *options.text) if n not in names]
    else:
        names = list(dict.fromkeys(options.features))
    for name in names:
        if roles.get(name) in ("target", "split"):  # they give the answer away; an id may inform
            raise DataError(
                f"{table.name}, column {show(name)}: the target or split cannot be a feature"
            )
    for name in (*options.categorical, *options.text):
        if name not in names:
            raise DataError(
                f"{table.name}: categorical and text columns must be features; {show(name)} is not "
                f"among {show_list(names) or 'them (there are none)'}"
            )
    return names


def _fit(
    table: Table, names: Sequence[str], train: object, options: TableOptions, notes: list[str]
) -> FeatureEncoder:
    fitted = FeatureEncoder.fit(
        table,
        names,
        np.asarray(train, dtype=bool),
        categorical=options.categorical,
        text=options.text,
    )
    notes += fitted.notes
    notes += [f"column {show(n)} is left out: {why}" for n, why in fitted.left_out.items()]
    return fitted.encoder


def _schema(
    read: ReadGraph,
    given: GivenGraph,
    options: TableOptions,
    encoder: FeatureEncoder,
    targets: TargetReader | None,
    id: str,
    parts: tuple[str, ...],
    notes: list[str],
    graph: str | None = None,
) -> TableSchema:
    edge_encoder = None
    if options.edge_features:
        everything = np.ones(read.edges.num_rows, dtype=bool)
        fitted = FeatureEncoder.fit(read.edges, options.edge_features, everything)
        notes += [f"edges: {note}" for note in fitted.notes]
        edge_encoder = fitted.encoder
        if fitted.left_out:
            raise DataError(
                f"{given.edges.name}: edge features must be numbers or a few categories; "
                f"{show(next(iter(fitted.left_out)))} is neither: leave it out of --edge-features"
            )
    columns = _edge_columns(given, options, graph)
    return TableSchema(
        encoder=encoder,
        targets=targets,
        task="link" if targets is None else targets.task,
        id=id,
        source=columns.source,
        edge_target=columns.target,
        weight=options.weight,
        time=options.time,
        graph=graph,
        edge_encoder=edge_encoder,
        parts=parts,
        undirected=options.undirected,
        self_loops=options.self_loops,
        duplicates=options.duplicates,
    )


def _refuse(options: TableOptions, names: Sequence[str], because: str) -> None:
    default = TableOptions()
    for name in names:
        if getattr(options, name) != getattr(default, name):
            option, value = name.replace("_", "-"), getattr(options, name)
            got = show_list(value) if isinstance(value, tuple) else show(value)
            raise DataError(f"--{option} must be left out where {because}; got {got}")
