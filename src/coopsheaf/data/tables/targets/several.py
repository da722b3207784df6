"""Several target columns: labels of yes and no, or numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.truths import read_truths
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.targets.labels import Labels, ask, doubtful, raise_empty, says_no_number
from coopsheaf.data.tables.targets.numbers import read_numbers


def choose_task_of_columns(
    table: Table, names: Sequence[str], unlabelled: Sequence[str] | None
) -> tuple[str, str]:
    """``"multilabel"`` or ``"regression"``, and what another task would do.

    Columns that are all yes or no, 0 or 1 are labels; columns of numbers are real targets.

    Args:
        unlabelled: texts that mean unknown; without it, -1 beside 0 and 1 asks.
    """
    if unlabelled is None:
        _ask_for_signs(table, names)
    kinds = {name: _kind(table, name, unlabelled or ()) for name in names}
    if all(kind in ("yes or no", "0 or 1") for kind in kinds.values()):
        numbers = set(kinds.values()) == {"0 or 1"}
        return "multilabel", "--task regression would take 0 and 1 as numbers" if numbers else ""
    if all(kind in ("numbers", "0 or 1") for kind in kinds.values()):
        return "regression", ""
    found = ", ".join(f"{show(name)} has {kind}" for name, kind in kinds.items())
    raise DataError(
        f"{table.name}: several targets must all be yes or no, or all numbers; {found}: name "
        "columns of one kind"
    )


def check_truths(table: Table, names: Sequence[str], unlabelled: Sequence[str]) -> None:
    """Refuse columns that say something else than yes and no, or nothing."""
    for name in names:
        values, odd = read_truths(table.columns[name], says_no_number(unlabelled))
        if len(odd):
            row = int(odd[0])
            raise DataError(
                f"{table.at(row, name)}: a label of its own column must be 0 or 1, yes or no, or "
                f"empty; got {show(table.columns[name].text(row))}"
            )
        if np.isnan(values).all():
            raise_empty(table, name)


def _kind(table: Table, column: str, unlabelled: Sequence[str]) -> str:
    """What the cells of a column are, in the words of a message."""
    cells = table.columns[column]
    numbers, odd = read_numbers(cells, unlabelled)
    if len(odd) == 0:
        present = numbers[~np.isnan(numbers)]
        return "0 or 1" if np.isin(present, (0, 1)).all() else "numbers"
    strange = read_truths(cells, says_no_number(unlabelled)).odd
    return f"texts such as {show(cells.text(int(strange[0])))}" if len(strange) else "yes or no"


def _ask_for_signs(table: Table, names: Sequence[str]) -> None:
    """Columns of 0, 1 and -1 alone: does -1 mean unknown?"""
    for name in names:
        numbers, odd = read_numbers(table.columns[name], ())
        if len(odd) == 0 and set(np.unique(numbers[~np.isnan(numbers)])) in ({-1, 0}, {-1, 0, 1}):
            labels = Labels.of(table, name, says_no_number(()))
            ask(labels, doubtful(labels), "a number")
