"""The user's own tables, read the same way when a run is trained and when it is used again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from coopsheaf.cli import args, show
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.tables import TableData, load_tables, read_table
from coopsheaf.train.checkpoint import CheckpointError
from coopsheaf.train.run import Run

OPTIONS = {
    "target", "id", "features", "categorical", "split", "source", "edge_target", "weight", "task",
    "undirected", "seed",
}  # fmt: skip


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


def read_own(tables: args.Tables, seed: int) -> tuple[NodeDataset, dict[str, Any]]:
    """The graph, and what its run must hold to be used again: encoders, paths, columns."""
    if tables.nodes is None or tables.edges is None:
        raise ValueError("--nodes and --edges go together: a table of nodes and one of edges")
    options = {
        "target": tables.target,
        # By its name, so that tables with another order of columns mean the same.
        "id": tables.id or next(iter(read_table(tables.nodes).columns)),
        "features": tables.features,
        "categorical": tables.categorical,
        "split": tables.split_column,
        "source": tables.source,
        "edge_target": tables.edge_target,
        "weight": tables.weight,
        "task": tables.task,
        "undirected": tables.undirected,
        "seed": seed,
    }
    assert options.keys() == OPTIONS
    data = _load(tables.nodes, tables.edges, options)
    for note in data.notes:
        show.say(note)
    paths = {"nodes": str(tables.nodes.resolve()), "edges": str(tables.edges.resolve())}
    extra = {"encoder": data.encoder.to_json(), "tables": options | paths}
    # A name of its own, so that no table sets it beside a benchmark.
    return replace(data.dataset, name=f"own-{tables.nodes.stem}"), extra


def stored_tables(run: Run) -> dict[str, Any] | None:
    """What :func:`read_own` left in a run; ``None`` if it was trained on data by name."""
    stored = run.info.get("tables")
    if stored is None:
        return None
    known = set(stored) if isinstance(stored, dict) else set()
    missing = (OPTIONS | {"nodes", "edges"}) - known
    if missing or "encoder" not in run.info:
        raise CheckpointError(
            "run.json: not a run of coopsheaf on tables; it lacks "
            f"{', '.join(sorted(missing)) or 'the encoder'}"
        )
    return stored


def read_own_again(stored: Mapping[str, Any]) -> NodeDataset:
    """The graph that a run was trained on, by what :func:`read_own` returned."""
    options = {key: value for key, value in stored.items() if key not in ("nodes", "edges")}
    return _load(Path(stored["nodes"]), Path(stored["edges"]), options).dataset


def _load(nodes: Path, edges: Path, options: dict[str, Any]) -> TableData:
    """The same tables read another way are other data, and have another checksum."""
    data = load_tables(nodes, edges, **options)
    text = json.dumps([data.dataset.checksum, options], sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return replace(data, dataset=replace(data.dataset, checksum=checksum))
