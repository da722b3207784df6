"""The user's own graph: a node table and an edge table."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import repeat
from os import PathLike

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.data.dataset import NodeDataset, Processing, default_metric
from coopsheaf.data.delimited import Table, read_table
from coopsheaf.data.encoding import CategoricalColumn, FeatureEncoder, TransformReport, is_missing
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.splits import stratified_split
from coopsheaf.data.targets import Targets, apply_targets, read_targets

__all__ = ["Table", "TableData", "load_tables", "read_table"]

PARTS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "dev": 1,
    "test": 2,
    "testing": 2,
}
TABLE_TASKS = {
    "classification": "binary or multiclass, by the number of classes",
    "binary": "two classes, one logit",
    "multiclass": "several classes, one logit each",
    "regression": "real targets",
}


@dataclass(frozen=True)
class TableData:
    """A graph read from tables, and what is needed to read another one the same way.

    Args:
        dataset: the graph; ``node_ids`` are the user's ids, in the order of the node table.
        encoder: fitted on the training nodes, or the one that was given.
        target: name of the target column, if there is one.
        notes: what the user should be told, one line each.
    """

    dataset: NodeDataset
    encoder: FeatureEncoder
    target: str | None
    notes: tuple[str, ...]

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.dataset.class_names

    @property
    def ids(self) -> tuple[str, ...]:
        return self.dataset.node_ids


def load_tables(
    nodes: str | PathLike[str] | Table,
    edges: str | PathLike[str] | Table,
    *,
    target: str | None = None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    categorical: Collection[str] = (),
    split: str | None = None,
    source: str | None = None,
    edge_target: str | None = None,
    weight: str | None = None,
    task: str | None = None,
    seed: int = 0,
    encoder: FeatureEncoder | None = None,
    class_names: Sequence[str] = (),
    undirected: bool = False,
) -> TableData:
    """Read a graph from a node table and an edge table.

    To train, name the ``target``. To predict, give the ``encoder``, the ``class_names`` and the
    ``task`` of the trained model: nodes and edges may then be new, the target may be absent,
    and the labelled nodes, if any, are the test part.

    Args:
        nodes, edges: files for :func:`read_table`, or tables.
        target: column of labels; empty cells are to be predicted.
        id: column of node ids; the first one by default. Ids are texts, compared exactly.
        features: columns of features; by default all that have no other role.
        categorical: features to treat as categories even if they are numbers.
        split: column of ``train``, ``val`` or ``test`` (any case; empty: in no part). By default a
            column called ``split`` that has nothing else in it, else a stratified 60/20/20 split
            of the labelled nodes by ``seed``.
        source, edge_target: columns of the edge table; its first two by default.
        weight: column of edge weights, finite and not negative.
        task: ``"classification"``, ``"binary"``, ``"multiclass"`` or ``"regression"``; found from
            the labels by default.
        undirected: every edge counts both ways, each once.

    Raises:
        DataError: one line that names the file, the line or column, and the rule.
    """
    if task is not None:
        check_choice("task", task, TABLE_TASKS)
    node_table = nodes if isinstance(nodes, Table) else read_table(nodes)
    edge_table = edges if isinstance(edges, Table) else read_table(edges)
    notes: list[str] = []
    id = next(iter(node_table.columns)) if id is None else id
    index = _node_index(node_table, id)
    edge_index, edge_weight = _read_edges(
        edge_table, index, node_table, source, edge_target, weight, notes
    )
    if encoder is None:
        if target is None:
            raise DataError(
                f"{node_table.name}: name the target, the column to predict; the columns are "
                f"{show_list(node_table.columns)}"
            )
        node_table.column(target, "the target")
        split = _find_split(node_table, split, (id, target, *(features or ())))
        targets = read_targets(node_table, target, task)
        masks = _masks(node_table, target, targets, split, seed, notes)
        names = _feature_columns(node_table, features, categorical, (id, target, split))
        train_rows: NDArray[np.bool_] = masks[0].numpy()
        encoder = FeatureEncoder.fit(node_table, names, train_rows, categorical=categorical)
        _note_columns(encoder, id, notes)
    else:
        if task is None or (task != "regression" and len(class_names) < 2):
            raise ValueError(
                "`task` and, unless it is 'regression', two or more `class_names` of the trained "
                f"model must come with `encoder`; got {task!r} and {tuple(class_names)!r}"
            )
        targets = apply_targets(node_table, target, task, class_names)
        masks = _predict_masks(node_table, targets, split)
    x, report = encoder.transform(node_table)
    _note_targets(targets, report, notes)
    dataset = NodeDataset(
        name=node_table.name,
        x=x,
        edge_index=edge_index,
        y=targets.y,
        train=masks[0][None],
        val=masks[1][None],
        test=masks[2][None],
        task=targets.task,
        metric=default_metric(targets.task, targets.y, masks[1:]),
        class_names=targets.class_names,
        node_ids=tuple(index),
        edge_weight=edge_weight,
        checksum=_checksum(node_table, edge_table),
    )
    share = dataset.reciprocated
    notes.append(
        f"{dataset.num_nodes} nodes, {dataset.num_edges} edges; {share:.1%} of the edges between "
        "different nodes have their reverse; "
        + ("all are used both ways" if undirected else "the graph is kept directed")
    )
    if undirected:
        dataset = dataset.process(Processing(direction="undirected"))
    return TableData(dataset, encoder, target, tuple(notes))


def _node_index(table: Table, column: str) -> dict[str, int]:
    """The number of each node, in the order of the table."""
    ids = table.column(column, "the id")
    index = {node: row for row, node in enumerate(ids)}
    if len(index) < len(ids):
        first: dict[str, int] = {}
        for row, node in enumerate(ids):
            if node in first:
                raise DataError(
                    f"{table.at(row, column)}: ids must differ; {show(node)} is also on "
                    f"{table.place} {table.lines[first[node]]}"
                )
            first[node] = row
    if "" in index:
        raise DataError(f"{table.at(index[''], column)}: every node must have an id; got none")
    return index


def _read_edges(
    table: Table,
    index: dict[str, int],
    nodes: Table,
    source: str | None,
    target: str | None,
    weight: str | None,
    notes: list[str],
) -> tuple[Tensor, Tensor | None]:
    """``(2, m)`` edges and ``(m,)`` weights."""
    first, second = list(table.columns)[:2]
    if source is None and target is None and first in index and second in index:
        raise DataError(
            f"{table.name}, {table.place} 1: the first line must name the columns; got "
            f"{show(first)} and {show(second)}, which are nodes of {nodes.name}: add a header, or "
            "name the columns"
        )
    ends = (source or first, target or second)
    if ends[0] == ends[1]:
        raise DataError(
            f"{table.name}: source and target must be different columns; both are {show(ends[0])}"
        )
    columns = [
        np.fromiter(map(index.get, cells, repeat(-1)), dtype=np.int64, count=len(cells))
        for cells in (table.column(end, "an end of the edges") for end in ends)
    ]
    for end, numbers in zip(ends, columns, strict=True):
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            row = int(unknown[0])
            more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            raise DataError(
                f"{table.at(row, end)}: an edge must join nodes of {nodes.name}; it has no node "
                f"{show(table.columns[end][row])}{more}"
            )
    edge_index = np.stack(columns)
    repeated = len(columns[0]) - len(np.unique(columns[0] * len(index) + columns[1]))
    if repeated:
        notes.append(f"{repeated} edges repeat earlier ones; they are kept")
    loops = int((columns[0] == columns[1]).sum())
    if loops:
        notes.append(f"{loops} edges join a node to itself; they are kept")
    return torch.from_numpy(edge_index), None if weight is None else _weights(table, weight)


def _weights(table: Table, column: str) -> Tensor:
    cells = table.column(column, "the edge weight")
    weights = np.zeros(len(cells), dtype=np.float32)
    limit = float(np.finfo(np.float32).max)
    for row, cell in enumerate(cells):
        try:
            value = float(cell)
        except ValueError:
            value = -1.0
        if not 0 <= value <= limit:
            raise DataError(
                f"{table.at(row, column)}: a weight must be a finite number, not negative; got "
                f"{show(cell)}"
            )
        weights[row] = value
    return torch.from_numpy(weights)


def _find_split(table: Table, split: str | None, taken: Sequence[str]) -> str | None:
    if split is None and "split" in table.columns and "split" not in taken:
        found = {cell.strip().lower() for cell in table.columns["split"]} - {""}
        return "split" if found and found <= PARTS.keys() else None
    return split


def _read_split(table: Table, column: str) -> Tensor:
    """``(3, n)`` masks."""
    cells = table.column(column, "the split")
    masks = torch.zeros(3, len(cells), dtype=torch.bool)
    rows: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for row, cell in enumerate(cells):
        part = PARTS.get(cell.strip().lower())
        if part is not None:
            rows[part].append(row)
        elif not is_missing(cell):
            raise DataError(
                f"{table.at(row, column)}: a split must be train, val, test or empty; got "
                f"{show(cell)}"
            )
    for part, chosen in rows.items():
        masks[part, chosen] = True
    return masks


def _masks(
    table: Table, target: str, targets: Targets, split: str | None, seed: int, notes: list[str]
) -> Tensor:
    """``(3, n)`` masks to train with: labelled nodes only, with something to learn from."""
    if split is None:
        masks = torch.stack(stratified_split(targets.y, targets.known, seed=seed))
        how = f"a stratified 60/20/20 split (seed {seed})"
        hint = "label more nodes or give a split column"
        where = f"{table.name}, column {show(target)}"
    else:
        masks = _read_split(table, split)
        without = int((masks.any(0) & ~targets.known).sum())
        if without:
            notes.append(f"{without} nodes of column {show(split)} have no label: in no part")
        masks &= targets.known
        how, hint = f"column {show(split)}", "mark labelled nodes for it"
        where = f"{table.name}, column {show(split)}"
    for part, mask in zip(("training", "validation"), masks, strict=False):
        if not mask.any():
            raise DataError(
                f"{where}: there must be labelled nodes for {part}; {how} of "
                f"{int(targets.known.sum())} labelled nodes has none: {hint}"
            )
    sizes = "/".join(str(int(mask.sum())) for mask in masks)
    notes.append(f"split: {how}: {sizes} nodes to train, validate and test")
    if targets.task != "regression":
        present = targets.y[masks[0]].unique().tolist()
        if len(present) < 2:
            raise DataError(
                f"{where}: training nodes must be of two classes or more; all "
                f"{int(masks[0].sum())} are {show(targets.class_names[present[0]])}: {hint}"
            )
        if len(present) < len(targets.class_names):
            absent = [n for i, n in enumerate(targets.class_names) if i not in set(present)]
            notes.append(f"no training node has a label of {show_list(absent)}")
    return masks


def _predict_masks(table: Table, targets: Targets, split: str | None) -> Tensor:
    """``(3, n)``: the split column if it is there, else all labelled nodes are the test part."""
    if split is not None and split in table.columns:
        return _read_split(table, split) & targets.known
    nothing = torch.zeros_like(targets.known)
    return torch.stack([nothing, nothing, targets.known])


def _feature_columns(
    table: Table,
    features: Sequence[str] | None,
    categorical: Collection[str],
    roles: tuple[str | None, ...],
) -> list[str]:
    if features is None:
        names = [name for name in table.columns if name not in roles]
    else:
        names = list(dict.fromkeys(features))
    for name in names:
        table.column(name, "a feature")
        if name in roles[1:]:  # the id may be informative; the others give the answer away
            raise DataError(
                f"{table.name}, column {show(name)}: the target or split cannot be a feature"
            )
    for name in categorical:
        if name not in names:
            raise DataError(
                f"{table.name}: categorical columns must be features; {show(name)} is not among "
                f"{show_list(names) or 'them (there are none)'}"
            )
    return names


def _checksum(*tables: Table) -> str:
    """Of the contents of the files, whatever they are called; empty if they are not files."""
    if not all(table.checksum for table in tables):
        return ""
    return hashlib.sha256("".join(table.checksum for table in tables).encode()).hexdigest()


def _note_columns(encoder: FeatureEncoder, id: str, notes: list[str]) -> None:
    notes.append(f"node ids: column {show(id)}")
    categories = [c.name for c in encoder.columns if isinstance(c, CategoricalColumn)]
    numbers = [name for name in encoder.names if name not in set(categories)]
    for kind, names in (("numeric", numbers), ("categorical", categories)):
        if names:
            notes.append(f"{len(names)} {kind} feature columns: {show_list(names)}")
    if not encoder.columns:
        notes.append("no feature columns: every node has the constant feature 1")


def _note_targets(targets: Targets, report: TransformReport, notes: list[str]) -> None:
    for column, count in report.unseen.items():
        notes.append(f"column {show(column)}: {count} nodes have a category not seen in training")
    for column, count in report.imputed.items():
        notes.append(f"column {show(column)}: {count} missing numbers, set to the training mean")
    labelled, n = int(targets.known.sum()), len(targets.known)
    what = "real targets" if targets.task == "regression" else show_list(targets.class_names)
    notes.append(f"task: {targets.task} ({what}); {labelled} nodes labelled, {n - labelled} not")
    if targets.foreign:
        notes.append(f"{targets.foreign} labels are none of the model's classes; not counted")
