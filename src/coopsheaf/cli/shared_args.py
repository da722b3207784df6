"""What several commands take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from tyro.conf import arg

from coopsheaf.data.metrics import metrics_of

Set = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, arg(name="set", metavar="SECTION.FIELD=VALUE")
]
# What stands behind an option in the help, instead of a type.
File = Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")]
Column = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]
Columns = Annotated[tuple[str, ...], arg(metavar="COLUMN ...", help_behavior_hint="")]


METRIC_HELP = (
    "What is measured and, on validation, selects; by default that of the dataset. Short for --set "
    "train.metric=NAME. "
    + "; ".join(
        f"{what}: {', '.join(metrics_of(task))}"
        for task, what in {
            "binary": "two classes",
            "multiclass": "several classes",
            "multilabel": "labels",
            "regression": "numbers",
            "link": "links",
        }.items()
    )
    + "."
)


@dataclass(frozen=True)
class Tables:
    """Your own graph: a table of nodes and a table of edges (.csv, .tsv, .txt,
    also with .gz, .parquet, .feather, .arrow) whose columns have names.

    --nodes, --edges and --target are enough; what all columns are taken for is
    said before training.
    """

    nodes: File = None
    """Table of nodes, one row each; - is standard input."""
    edges: File = None
    """Table of edges, one row each; - is standard input."""
    graphs: File = None
    """Table of graphs with the target, if whole graphs are to be predicted; a column graph of the
    other tables says where a row belongs."""
    target: Columns = ()
    """Column to predict, or several; empty cells are to be predicted."""
    id: Column = None
    """Column with the nodes' ids; by default id, node or node_id, else the first one."""
    features: Annotated[
        tuple[str, ...] | None, arg(metavar="COLUMN ...", help_behavior_hint="")
    ] = None
    """Columns to learn from; by default all that have no other role."""
    drop: Columns = ()
    """Columns to leave out."""
    categorical: Columns = ()
    """Features to treat as categories even if they are numbers."""
    text: Columns = ()
    """Features to count the words of."""
    split_column: Column = None
    """Column that says train, val or test; by default split, fold or train_mask and its companions,
    else a stratified 60/20/20 split."""
    source: Column = None
    """Column of the edge table with the sources; by default source, src, from, ..., else the first
    one."""
    edge_target: Column = None
    """Column of the edge table with the targets; by default target, dst, to, ..., else the second
    one."""
    weight: Column = None
    """Column of the edge table with weights."""
    edge_features: Columns = ()
    """Columns of the edge table for networks that use them (csnn does)."""
    time: Column = None
    """Column of the edge table by which links are split in time; with --task link."""
    graph: Column = None
    """Column that says of which graph a node or edge is; with --graphs."""
    task: Annotated[str | None, arg(metavar="TASK", help_behavior_hint="")] = None
    """classification, regression, multilabel, or link to predict edges; found from the target by
    default."""
    unlabelled: Annotated[
        tuple[str, ...] | None, arg(metavar="LABEL ...", help_behavior_hint="")
    ] = None
    """Labels that mean there is none, such as -1 or unknown."""
    undirected: bool = False
    """Use every edge both ways."""
    self_loops: Annotated[str, arg(metavar="keep|remove|add")] = "keep"
    """Edges from a node to itself; add makes one at every node."""
    duplicates: Annotated[str, arg(metavar="keep|merge")] = "keep"
    """Edges that repeat earlier ones; merge adds their weights and averages their features."""
    isolated: Annotated[str, arg(metavar="keep|exclude")] = "keep"
    """Nodes without edges; exclude takes them out of all parts of the split."""
