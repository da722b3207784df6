"""The data of a run: found again, or given anew and read the same way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.encoding import FeatureEncoder
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.own import OPTIONS, read_own_again
from coopsheaf.data.pack import PREFIX
from coopsheaf.data.registry import load_dataset
from coopsheaf.data.tables import load_tables
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.run import Run
from coopsheaf.train.run_info import CheckpointError


class RunData(NamedTuple):
    """A graph for a run, which of its splits the run is about, and what reading it had to say."""

    dataset: AnyDataset
    split: int
    notes: tuple[str, ...] = ()


def load_data(config: DataConfig, data_dir: Path | None = None) -> NodeDataset | GraphDataset:
    """The dataset that a recipe names, processed as it says."""
    return load_dataset(
        config.name,
        data_dir,
        direction=config.direction,
        self_loops=config.self_loops,
        features=config.features,
    )


def whereabouts(data_dir: Path | None) -> dict[str, Any]:
    """Where the files of the data were looked for first, so that a run finds them again."""
    folder = data_dir or os.environ.get("COOPSHEAF_DATA")
    return {"data_dir": None if not folder else str(Path(folder).resolve())}


def run_data(
    run: Run,
    nodes: Path | None = None,
    edges: Path | None = None,
    *,
    data_dir: Path | None = None,
    labelled: bool = False,
) -> RunData:
    """The run's own data, or new tables read with the run's encoders.

    Args:
        run: a trained run.
        nodes, edges: new tables; by default the data that the run was trained on.
        data_dir: where to look for a dataset's files.
        labelled: new tables have the target column.
    """
    tables = _stored_tables(run)
    if (nodes is None) != (edges is None):
        raise ValueError("--nodes and --edges go together: a table of nodes and one of edges")
    if nodes is not None and edges is not None:
        if tables is None:
            raise ValueError(
                f"this run was trained on {run.info['dataset']}, not on tables: it cannot read "
                "--nodes and --edges"
            )
        data = load_tables(
            nodes,
            edges,
            target=tables["target"] if labelled else None,
            id=tables["id"],
            source=tables["source"],
            edge_target=tables["edge_target"],
            weight=tables["weight"],
            task=run.task.kind,
            encoder=FeatureEncoder.from_json(run.info["encoder"]),
            class_names=run.class_names,
            undirected=tables["undirected"],
        )
        return RunData(data.dataset, 0, tuple(data.notes))
    if tables is not None:
        dataset: AnyDataset = read_own_again(tables)
    elif run.info["level"] == "link":
        raise CheckpointError(
            f"the links of this run, {run.info['dataset']}, were made in Python: evaluate it "
            "there, with the dataset that it was trained on"
        )
    else:
        where = data_dir or run.info.get("data_dir")
        packed = run.recipe.data.name.startswith(PREFIX)
        name = run.recipe.data.name if packed else run.info["dataset"]
        dataset = load_dataset(name, where, **run.info["processing"])
    if dataset.checksum != run.info["dataset_checksum"]:
        raise CheckpointError(
            f"the data of this run has changed since (checksum {dataset.checksum[:12]}, then "
            f"{run.info['dataset_checksum'][:12]}); give the tables with --nodes and --edges"
        )
    return RunData(dataset, run.info["split"])


def _stored_tables(run: Run) -> dict[str, Any] | None:
    """What reading its tables left in a run; ``None`` if it was trained on data by name."""
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
