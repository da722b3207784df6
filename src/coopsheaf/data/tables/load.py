"""The user's own graph, from whatever it is in to a dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from coopsheaf.checks import did_you_mean
from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.tables.beside import put_beside
from coopsheaf.data.tables.columns.encoding import FeatureEncoder
from coopsheaf.data.tables.first import Masks, read_first
from coopsheaf.data.tables.later import read_later
from coopsheaf.data.tables.options import SEVERAL, TableOptions
from coopsheaf.data.tables.reading.given import open_given
from coopsheaf.data.tables.reading.inputs import OpenTable, Progress, open_table
from coopsheaf.data.tables.schema import TableSchema


@dataclass(frozen=True)
class TableData:
    """A graph read from tables, and what is needed to read another one the same way.

    Args:
        dataset: the graph or graphs; names of nodes are the user's, in the order of their table.
        schema: what was decided and fitted, or what was given.
        notes: what the user should be told, one line each.
        kept: what a run must hold to read the same tables again, and new ones in the same way.
    """

    dataset: AnyDataset
    schema: TableSchema
    notes: tuple[str, ...]
    kept: dict[str, Any]

    @property
    def encoder(self) -> FeatureEncoder:
        return self.schema.encoder

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.dataset.class_names

    @property
    def ids(self) -> tuple[str, ...]:
        """The names of the nodes, or of the graphs."""
        if isinstance(self.dataset, GraphDataset):
            return self.dataset.graph_ids
        return tuple(self.dataset.node_ids)


def load_tables(
    nodes: Any,
    edges: Any = None,
    *,
    graphs: Any = None,
    target: str | Sequence[str] | None = None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    drop: Collection[str] = (),
    categorical: Collection[str] = (),
    text: Collection[str] = (),
    split: str | None = None,
    source: str | None = None,
    edge_target: str | None = None,
    weight: str | None = None,
    edge_features: Sequence[str] = (),
    time: str | None = None,
    graph: str | None = None,
    task: str | None = None,
    unlabelled: Sequence[str] | None = None,
    undirected: bool = False,
    self_loops: str = "keep",
    duplicates: str = "keep",
    isolated: str = "keep",
    seed: int = 0,
    validation: float | None = None,
    y: Any = None,
    like: TableSchema | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> TableData:
    """Read a graph from a table of nodes and a table of edges::

        data = load_tables("nodes.csv", "edges.parquet", target="label")
        later = load_tables(new_nodes, new_edges, like=data.schema)  # DataFrames, say

    To train, name the ``target``. To predict, give what the first call decided, its ``schema``:
    nodes and edges may then be new and come from anywhere, the target may be absent, and the
    labelled nodes, if any, are the test part.

    Args:
        nodes: a path (``.csv``, ``.tsv``, ``.txt``, each with ``.gz``; ``.parquet``, ``.feather``,
            ``.arrow``; ``-`` is standard input), a pandas or polars DataFrame, a pyarrow Table or
            anything with ``__arrow_c_stream__``, a mapping from names to arrays, an array of
            features. A networkx graph or a PyG ``Data`` or ``HeteroData`` stands for both tables.
        edges: a table likewise, a ``(2, m)`` array, or for an array of features an ``(n, n)``
            adjacency.
        graphs: a table of graphs with the target, for tasks of whole graphs; a column ``graph`` of
            the other two tables says where a row belongs.
        target: column of labels, or several; empty cells are to be predicted.
        id: column of node ids; by default ``id``, ``node`` or ``node_id``, else the first one. Ids
            are texts, compared exactly.
        features: columns of features; by default all that have no other role.
        drop: columns to leave out.
        categorical: features to treat as categories even if they are numbers.
        text: features to count the words of.
        split: column that says the split; by default ``split``, ``fold`` or ``train_mask`` and its
            companions where they are understood, else a stratified 60/20/20 split of the labelled
            nodes by ``seed``.
        source, edge_target: columns of the edge table; by default ``source`` and ``target`` or
            another pair of :data:`~coopsheaf.data.tables.roles.END_NAMES`, else the first two.
        weight: column of edge weights, finite and not negative.
        edge_features: columns of the edge table for networks that use them.
        time: column of the edge table by which links are split, the latest last.
        graph: the column that says of which graph a row is.
        task: ``"classification"``, ``"binary"``, ``"multiclass"``, ``"multilabel"``,
            ``"regression"`` or ``"link"``, which needs no target; found from the labels by default.
        unlabelled: labels that mean that there is none, such as ``-1`` or ``unknown``.
        undirected: every edge counts both ways, each once.
        self_loops: ``"keep"``, ``"remove"`` or ``"add"``.
        duplicates: ``"keep"``, or ``"merge"`` edges that repeat earlier ones: weights are added and
            features averaged.
        isolated: ``"keep"``, or ``"exclude"`` nodes without edges from all parts of the split.
        seed: of the split.
        validation: instead of any other split: this share of the labelled nodes validates, the
            others are for training, and none is a test.
        y: the targets, one or a row of several for each node, in the order of ``nodes`` and instead
            of a column: for arrays, and whoever has them apart. Split columns and masks are about
            other targets then, and not used: ``validation`` is 0.2 if it is not given.
        like: the schema of a former call; options that it holds cannot be given beside it.
        progress: called with a table's name and the number of its rows that have been read.

    Raises:
        DataError: one line that names the file, the line or column, and the rule.
    """
    options = table_options(
        target=target,
        id=id,
        features=features,
        drop=drop,
        categorical=categorical,
        text=text,
        split=split,
        source=source,
        edge_target=edge_target,
        weight=weight,
        edge_features=edge_features,
        time=time,
        graph=graph,
        task=task,
        unlabelled=unlabelled,
        undirected=undirected,
        self_loops=self_loops,
        duplicates=duplicates,
        isolated=isolated,
        seed=seed,
        validation=validation,
    )
    if like is None:
        return read_tables(nodes, edges, graphs, options, progress, y=y)
    if y is not None:
        raise ValueError("`like` and `y` exclude each other: targets of a later table are a column")
    if options != TableOptions():
        asked = ", ".join(f"`{name}`" for name in options.to_json())
        raise ValueError(f"`like` says how tables are read; it excludes {asked}")
    return read_tables_like(nodes, edges, graphs, like, progress=progress)


def table_options(**given: Any) -> TableOptions:
    """Options of :func:`load_tables` as they are kept: names of columns as tuples of texts."""
    known = [item.name for item in fields(TableOptions)]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ValueError(f"unknown option {name!r}{hint}; there are {', '.join(known)}")
    values = dict(given)
    for name in SEVERAL:
        unsaid = name in ("features", "unlabelled") and given.get(name) is None
        if name in given and not unsaid:
            values[name] = _names(given[name])
    return TableOptions(**values)


def read_tables(
    nodes: Any,
    edges: Any,
    graphs: Any,
    options: TableOptions,
    progress: Progress | None = None,
    *,
    y: Any = None,
    masks: Masks | None = None,
) -> TableData:
    """Read tables for the first time; their targets may be given beside them.

    ``masks`` say the split instead of the tables.
    """
    given = open_given(nodes, edges, progress)
    if y is not None:
        given, options = put_beside(given, options, y)
    opened = None if graphs is None else open_table(graphs, "graphs", progress)
    dataset, schema, notes = read_first(given, opened, options, masks=masks)
    asked = options.to_json()
    tables = schema.to_json() | _files(given.nodes, given.edges, opened) | {"options": asked}
    kept = {"encoder": schema.encoder.to_json(), "tables": tables}
    return TableData(mark_reading(dataset, asked), schema, tuple(notes), kept)


def read_tables_like(
    nodes: Any,
    edges: Any,
    graphs: Any,
    schema: TableSchema,
    *,
    labelled: bool = True,
    progress: Progress | None = None,
) -> TableData:
    """Read tables as others were; without looking at targets unless ``labelled``."""
    given = open_given(nodes, edges, progress)
    opened = None if graphs is None else open_table(graphs, "graphs", progress)
    dataset, schema, notes = read_later(given, opened, schema, labelled=labelled)
    return TableData(dataset, schema, tuple(notes), {})


def mark_reading(dataset: AnyDataset, asked: dict[str, Any]) -> AnyDataset:
    """The same tables read another way are other data, and have another checksum."""
    text = json.dumps([dataset.checksum, asked], sort_keys=True)
    return replace(dataset, checksum=hashlib.sha256(text.encode()).hexdigest())


def _files(nodes: OpenTable, edges: OpenTable, graphs: OpenTable | None) -> dict[str, str | None]:
    """Where the tables can be found again; ``None`` where they cannot."""
    opened = {"nodes": nodes, "edges": edges, **({} if graphs is None else {"graphs": graphs})}
    return {
        role: None if table.file is None else str(Path(table.file).resolve())
        for role, table in opened.items()
    }


def _names(given: str | Collection[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    several = isinstance(given, Collection) and not isinstance(given, str)
    # Columns of a frame and labels may be numbers; here they are called by their texts.
    return tuple(dict.fromkeys(map(str, given))) if several else (str(given),)
