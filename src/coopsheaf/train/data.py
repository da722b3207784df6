"""The data of a run: found again, or given anew and read the same way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coopsheaf.data.dataset import PARTS, GraphDataset, NodeDataset
from coopsheaf.data.errors import DataError
from coopsheaf.data.links import AnyDataset, LinkDataset
from coopsheaf.data.pack import PREFIX
from coopsheaf.data.registry import load_dataset
from coopsheaf.data.tables.load import read_tables_like
from coopsheaf.data.tables.own import read_own_again, read_own_pairs, stored_schema
from coopsheaf.data.tables.schema import TableSchema
from coopsheaf.schema import brief, brief_text
from coopsheaf.train.beside import check_near, without_their_content
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.run import Run, level_of
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
        relations=config.relations,
        pe=config.pe,
        bonds=config.bonds,
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
        return RunData(data.dataset, 0, (*run.notes, *data.notes))
    packed = run.recipe.data.name.startswith(PREFIX)
    if tables is not None and not packed:
        dataset = _own_tables_again(run, tables, data_dir)
    else:
        dataset = _by_name(run, data_dir)
    if dataset.checksum != run.info["dataset_checksum"]:
        raise CheckpointError(
            f"the data of this run has changed since (checksum {dataset.checksum[:12]}, then "
            f"{run.info['dataset_checksum'][:12]}); give the tables with --nodes and --edges"
        )
    _check_fit(run, dataset)
    return RunData(dataset, run.info["split"], run.notes)


def _own_tables_again(run: Run, tables: dict[str, Any], data_dir: Path | None) -> AnyDataset:
    """The tables that a run was trained on, from where they were then."""
    named = [tables.get("nodes"), tables.get("edges")]
    if "graphs" in tables:
        named.append(tables["graphs"])
    if None in named:
        raise CheckpointError(
            "the tables that this run was trained on came through a pipe or from memory; give them "
            "with --nodes and --edges"
        )
    paths = [Path(str(name)) for name in named]
    if run.folder is not None:
        for path in paths:
            check_near(path, run.folder, data_dir, "the table")
    with without_their_content(paths):
        return read_own_again(tables, run.info["encoder"])


def _by_name(run: Run, data_dir: Path | None) -> AnyDataset:
    """The dataset or pack that a run was trained on."""
    if run.info["level"] == "link":
        raise CheckpointError(
            f"the links of this run, {run.info['dataset']}, were made in Python: evaluate it "
            "there, with the dataset that it was trained on"
        )
    name = run.info["dataset"]
    if run.recipe.data.name.startswith(PREFIX):
        name = run.recipe.data.name
        if run.folder is not None:
            check_near(Path(name.removeprefix(PREFIX)), run.folder, data_dir, "the pack")
    where = data_dir or run.info.get("data_dir")
    return load_dataset(name, where, **run.info["processing"])


def _check_fit(run: Run, dataset: AnyDataset) -> None:
    """What a run says of its outputs has to be true of the data that it names."""
    level = level_of(dataset)
    if level != run.info["level"]:
        raise CheckpointError(
            f"run.json: level must fit its data, {level}; got {run.info['level']}"
        )
    facts: dict[str, Any] = {"task": dataset.task, "out_channels": dataset.out_channels}
    if run.info.get("tables"):  # the names of a dataset by name are ours, and may be spelled anew
        facts["class_names"] = list(dataset.class_names)
    for key, value in facts.items():
        if run.info[key] != value:
            raise CheckpointError(
                f"run.json: {key} must be that of the data it names, {brief(value)}; got "
                f"{brief(run.info[key])}"
            )


class OwnParts(NamedTuple):
    """Which nodes or graphs of other tables a run has met, by name.

    Args:
        masks: ``(n,)`` booleans by part: ``train``, ``val``, ``test``, and ``new`` for the rest.
        why_not: why nobody knows, in a few words; then all are ``new``.
    """

    masks: dict[str, Tensor]
    why_not: str = ""


def own_parts(run: Run, dataset: AnyDataset, data_dir: Path | None = None) -> OwnParts:
    """Tell what a run was trained on from what it was not, by the names of nodes or graphs.

    Args:
        run: a run on tables.
        dataset: other tables, read as those of the run.
        data_dir: where the tables of the run may be.
    """
    names = _row_names(dataset)
    nobody = torch.zeros(len(names), dtype=torch.bool)
    try:
        own, split, _ = run_data(run, data_dir=data_dir)
    except (ValueError, OSError) as error:
        return OwnParts({"new": ~nobody}, brief_text(str(error), 300))
    part_of: dict[str, str] = {}
    known = _row_names(own)
    for part in PARTS:
        rows = getattr(own, part)
        rows = rows if isinstance(own, GraphDataset) else rows[split].nonzero().squeeze(1)
        part_of |= dict.fromkeys((known[i] for i in rows.tolist()), part)
    found = [part_of.get(name, "new") for name in names]
    masks = {part: torch.tensor([each == part for each in found]) for part in (*PARTS, "new")}
    return OwnParts({part: mask for part, mask in masks.items() if mask.any()})


def _row_names(dataset: AnyDataset) -> Sequence[str]:
    return dataset.graph_ids if isinstance(dataset, GraphDataset) else tuple(dataset.node_ids)


def table_schema(run: Run) -> TableSchema:
    """How the tables of a run were read; :func:`~coopsheaf.data.load_tables` takes it."""
    tables = _stored_tables(run)
    if tables is None:
        raise ValueError(f"this run was trained on {run.info['dataset']}, not on tables")
    try:
        schema = stored_schema(tables, run.info["encoder"], run.task.kind, run.class_names)
    except DataError as error:
        raise CheckpointError(f"run.json: {error}") from None
    wanted, found = run.info["in_channels"], schema.encoder.num_features
    if found != wanted:
        raise CheckpointError(
            f"run.json: its encoder must make {wanted} features, as many as the network takes; it "
            f"makes {found}"
        )
    classes = schema.targets.class_names if schema.targets is not None else ()
    if (schema.task, classes) != (run.task.kind, run.class_names):
        raise CheckpointError(
            f"run.json: its tables must have the task and the classes of the run, {run.task.kind} "
            f"with {len(run.class_names)}; they have {schema.task} with {len(classes)}"
            + (" others" if len(classes) == len(run.class_names) else "")
        )
    return schema


def read_pairs(run: Run, pairs: Any, dataset: NodeDataset | LinkDataset) -> Tensor:
    """``(2, k)`` node numbers of the pairs in a table, whose columns are those of the edges."""
    return read_own_pairs(pairs, table_schema(run), tuple(dataset.node_ids))


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
