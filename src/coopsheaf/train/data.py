"""The data of a run: found again, or given anew and read the same way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.encoding import FeatureEncoder
from coopsheaf.data.own import OPTIONS, read_own_again
from coopsheaf.data.pack import PREFIX
from coopsheaf.data.registry import load_dataset
from coopsheaf.data.tables import load_tables
from coopsheaf.schema import brief
from coopsheaf.train.beside import check_near, without_their_content
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.run import Run
from coopsheaf.train.run_info import CheckpointError


class RunData(NamedTuple):
    """A graph for a run, which of its splits the run is about, and what reading it had to say."""

    dataset: NodeDataset | GraphDataset
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
        encoder = _stored_encoder(run)
        data = load_tables(
            nodes,
            edges,
            target=tables["target"] if labelled else None,
            id=tables["id"],
            source=tables["source"],
            edge_target=tables["edge_target"],
            weight=tables["weight"],
            task=run.task.kind,
            encoder=encoder,
            class_names=run.class_names,
            undirected=tables["undirected"],
        )
        return RunData(data.dataset, 0, (*run.notes, *data.notes))
    dataset = _own_tables_again(run, tables, data_dir) if tables else _by_name(run, data_dir)
    if dataset.checksum != run.info["dataset_checksum"]:
        raise CheckpointError(
            f"the data of this run has changed since (checksum {dataset.checksum[:12]}, then "
            f"{run.info['dataset_checksum'][:12]}); give the tables with --nodes and --edges"
        )
    _check_fit(run, dataset)
    return RunData(dataset, run.info["split"], run.notes)


def _own_tables_again(run: Run, tables: dict[str, Any], data_dir: Path | None) -> NodeDataset:
    """The tables that a run was trained on, from where they were then."""
    named = [tables["nodes"], tables["edges"]]
    if None in named:
        raise CheckpointError(
            "the tables that this run was trained on came through a pipe; give them with --nodes "
            "and --edges"
        )
    paths = [Path(name) for name in named]
    if run.folder is not None:
        for path in paths:
            check_near(path, run.folder, data_dir, "the table")
    with without_their_content(paths):
        return read_own_again(tables)


def _by_name(run: Run, data_dir: Path | None) -> NodeDataset | GraphDataset:
    """The dataset or pack that a run was trained on."""
    name = run.info["dataset"]
    if run.recipe.data.name.startswith(PREFIX):
        name = run.recipe.data.name
        if run.folder is not None:
            check_near(Path(name.removeprefix(PREFIX)), run.folder, data_dir, "the pack")
    where = data_dir or run.info.get("data_dir")
    return load_dataset(name, where, **run.info["processing"])


def _check_fit(run: Run, dataset: NodeDataset | GraphDataset) -> None:
    """What a run says of its outputs has to be true of the data that it names."""
    graphs = isinstance(dataset, GraphDataset)
    if graphs != (run.info["level"] == "graph"):
        kind = "graphs" if graphs else "nodes"
        raise CheckpointError(f"run.json: level must fit its data, {kind}; got {run.info['level']}")
    facts: dict[str, Any] = {"task": dataset.task, "out_channels": dataset.out_channels}
    if run.info.get("tables"):  # the names of a dataset by name are ours, and may be spelled anew
        facts["class_names"] = list(dataset.class_names)
    for key, value in facts.items():
        if run.info[key] != value:
            raise CheckpointError(
                f"run.json: {key} must be that of the data it names, {brief(value)}; got "
                f"{brief(run.info[key])}"
            )


def _stored_encoder(run: Run) -> FeatureEncoder:
    """How the run's tables were encoded; it must not make more columns than the network takes."""
    encoder = FeatureEncoder.from_json(run.info["encoder"])
    if encoder.num_features > run.info["in_channels"]:
        raise CheckpointError(
            f"run.json: its encoder must make {run.info['in_channels']} features, as many as the "
            f"network takes; it makes {encoder.num_features}"
        )
    return encoder


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
