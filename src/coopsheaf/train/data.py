"""The data of a run: found again, or given anew and read the same way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.errors import DataError
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.pack import PREFIX
from coopsheaf.data.registry import load_dataset
from coopsheaf.data.tables.load import read_tables_like
from coopsheaf.data.tables.own import read_own_again, read_own_pairs, stored_schema
from coopsheaf.data.tables.schema import TableSchema
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
    nodes: Any = None,
    edges: Any = None,
    *,
    graphs: Any = None,
    data_dir: Path | None = None,
    labelled: bool = False,
) -> RunData:
    """The run's own data, or new tables read with the run's encoders.

    Args:
        run: a trained run.
        nodes, edges, graphs: a new graph in any form that :func:`~coopsheaf.data.load_tables`
            takes, as paths, frames or one object; by default the data that the run was trained on.
        data_dir: where to look for a dataset's files.
        labelled: new tables may have the target column.
    """
    alone = edges is None and isinstance(nodes, str | Path)  # no graph object, which has edges
    if alone or (nodes is None and (edges is not None or graphs is not None)):
        raise ValueError("--nodes and --edges go together: a table of nodes and one of edges")
    tables = _stored_tables(run)
    if nodes is not None:
        if tables is None:
            raise ValueError(
                f"this run was trained on {run.info['dataset']}, not on tables: it cannot read "
                "--nodes and --edges"
            )
        schema = table_schema(run)
        data = read_tables_like(nodes, edges, graphs, schema, labelled=labelled)
        return RunData(data.dataset, 0, data.notes)
    packed = run.recipe.data.name.startswith(PREFIX)
    dataset: AnyDataset
    if tables is not None and not packed:
        dataset = read_own_again(tables, run.info["encoder"])
    elif run.info["level"] == "link":
        raise CheckpointError(
            f"the links of this run, {run.info['dataset']}, were made in Python: evaluate it "
            "there, with the dataset that it was trained on"
        )
    else:
        where = data_dir or run.info.get("data_dir")
        name = run.recipe.data.name if packed else run.info["dataset"]
        dataset = load_dataset(name, where, **run.info["processing"])
    if dataset.checksum != run.info["dataset_checksum"]:
        raise CheckpointError(
            f"the data of this run has changed since (checksum {dataset.checksum[:12]}, then "
            f"{run.info['dataset_checksum'][:12]}); give the tables with --nodes and --edges"
        )
    return RunData(dataset, run.info["split"])


def table_schema(run: Run) -> TableSchema:
    """How the tables of a run were read; :func:`~coopsheaf.data.load_tables` takes it."""
    tables = _stored_tables(run)
    if tables is None:
        raise ValueError(f"this run was trained on {run.info['dataset']}, not on tables")
    try:
        return stored_schema(tables, run.info["encoder"], run.task.kind, run.class_names)
    except DataError as error:
        raise CheckpointError(f"run.json: {error}") from None


def read_pairs(run: Run, pairs: Any, dataset: NodeDataset | LinkDataset) -> Tensor:
    """``(2, k)`` node numbers of the pairs in a table, whose columns are those of the edges."""
    return read_own_pairs(pairs, table_schema(run), dataset.node_ids)


def _stored_tables(run: Run) -> dict[str, Any] | None:
    """What reading its tables left in a run; ``None`` if it was trained on data by name."""
    stored = run.info.get("tables")
    if stored is None:
        return None
    if not isinstance(stored, dict) or "encoder" not in run.info:
        raise CheckpointError(
            "run.json: not a run of coopsheaf on tables; it lacks "
            + ("the encoder" if isinstance(stored, dict) else "how they were read")
        )
    return stored
