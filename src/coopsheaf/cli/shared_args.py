"""What several commands take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from tyro.conf import arg

Set = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, arg(name="set", metavar="SECTION.FIELD=VALUE")
]


@dataclass(frozen=True)
class Tables:
    """Your own graph: a table of nodes and a table of edges (CSV, TSV, .gz, Parquet, Feather)."""

    nodes: str | None = None
    """Table of nodes, one row each; - is standard input."""
    edges: str | None = None
    """Table of edges, one row each; - is standard input."""
    graphs: str | None = None
    """Table of graphs with the target, if whole graphs are to be predicted; a column graph of the
    other tables says where a row belongs."""
    target: tuple[str, ...] = ()
    """Column to predict, or several; empty cells are to be predicted."""
    id: str | None = None
    """Column with the nodes' ids; by default id, node or node_id, else the first one."""
    features: tuple[str, ...] | None = None
    """Columns to learn from; by default all that have no other role."""
    drop: tuple[str, ...] = ()
    """Columns to leave out."""
    categorical: tuple[str, ...] = ()
    """Features to treat as categories even if they are numbers."""
    text: tuple[str, ...] = ()
    """Features to count the words of."""
    split_column: str | None = None
    """Column that says train, val or test; by default split, fold or train_mask and its companions,
    else a stratified 60/20/20 split."""
    source: str | None = None
    """Column of the edge table with the sources; by default source, src, from, ..., else the first
    one."""
    edge_target: str | None = None
    """Column of the edge table with the targets; by default target, dst, to, ..., else the second
    one."""
    weight: str | None = None
    """Column of the edge table with weights."""
    edge_features: tuple[str, ...] = ()
    """Columns of the edge table for networks that use them (csnn does)."""
    time: str | None = None
    """Column of the edge table by which links are split in time; with --task link."""
    graph: str | None = None
    """Column that says of which graph a node or edge is; with --graphs."""
    task: str | None = None
    """classification, regression, multilabel, or link to predict edges; found from the target by
    default."""
    unlabelled: tuple[str, ...] | None = None
    """Labels that mean there is none, such as -1 or unknown."""
    undirected: bool = False
    """Use every edge both ways."""
    self_loops: str = "keep"
    """Edges from a node to itself: keep, remove, or add one at every node."""
    duplicates: str = "keep"
    """Edges that repeat earlier ones: keep, or merge (weights are added)."""
    isolated: str = "keep"
    """Nodes without edges: keep, or exclude from all parts of the split."""
