"""The user's own tables as the data of a run: read once for training, and again by what it kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.tables import TableData, load_tables, read_table

# What a run keeps of how its tables were read; the names are those of `load_tables`.
OPTIONS = {
    "target", "id", "features", "categorical", "split", "source", "edge_target", "weight", "task",
    "undirected", "seed",
}  # fmt: skip


@dataclass(frozen=True)
class OwnTables:
    """A graph from two tables.

    Args:
        dataset: the graph.
        kept: what a run must hold to read them again, and new tables in the same way.
        notes: what was guessed or left out.
    """

    dataset: NodeDataset
    kept: dict[str, Any]
    notes: tuple[str, ...]


def read_own(nodes: Path, edges: Path, **options: Any) -> OwnTables:
    """Read two tables for training.

    Args:
        nodes, edges: the tables.
        options: those of :func:`~coopsheaf.data.load_tables` that are in ``OPTIONS``, all of them.
    """
    assert options.keys() == OPTIONS
    # By its name, so that tables with another order of columns mean the same.
    options["id"] = options["id"] or next(iter(read_table(nodes).columns))
    data = _load(nodes, edges, options)
    paths = {"nodes": str(nodes.resolve()), "edges": str(edges.resolve())}
    kept = {"encoder": data.encoder.to_json(), "tables": options | paths}
    # A name of its own, so that no table sets it beside a benchmark.
    return OwnTables(replace(data.dataset, name=f"own-{nodes.stem}"), kept, tuple(data.notes))


def read_own_again(stored: Mapping[str, Any]) -> NodeDataset:
    """The graph that a run was trained on, by the ``tables`` that it kept."""
    options = {key: value for key, value in stored.items() if key not in ("nodes", "edges")}
    return _load(Path(stored["nodes"]), Path(stored["edges"]), options).dataset


def _load(nodes: Path, edges: Path, options: dict[str, Any]) -> TableData:
    """The same tables read another way are other data, and have another checksum."""
    data = load_tables(nodes, edges, **options)
    text = json.dumps([data.dataset.checksum, options], sort_keys=True)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    return replace(data, dataset=replace(data.dataset, checksum=checksum))
