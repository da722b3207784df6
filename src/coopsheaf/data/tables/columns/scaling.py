"""Numbers become features: standardised by the training rows, and looked at for surprises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.columns.findings import Notes, Report, show_cells
from coopsheaf.data.tables.reading.table import Table

OUTLIER = 20.0  # deviations from the mean, in training
FAR = 10.0  # deviations from the mean, later, if training had nothing like it
_LARGEST = float(np.finfo(np.float32).max)

Spell = Callable[[float], str]


@dataclass(frozen=True)
class Scale:
    """``(value - mean) / std``; zero where missing, and everywhere if constant.

    Args:
        mean, std: of the training rows; ``std`` is 0 for a constant column.
        low, high: the smallest and largest value of the training rows, if known.
    """

    mean: float
    std: float
    low: float | None = None
    high: float | None = None


def spell_number(value: float) -> str:
    return f"{value:g}"


def fit_scale(
    table: Table,
    name: str,
    values: NDArray[np.float64],
    train: NDArray[np.bool_],
    notes: Notes,
    spell: Spell = spell_number,
) -> Scale:
    """The scale of ``values (rows,)``, NaN where missing; some must be there in training."""
    present = values[train]
    present = present[~np.isnan(present)]
    low, high = float(present.min()), float(present.max())
    if low == high:
        return Scale(low, 0.0, low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = float(present.mean()), float(present.std())
    if not (math.isfinite(mean) and math.isfinite(std)):
        raise DataError(
            f"{table.name}, column {show(name)}: numbers must be small enough to average; the "
            f"largest is {np.abs(present).max():g}: rescale the column"
        )
    if max(high - mean, mean - low) > OUTLIER * std:
        rows = np.flatnonzero(train & (np.abs(values - mean) > OUTLIER * std))
        notes.add(
            "huge outliers",
            name,
            f"{len(rows)} values are more than {OUTLIER:g} deviations from the mean "
            f"{spell(mean)} and outweigh the others: "
            + show_cells(table, name, rows, lambda row: spell(values[row])),
        )
    return Scale(mean, std, low, high)


def fill_scaled(
    part: NDArray[np.float32],
    name: str,
    values: NDArray[np.float64],
    scale: Scale,
    report: Report,
    *,
    far: float = FAR,
    spell: Spell = spell_number,
) -> None:
    """Write ``(rows,)`` features in place; ``values`` are NaN where missing."""
    if scale.std == 0:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (values - scale.mean) / scale.std
    largest = np.abs(scaled)
    np.copyto(scaled, 0.0, where=np.isnan(values))
    bad = np.flatnonzero(largest > _LARGEST) if len(values) else np.empty(0, dtype=np.int64)
    table = report.table
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{table.at(row, name)}: numbers must be of the size they had in training (mean "
            f"{spell(scale.mean)}, deviation {scale.std:g}); got "
            f"{show(table.columns[name].text(row))}"
        )
    part[:] = scaled
    if scale.low is None or scale.high is None:
        return
    strange = np.flatnonzero((largest > far) & ((values < scale.low) | (values > scale.high)))
    if len(strange):
        report.notes.add(
            "values far from those of training",
            name,
            f"{len(strange)} values are far from those of training ({spell(scale.low)} to "
            f"{spell(scale.high)}): "
            + show_cells(table, name, strange, lambda row: spell(values[row])),
        )
