"""The options about the user's own tables."""

from __future__ import annotations

from typing import Any

from coopsheaf.cli import args, show
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.own import read_own


def has_own(tables: args.Tables, dataset: str | None, splits: str | None) -> bool:
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
    if own and splits is not None:
        raise ValueError("--splits goes with the name of a dataset; own tables have one split")
    return own


def read_tables(tables: args.Tables, seed: int) -> tuple[NodeDataset, dict[str, Any]]:
    """The graph of the options, and what its run keeps; what was guessed is said."""
    if tables.nodes is None or tables.edges is None:
        raise ValueError("--nodes and --edges go together: a table of nodes and one of edges")
    own = read_own(
        tables.nodes,
        tables.edges,
        target=tables.target,
        id=tables.id,
        features=tables.features,
        categorical=tables.categorical,
        split=tables.split_column,
        source=tables.source,
        edge_target=tables.edge_target,
        weight=tables.weight,
        task=tables.task,
        undirected=tables.undirected,
        seed=seed,
    )
    for note in own.notes:
        show.say(note)
    return own.dataset, own.kept
