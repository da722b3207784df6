"""The user's own tables as the data of a run: read once for training, and again by what it kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.encoding import FeatureEncoder
from coopsheaf.data.tables.edges import EdgeColumns, read_edges
from coopsheaf.data.tables.first import read_first
from coopsheaf.data.tables.load import mark_reading
from coopsheaf.data.tables.options import SEVERAL, TableOptions
from coopsheaf.data.tables.parts import PARTS
from coopsheaf.data.tables.reading.cells import Ids
from coopsheaf.data.tables.reading.given import open_given
from coopsheaf.data.tables.reading.graph_objects import GivenGraph
from coopsheaf.data.tables.reading.inputs import OpenTable, open_table
from coopsheaf.data.tables.reading.table import SOURCE, TARGET
from coopsheaf.data.tables.roles import find_ends
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.data.tables.targets.reader import TargetReader

FILES = ("nodes", "edges", "graphs")
# What runs kept before there was a schema: only what had been asked for.
OLD_OPTIONS = {
    "target", "id", "features", "categorical", "split", "source", "edge_target", "weight", "task",
    "undirected", "seed",
}  # fmt: skip


def read_own_again(stored: Mapping[str, Any], encoder: object) -> AnyDataset:
    """The data that a run was trained on, by the ``tables`` and the encoder that it kept."""
    options, asked = _stored_options(stored)
    for role in ("nodes", "edges"):
        if not isinstance(stored.get(role), str):
            raise DataError(
                f"the {role} of this run came from a pipe or from memory and cannot be read again: "
                "give the tables with --nodes and --edges"
            )
    given = open_given(stored["nodes"], stored["edges"])
    graphs = stored.get("graphs")
    opened: OpenTable | None = None if graphs is None else open_table(graphs, "graphs")
    fitted = FeatureEncoder.from_json(encoder)
    if "options" not in stored:
        options = _as_then(options, given, fitted)
    dataset, schema, _ = read_first(given, opened, options, encoder=fitted)
    if "options" in stored and schema != TableSchema.from_json(stored, encoder):
        raise DataError("stored tables contradict themselves: what was asked for reads others")
    return mark_reading(dataset, asked)


def _as_then(options: TableOptions, given: GivenGraph, encoder: FeatureEncoder) -> TableOptions:
    """What runs without stored options did without being asked.

    The first two columns were the ends of edges, whatever their names, and only a column called
    ``split`` with nothing but words for parts was the split.
    """
    source, target = _first_ends(given.edges, options)
    names, split = given.nodes.names, options.split
    taken = {*encoder.names, *options.target, options.id}
    if split is None and "split" in names and "split" not in taken:
        texts = given.nodes.read(["split"]).columns["split"].distinct.texts
        words = {text.strip().lower() for text in texts} - {""}
        split = "split" if words and words <= PARTS.keys() else None
    return replace(
        options,
        features=encoder.names,
        split=split,
        source=source,
        edge_target=target,
        drop=tuple(name for name in names if name not in {*taken, split}),
    )


def _first_ends(edges: OpenTable, options: TableOptions) -> tuple[str, str]:
    return options.source or edges.names[0], options.edge_target or edges.names[1]


def read_own_pairs(pairs: Any, schema: TableSchema, node_ids: tuple[str, ...]) -> Tensor:
    """``(2, k)`` numbers of the nodes of pairs, whose columns are called as those of edges."""
    opened = open_table(pairs, "pairs")
    named = (schema.source, schema.edge_target)
    if not set(named) <= set(opened.names):
        named = find_ends(opened.name, opened.names, None, None)
    return read_edges(opened, EdgeColumns(*named), Ids(node_ids), "the nodes").edge_index


def stored_schema(
    stored: Mapping[str, Any], encoder: object, task: str, class_names: tuple[str, ...]
) -> TableSchema:
    """How the tables of a run were read.

    Args:
        stored, encoder: ``tables`` and ``encoder`` of the run.
        task, class_names: of the run; runs from before there was a schema have them there alone.
    """
    if "options" in stored:
        return TableSchema.from_json(stored, encoder)
    options, _ = _stored_options(stored)
    if options.id is None:
        raise DataError("stored tables must name the column of ids; these do not")
    ends = _ends_then(stored, options)
    return TableSchema(
        encoder=FeatureEncoder.from_json(encoder),
        targets=TargetReader(options.target, task, class_names),
        task=task,
        id=options.id,
        source=ends[0],
        edge_target=ends[1],
        parts=() if options.split is None else (options.split,),
        weight=options.weight,
        undirected=options.undirected,
    )


def _ends_then(stored: Mapping[str, Any], options: TableOptions) -> tuple[str, str]:
    """The columns of ends in runs that kept no names: found by their names, unless those of the
    table of then say otherwise than their places."""
    unknown = (options.source or SOURCE, options.edge_target or TARGET)
    try:
        edges = open_table(stored.get("edges"), "edges")
    except DataError:  # the table is gone
        return unknown
    ends = _first_ends(edges, options)
    try:
        found = find_ends(edges.name, edges.names, options.source, options.edge_target)
    except DataError:
        return ends
    return unknown if found == ends else ends


def _stored_options(stored: Mapping[str, Any]) -> tuple[TableOptions, dict[str, Any]]:
    """What was asked for, as options and as it was written down."""
    asked = stored.get("options")
    if "options" not in stored:
        asked = {key: value for key, value in stored.items() if key not in FILES}
        missing = OLD_OPTIONS - asked.keys()
        if missing:
            raise DataError(f"stored tables must say how they were read; they lack {min(missing)}")
    if not isinstance(asked, dict):
        raise DataError(f"stored tables must hold options; got {show(str(asked), 80)}")
    known = {item.name: item for item in fields(TableOptions)}
    values: dict[str, Any] = {}
    for name, value in asked.items():
        if name not in known:
            raise DataError(f"stored tables have an unknown option {show(str(name))}")
        values[name] = _option(name, value, known[name].default)
    try:
        return TableOptions(**values), dict(asked)
    except ValueError as error:
        raise DataError(f"stored tables have an option that cannot be: {error}") from None


def _option(name: str, value: Any, default: Any) -> Any:
    if name in SEVERAL:
        value = [value] if isinstance(value, str) else value
        fits = value is None or (
            isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)
        )
        value = default if value is None else tuple(value) if fits else value
    elif name == "seed":
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif name == "validation":
        fits = isinstance(value, float)
    elif name == "undirected":
        fits = isinstance(value, bool)
    else:
        fits = value is None or isinstance(value, str)
    if not fits:
        raise DataError(f"stored tables: the option {name} cannot be {show(str(value), 80)}")
    return value
