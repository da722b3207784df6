"""The data of a trained run: found again, or given anew and read the same way."""

from __future__ import annotations

from pathlib import Path

from coopsheaf.cli import show
from coopsheaf.cli.own import read_own_again, stored_tables
from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.encoding import FeatureEncoder
from coopsheaf.data.named import load_named
from coopsheaf.data.pack import PREFIX
from coopsheaf.data.tables import load_tables
from coopsheaf.train.checkpoint import CheckpointError
from coopsheaf.train.run import Run


def find_data(
    run: Run, nodes: Path | None, edges: Path | None, data_dir: Path | None, *, labelled: bool
) -> tuple[NodeDataset | GraphDataset, int]:
    """The run's own data, or new tables read with the run's encoders; and which split of it."""
    tables = stored_tables(run)
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
        for note in data.notes:
            show.say(note)
        return data.dataset, 0
    if tables is not None:
        dataset: NodeDataset | GraphDataset = read_own_again(tables)
    else:
        where = data_dir or run.info.get("data_dir")
        packed = run.recipe.data.name.startswith(PREFIX)
        name = run.recipe.data.name if packed else run.info["dataset"]
        dataset = load_named(name, where, **run.info["processing"])
    if dataset.checksum != run.info["dataset_checksum"]:
        raise CheckpointError(
            f"the data of this run has changed since (checksum {dataset.checksum[:12]}, then "
            f"{run.info['dataset_checksum'][:12]}); give the tables with --nodes and --edges"
        )
    return dataset, run.info["split"]
