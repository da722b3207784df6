"""The options about the user's own tables."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import Any

from coopsheaf.cli import args, show
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.tables.load import read_tables
from coopsheaf.data.tables.options import TableOptions


def has_own(tables: args.Tables, dataset: str | None) -> bool:
    """Whether a command is about own tables; otherwise it must name a dataset."""
    own = tables.nodes is not None or tables.edges is not None
    if own == (dataset is not None):
        raise ValueError(
            "give either the name of a dataset (see `coopsheaf data list`) or both --nodes and "
            "--edges"
        )
    if not own and tables != args.Tables():
        raise ValueError(
            "--target and the other options of tables go with --nodes and --edges, not with the "
            f"name of a dataset; got {dataset!r}"
        )
    return own


def read_own(tables: args.Tables, seed: int) -> tuple[AnyDataset, dict[str, Any]]:
    """The graph of the options, and what its run keeps; what was decided is said."""
    if tables.nodes is None or tables.edges is None:
        raise ValueError("--nodes and --edges go together: a table of nodes and one of edges")
    same = {item.name for item in fields(TableOptions)} - {"split", "seed"}
    values: dict[str, Any] = {name: getattr(tables, name) for name in same}
    options = TableOptions(**values, split=tables.split_column, seed=seed)
    data = read_tables(tables.nodes, tables.edges, tables.graphs, options, reading_progress())
    for note in data.notes:
        show.say(note)
    return data.dataset, data.kept


def reading_progress() -> Any:
    """Says how far reading has come, from the second second on."""
    last = [time.monotonic()]

    def report(name: str, rows: int) -> None:
        if time.monotonic() - last[0] > 2:
            last[0] = time.monotonic()
            show.note(f"reading {name}: {rows:,} rows")

    return report
