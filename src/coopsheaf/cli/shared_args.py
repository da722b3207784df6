"""What several commands take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import arg

Set = Annotated[
    tuple[str, ...], tyro.conf.UseAppendAction, arg(name="set", metavar="SECTION.FIELD=VALUE")
]


@dataclass(frozen=True)
class Tables:
    """Your own graph: a table of nodes and a table of edges (CSV or TSV)."""

    nodes: Path | None = None
    """Table of nodes: one row each, the first column its id."""
    edges: Path | None = None
    """Table of edges: the first two columns are the ids of source and target."""
    target: str | None = None
    """Column to predict; empty cells are nodes to be predicted."""
    id: str | None = None
    """Column with the nodes' ids; the first one by default."""
    features: tuple[str, ...] | None = None
    """Columns to learn from; by default all that have no other role."""
    categorical: tuple[str, ...] = ()
    """Features to treat as categories even if they are numbers."""
    split_column: str | None = None
    """Column that says train, val or test; by default a stratified 60/20/20 split."""
    source: str | None = None
    """Column of the edge table with the sources; the first one by default."""
    edge_target: str | None = None
    """Column of the edge table with the targets; the second one by default."""
    weight: str | None = None
    """Column of the edge table with weights."""
    task: str | None = None
    """classification or regression; found from the target by default."""
    undirected: bool = False
    """Use every edge both ways."""
