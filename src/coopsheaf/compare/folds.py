"""The parts of the data that models are compared on: folds, random splits, or published ones.

Each fold is data of its own: columns of tables are encoded anew by its training nodes, so that no
encoder has seen what is tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from coopsheaf.config import config_hash
from coopsheaf.data.dataset import PARTS, GraphDataset, NodeDataset, default_metric
from coopsheaf.data.links import AnyDataset
from coopsheaf.data.splits import masks_of_folds, stratified_folds, stratified_split
from coopsheaf.data.tables.load import TableData, read_tables
from coopsheaf.data.tables.options import TableOptions
from coopsheaf.data.tables.reading.inputs import Progress
from coopsheaf.train.order import derive_seed
from coopsheaf.train.task import Task

Dataset = NodeDataset | GraphDataset
Masks = tuple[Tensor, Tensor, Tensor]

FOLDS, REPEATS, PUBLISHED = "folds", "random splits", "splits"
DEFAULT_FOLDS = 5
FEWEST_FOLDS = 3  # one to test, one to validate, one to train


@dataclass(frozen=True)
class Fold:
    """One part of a comparison.

    Args:
        number: from 0.
        dataset: the data, as the training nodes of this fold have it encoded.
        split: which of its splits.
        extra: what else the ``run.json`` of a run on it holds.
    """

    number: int
    dataset: Dataset
    split: int
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Folds:
    """All parts of a comparison; each is made when it is asked for.

    Args:
        dataset: the data as it was read first.
        over: what the parts are, ``"folds"``, ``"random splits"`` or ``"splits"``.
        numbers: their numbers.
        masks: ``(k, n)`` of training, validation and test, a row for each of the dataset's splits
            or of those that were made.
        make: the fold of a number.
        checksums: of the data of each fold, in the order of ``numbers``.
        metric: of the dataset.
        notes: what the user should be told.
    """

    dataset: Dataset
    over: str
    numbers: tuple[int, ...]
    masks: Masks
    make: Callable[[int], Fold]
    checksums: tuple[str, ...]
    metric: str
    notes: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[tuple[int, int, int]]:
        """Training, validation and test nodes (or graphs) of each fold."""
        found = [tuple(int(mask[k].sum()) for mask in self.masks) for k in self.numbers]
        return [(train, val, test) for train, val, test in found]

    @property
    def one(self) -> str:
        """What one of them is called."""
        return self.over.removesuffix("s")


@dataclass(frozen=True)
class Scheme:
    """How the data is divided.

    Args:
        over: ``"folds"``, ``"random splits"`` or ``"splits"``, those of the data.
        count: how many folds or random splits.
        splits: of those of the data, which.
        seed: of what is drawn.
    """

    over: str
    count: int = 0
    splits: tuple[int, ...] = ()
    seed: int = 0


def choose_scheme(
    dataset: AnyDataset,
    divided: bool,
    *,
    folds: int | None = None,
    repeats: int | None = None,
    splits: tuple[int, ...] | None = None,
    seed: int = 0,
) -> Scheme:
    """What was asked for; else the splits that the data has, else five folds.

    Args:
        divided: whether the data comes with splits of its own.
    """
    asked = {"folds": folds, "repeats": repeats, "splits": splits}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"`{given[0]}` and `{given[1]}` exclude each other; give one of them")
    if splits is not None and not divided:
        raise ValueError(
            f"`splits` chooses among the splits of the data, and {dataset.name} has none of its "
            "own; use `folds` or `repeats`"
        )
    if repeats is not None:
        if repeats < 1:
            raise ValueError(f"`repeats` must be at least 1; got {repeats}")
        return Scheme(REPEATS, count=repeats, seed=seed)
    if folds is not None or not divided:
        folds = DEFAULT_FOLDS if folds is None else folds
        if folds < FEWEST_FOLDS:
            raise ValueError(
                f"`folds` must be at least {FEWEST_FOLDS}, to train, to validate and to test; got "
                f"{folds}"
            )
        return Scheme(FOLDS, count=folds, seed=seed)
    some = range(min(DEFAULT_FOLDS, dataset.num_splits)) if splits is None else splits
    return Scheme(PUBLISHED, splits=tuple(some), seed=seed)


def folds_of_dataset(
    dataset: Dataset, scheme: Scheme, extra: dict[str, Any] | None = None
) -> Folds:
    """Folds of a dataset whose features are what they are."""
    kept = extra or {}
    masks, numbers = _divide(dataset, scheme)
    checksum = _mark(dataset, scheme)

    def make(number: int) -> Fold:
        return _fold(dataset, number, scheme, masks, checksum, kept)

    return _folds(dataset, scheme, masks, numbers, make, checksum, dataset.metric)


def folds_of_tables(
    read: Callable[[Masks | None], TableData], first: TableData, scheme: Scheme
) -> Folds:
    """Folds of tables, which are read again for each, so that its own training nodes fit encoders.

    Args:
        read: reads the tables with these masks.
        first: what came of the first reading.
    """
    dataset = first.dataset
    assert isinstance(dataset, Dataset)
    masks, numbers = _divide(dataset, scheme)
    if scheme.over == PUBLISHED and dataset.num_splits == 1:
        return folds_of_dataset(dataset, scheme, first.kept)
    val, test = (mask[list(numbers)] for mask in masks[1:])
    metric = default_metric(dataset.task, targets_of(dataset), val, test)
    dataset = replace(dataset, metric=metric)
    checksum = _mark(dataset, scheme)

    def make(number: int) -> Fold:
        train, val, test = (mask[number : number + 1] for mask in masks)
        data = read((train, val, test))
        assert isinstance(data.dataset, Dataset)
        found = replace(data.dataset, metric=metric)
        return _fold(found, number, scheme, masks, checksum, data.kept)

    folds = _folds(dataset, scheme, masks, numbers, make, checksum, metric)
    note = f"columns are encoded anew in each {folds.one}, by its own training nodes"
    return replace(folds, notes=(*folds.notes, note))


def table_reader(
    nodes: Any, edges: Any, graphs: Any, options: TableOptions, progress: Progress | None = None
) -> Callable[[Masks | None], TableData]:
    """Reads the same tables as often as it is called."""
    return lambda masks: read_tables(nodes, edges, graphs, options, progress, masks=masks)


def _divide(dataset: Dataset, scheme: Scheme) -> tuple[Masks, tuple[int, ...]]:
    """``(k, n)`` masks, and which of their rows are folds."""
    own = _own_masks(dataset)
    if scheme.over == PUBLISHED:
        for split in scheme.splits:
            if not 0 <= split < dataset.num_splits:
                raise ValueError(
                    f"`splits` must be below {dataset.num_splits} for {dataset.name}; got {split}"
                )
        return own, scheme.splits
    y = targets_of(dataset)
    if y.is_floating_point() and y.dim() == 2 and y.shape[1] == 1:
        y = y.squeeze(1)
    if dataset.task == "binary":
        y = y.reshape(y.shape[0]).long()
    pool = (own[0] | own[1] | own[2]).any(0)
    if scheme.over == FOLDS:
        if scheme.count > int(pool.sum()):
            raise ValueError(
                f"`folds` must be at most the number of labelled nodes or graphs, "
                f"{int(pool.sum())}; got {scheme.count}"
            )
        masks = masks_of_folds(stratified_folds(y, pool, scheme.count, seed=scheme.seed))
    else:
        seeds = [derive_seed(scheme.seed, k) for k in range(scheme.count)]
        drawn = [stratified_split(y, pool, seed=seed) for seed in seeds]
        train, val, test = (torch.stack(part) for part in zip(*drawn, strict=True))
        masks = (train, val, test)
    return masks, tuple(range(scheme.count))


def _own_masks(dataset: Dataset) -> Masks:
    """The splits that the data has, ``(splits, n)`` each."""
    if isinstance(dataset, NodeDataset):
        return dataset.train, dataset.val, dataset.test
    masks = torch.zeros(3, 1, len(dataset.graphs), dtype=torch.bool)
    for part, mask in zip(PARTS, masks, strict=True):
        mask[0, getattr(dataset, part)] = True
    return masks[0], masks[1], masks[2]


def targets_of(dataset: Dataset) -> Tensor:
    """Of all nodes, or of all graphs."""
    if isinstance(dataset, NodeDataset):
        return dataset.y
    return torch.cat([graph.y for graph in dataset.graphs])


def _fold(
    dataset: Dataset,
    number: int,
    scheme: Scheme,
    masks: Masks,
    checksum: Callable[[int], str],
    extra: dict[str, Any],
) -> Fold:
    """The data of a fold with the masks of all, so that a record says how many there are."""
    if scheme.over == PUBLISHED and dataset.num_splits == len(masks[0]):
        return Fold(number, dataset, number, extra)
    train, val, test = masks
    if isinstance(dataset, NodeDataset):
        made: Dataset = replace(dataset, train=train, val=val, test=test, checksum=checksum(number))
        return Fold(number, made, number, extra)
    train, val, test = (mask[number].nonzero().flatten() for mask in masks)
    made = replace(dataset, train=train, val=val, test=test, checksum=checksum(number))
    return Fold(number, made, 0, extra)


def _mark(dataset: Dataset, scheme: Scheme) -> Callable[[int], str]:
    """The checksum of each fold: data that is divided another way is other data."""
    if scheme.over == PUBLISHED:
        return lambda number: dataset.checksum

    def mark(number: int) -> str:
        # Many graphs have one split; folds of them are told apart by their checksums.
        which = [number] if isinstance(dataset, GraphDataset) else []
        return config_hash(dataset.checksum, scheme.over, scheme.count, scheme.seed, *which)

    return mark


def _folds(
    dataset: Dataset,
    scheme: Scheme,
    masks: Masks,
    numbers: tuple[int, ...],
    make: Callable[[int], Fold],
    checksum: Callable[[int], str],
    metric: str,
) -> Folds:
    checksums = tuple(checksum(number) for number in numbers)
    folds = Folds(dataset, scheme.over, numbers, masks, make, checksums, metric)
    return replace(folds, notes=tuple(_missing_classes(folds)))


def check_folds(folds: Folds, task: Task) -> None:
    """Refuse folds on which nothing can be trained, chosen or measured, before anything is."""
    y, one = targets_of(folds.dataset), folds.one
    for number in folds.numbers:
        found = {part: y[mask[number]] for part, mask in zip(PARTS, folds.masks, strict=True)}
        for part, values in found.items():
            if not len(values):
                raise ValueError(
                    f"{one} {number} of {folds.dataset.name} has nothing to {_VERBS[part]} on; "
                    f"choose other {folds.over}"
                )
        if task.kind in ("binary", "multiclass") and len(found["train"].unique()) < 2:
            raise ValueError(
                f"{one} {number} of {folds.dataset.name} has one class only among its training "
                "nodes; there must be two to learn from"
            )
        for part in ("val", "test"):
            if _is_undefined(task, found[part]):
                raise ValueError(
                    f"{task.metric} is not defined on the {_WORDS[part]} part of {one} {number} "
                    f"({len(found[part])} targets, {_say_classes(found[part], folds.dataset)}); "
                    f"take fewer {folds.over}, or another metric"
                )


_VERBS = {"train": "train", "val": "validate", "test": "test"}
_WORDS = {"val": "validation", "test": "test"}


def _is_undefined(task: Task, y: Tensor) -> bool:
    """Whether no outputs at all would have a score on these targets."""
    columns = 1 if y.dim() == 1 else y.shape[1]
    if task.kind == "multiclass":
        columns = int(y.max()) + 1
    value = task.score(torch.zeros(y.shape[0], columns, dtype=torch.float64), y)
    return value != value


def _say_classes(y: Tensor, dataset: Dataset) -> str:
    if dataset.task not in ("binary", "multiclass"):
        return "too little variety"
    names = [_class_name(dataset, int(label)) for label in y.unique()]
    return f"of class {', '.join(names[:5])}" + (", ..." if len(names) > 5 else "")


def _missing_classes(folds: Folds) -> list[str]:
    """A note for each class that is tested somewhere and was not trained there."""
    dataset = folds.dataset
    if dataset.task != "multiclass":
        return []
    y = targets_of(dataset)
    found: dict[int, list[str]] = {}
    for number in folds.numbers:
        train, _, test = (y[mask[number]] for mask in folds.masks)
        for label in sorted({*test.tolist()} - {*train.tolist()}):
            found.setdefault(label, []).append(str(number))
    return [
        f"class {_class_name(dataset, label)} is tested but not trained in {folds.one} "
        f"{', '.join(numbers)}: it has too few nodes"
        for label, numbers in found.items()
    ]


def _class_name(dataset: Dataset, label: int) -> str:
    return dataset.class_names[label] if label < len(dataset.class_names) else str(label)
