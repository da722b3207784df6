"""The options about the user's own tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from coopsheaf.cli import args, show
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.tables.load import read_tables
from coopsheaf.data.tables.options import TableOptions
from coopsheaf.data.tables.reading.source import STANDARD_INPUT


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


def read_own(
    tables: args.Tables, seed: int, say: Callable[[str], None] = show.say
) -> tuple[AnyDataset, dict[str, Any]]:
    """The graph of the options, and what its run keeps; what was decided is said."""
    options = table_options(tables, seed)
    data = read_tables(tables.nodes, tables.edges, tables.graphs, options, reading_progress())
    for note in data.notes:
        say(note)
    return data.dataset, data.kept


def table_options(tables: args.Tables, seed: int) -> TableOptions:
    """How the tables shall be read."""
    if tables.nodes is None or tables.edges is None:
        raise ValueError("--nodes and --edges go together: a table of nodes and one of edges")
    same = {item.name for item in fields(TableOptions)} - {"split", "seed", "validation"}
    values: dict[str, Any] = {name: getattr(tables, name) for name in same}
    return TableOptions(**values, split=tables.split_column, seed=seed)


def refuse_pipes(tables: args.Tables, by: str = "by every process of a sweep") -> None:
    """Of a command that reads the tables several times."""
    for role in ("nodes", "edges", "graphs"):
        path = getattr(tables, role)
        if path is None:
            continue
        piped = Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())
        if path == STANDARD_INPUT or piped:
            raise ValueError(
                f"--{role} must be a file that can be read several times, {by}; {path} is a pipe: "
                "write it to a file first"
            )


def reading_progress() -> Any:
    """Says how far reading has come, from the second second on."""
    last = [time.monotonic()]

    def report(name: str, rows: int) -> None:
        if time.monotonic() - last[0] > 2:
            last[0] = time.monotonic()
            show.note(f"reading {name}: {rows:,} rows")

    return report
