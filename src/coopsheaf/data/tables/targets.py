"""A column of labels becomes class numbers or real targets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from coopsheaf.data.delimited import Table
from coopsheaf.data.encoding import is_missing, parse_number
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list

TARGET_TASKS = ("binary", "multiclass", "regression")
MAX_CLASSES = 100  # more are taken for classes only if they repeat a lot
MAX_CLASS_SHARE = 0.2
FREE_TEXT_CLASSES = 10  # from here on classes must repeat, on the average
MANY_NUMBERS = 20


@dataclass(frozen=True)
class Targets:
    """The targets of a table.

    Args:
        y: ``(n,)`` int64 class numbers, -1 where unknown, or float32, NaN where unknown.
        known: ``(n,)`` mask of the labelled rows.
        task: ``"binary"``, ``"multiclass"`` or ``"regression"``.
        class_names: in the order of the class numbers; empty for regression.
        foreign: number of labels that are none of the given classes; they count as unknown.
    """

    y: Tensor
    known: Tensor
    task: str
    class_names: tuple[str, ...]
    foreign: int = 0


def read_targets(table: Table, column: str, task: str | None) -> Targets:
    """Read labels to train on; empty cells are to be predicted.

    Without a ``task``:

    - labels with a fraction are real targets (regression) if there are more than 20 different
      ones or more than half of them differ;
    - whole numbers and texts are classes if there are at most 100 different ones, or fewer than
      a fifth of the labels differ; beyond ten classes at most half of the labels may differ;
    - anything else is an error that asks for the task.

    Classes are sorted: by value if all are whole numbers, else as text.
    """
    cells = table.column(column, "the target")
    rows = [row for row, cell in enumerate(cells) if not is_missing(cell)]
    if not rows:
        raise DataError(
            f"{table.name}, column {show(column)}: some labels must be there to train on; all "
            f"{len(cells)} cells are empty"
        )
    names = sorted({cells[row] for row in rows})
    numbers = {name: parse_number(name) for name in names}
    for row in rows:
        value = numbers[cells[row]]
        if value is not None and not math.isfinite(value):
            raise DataError(
                f"{table.at(row, column)}: a label must be a class or a finite number; got "
                f"{show(cells[row])}: leave the cell empty if it is to be predicted"
            )
    if task is None:
        task = _choose_task(table, column, [numbers[n] for n in names], names, len(rows))
    if task == "regression":
        return _regression(table, column, cells, rows)
    names = _class_order(table, column, names)
    if len(names) < 2:
        raise DataError(
            f"{table.name}, column {show(column)}: labels must be of two classes or more; got only "
            f"{show(names[0])}"
        )
    if task == "binary" and len(names) != 2:
        raise DataError(
            f"{table.name}, column {show(column)}: a binary task must have two classes; got "
            f"{len(names)}: {show_list(names)}: choose the task multiclass"
        )
    task = task if task in TARGET_TASKS else "binary" if len(names) == 2 else "multiclass"
    return apply_classes(cells, tuple(names), task)


def apply_targets(
    table: Table, column: str | None, task: str, class_names: Sequence[str]
) -> Targets:
    """Read labels of a trained task, as far as there are any."""
    cells: Sequence[str] = [""] * table.num_rows
    if column is not None:
        cells = table.columns.get(column, cells)
    if task != "regression":
        return apply_classes(cells, tuple(class_names), task)
    rows = [row for row, cell in enumerate(cells) if not is_missing(cell)]
    return _regression(table, column or "", cells, rows)


def apply_classes(cells: Sequence[str], class_names: tuple[str, ...], task: str) -> Targets:
    """Class numbers of the cells; -1 where missing or none of the classes."""
    number = {name: i for i, name in enumerate(class_names)}
    y = torch.tensor([number.get(cell, -1) for cell in cells], dtype=torch.int64)
    unknown = (y < 0).nonzero().flatten().tolist()
    foreign = sum(not is_missing(cells[row]) for row in unknown)
    return Targets(y, y >= 0, task, class_names, foreign)


def _regression(table: Table, column: str, cells: Sequence[str], rows: list[int]) -> Targets:
    y = np.full(len(cells), np.nan, dtype=np.float32)
    limit = float(np.finfo(np.float32).max)
    for row in rows:
        value = parse_number(cells[row])
        if value is None or not abs(value) <= limit:
            raise DataError(
                f"{table.at(row, column)}: the target of a regression must be a finite number; "
                f"got {show(cells[row])}"
            )
        y[row] = value
    tensor = torch.from_numpy(y)
    return Targets(tensor, ~tensor.isnan(), "regression", ())


def _choose_task(
    table: Table, column: str, numbers: list[float | None], names: list[str], count: int
) -> str:
    """``"regression"`` or ``"classification"`` by the rule of :func:`read_targets`.

    ``numbers`` and ``names`` are the different values, ``count`` is the number of labels.
    """
    distinct = len(names)
    where = f"{table.name}, column {show(column)}"
    if all(value is not None for value in numbers):
        if any(value is not None and not value.is_integer() for value in numbers):
            if distinct > MANY_NUMBERS or distinct > count / 2:
                return "regression"
            raise DataError(
                f"{where}: {distinct} different numbers with fractions in {count} labels could be "
                "classes or real targets: choose --task regression or --task multiclass"
            )
        if distinct > MAX_CLASSES and distinct >= MAX_CLASS_SHARE * count:
            raise DataError(
                f"{where}: {distinct} different whole numbers in {count} labels could be classes "
                "or real targets: choose --task regression or --task multiclass"
            )
        return "classification"
    many = distinct > MAX_CLASSES and distinct >= MAX_CLASS_SHARE * count
    if many or (distinct > FREE_TEXT_CLASSES and distinct > count / 2):
        raise DataError(
            f"{where}: labels must be classes that repeat; {distinct} of {count} differ, such as "
            f"{show_list(names, 2)}, which looks like free text: name another column, or choose "
            "--task multiclass"
        )
    return "classification"


def _class_order(table: Table, column: str, names: list[str]) -> list[str]:
    """Whole numbers by value, anything else as text; no number in two spellings."""
    whole = [value for value in map(_whole_number, names) if value is not None]
    if len(whole) < len(names):
        return names
    order = sorted(zip(whole, names, strict=True))
    for (value, name), (following, other) in itertools.pairwise(order):
        if value == following:
            raise DataError(
                f"{table.name}, column {show(column)}: a class must be written one way; got "
                f"{show(name)} and {show(other)} for the same number"
            )
    return [name for _, name in order]


def _whole_number(name: str) -> int | None:
    value = parse_number(name)
    if value is None or not value.is_integer():
        return None
    try:
        return int(name)  # exact beyond 2**53, where floats are not
    except ValueError:
        return int(value)
