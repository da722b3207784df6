"""Columns of text become features: fitted on the training nodes, stored, re-applied."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.delimited import Table
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list

MISSING = frozenset({"", "NA", "N/A"})
FREE_TEXT_VALUES = 50
FREE_TEXT_SHARE = 0.5
MAX_CELLS = 1_000_000_000  # 4 GB


@dataclass(frozen=True)
class NumericColumn:
    """One column ``(value - mean) / std``; zero where missing, and everywhere if constant.

    Args:
        mean, std: of the training nodes; ``std`` is 0 for a constant column.
        indicator: whether a second column says where the value is missing: if it was, somewhere
            in training.
    """

    name: str
    mean: float
    std: float
    indicator: bool

    @property
    def width(self) -> int:
        return 1 + self.indicator


@dataclass(frozen=True)
class CategoricalColumn:
    """One-hot: a column per category seen in training, one for others, one for missing."""

    name: str
    categories: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.categories) + 2


@dataclass(frozen=True)
class TransformReport:
    """What a table had that training had not.

    Args:
        unseen: number of cells with an unseen category, by column; only columns with any.
        imputed: number of missing numbers in columns without a missing one in training.
    """

    unseen: dict[str, int] = field(default_factory=dict)
    imputed: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FeatureEncoder:
    """How the columns of a table become features.

    Without any column every node has the constant feature 1.
    """

    columns: tuple[NumericColumn | CategoricalColumn, ...]

    @property
    def num_features(self) -> int:
        return sum(column.width for column in self.columns) or 1

    @property
    def names(self) -> tuple[str, ...]:
        """The columns a table must have."""
        return tuple(column.name for column in self.columns)

    @classmethod
    def fit(
        cls,
        table: Table,
        names: Sequence[str],
        train: NDArray[np.bool_],
        *,
        categorical: Collection[str] = (),
    ) -> FeatureEncoder:
        """Choose an encoding for each named column.

        A column is numeric if every cell that is not missing is a number, unless it is named in
        ``categorical``. Means, deviations and categories are those of the training rows.

        Args:
            train: ``(rows,)`` mask of the training rows.
        """
        return cls(tuple(_fit_column(table, n, train, n in categorical) for n in names))

    def transform(self, table: Table) -> tuple[Tensor, TransformReport]:
        """``(rows, num_features)`` float32 features, and what training had not seen."""
        n, report = table.num_rows, TransformReport()
        if not self.columns:
            return torch.ones(n, 1), report
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise DataError(
                f"{table.name} must have the feature columns of the training table; it lacks "
                f"{show_list(missing)} (its columns are {show_list(table.columns)})"
            )
        if n * self.num_features > MAX_CELLS:
            widest = max(self.columns, key=lambda column: column.width)
            raise DataError(
                f"{table.name}, column {show(widest.name)}: features must have at most {MAX_CELLS} "
                f"cells; {n} rows x {self.num_features} are more, {widest.width} of them from this "
                "column: leave it out or merge its categories"
            )
        x = np.zeros((n, self.num_features), dtype=np.float32)
        start = 0
        for column in self.columns:
            part = x[:, start : start + column.width]
            if isinstance(column, NumericColumn):
                _fill_numeric(part, column, table, report)
            else:
                _fill_categorical(part, column, table, report)
            start += column.width
        return torch.from_numpy(x), report

    def to_json(self) -> dict[str, Any]:
        """Plain lists, texts, numbers and truth values; :meth:`from_json` restores it exactly."""
        columns: list[dict[str, Any]] = []
        for column in self.columns:
            if isinstance(column, NumericColumn):
                columns.append({"kind": "numeric", **vars(column)})
            else:
                categories = list(column.categories)
                columns.append({"kind": "categorical", **vars(column), "categories": categories})
        return {"columns": columns}

    @classmethod
    def from_json(cls, stored: object) -> FeatureEncoder:
        """Restore what :meth:`to_json` returned."""
        if not isinstance(stored, dict) or not isinstance(stored.get("columns"), list):
            raise DataError("a stored feature encoder must be an object with a list `columns`")
        return cls(tuple(_column_from_json(entry) for entry in stored["columns"]))


def is_missing(value: str) -> bool:
    """Empty, ``NA`` or ``N/A``; spaces around do not matter."""
    return value.strip() in MISSING


def parse_number(value: str) -> float | None:
    """The number a cell states, which may be infinite or NaN; ``None`` if it states none."""
    if "_" in value:  # Python reads 2020_01 as a number; nobody who writes a table does
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _fit_column(
    table: Table, name: str, train: NDArray[np.bool_], categorical: bool
) -> NumericColumn | CategoricalColumn:
    cells = table.column(name, "a feature")
    if not categorical:
        numbers, row = _numbers(table, name)
        if row is None:
            return _fit_numeric(table, name, numbers[train])
        # The training rows alone decide what a column is.
        seen_in_training = [cells[i] for i in np.flatnonzero(train).tolist()]
        if not any(map(_is_text, seen_in_training)) and not all(map(is_missing, seen_in_training)):
            raise DataError(
                f"{table.at(row, name)}: the column is numeric in all training rows; "
                f"{show(cells[row])} is no number: correct the cell, leave it empty, or mark the "
                "column as categorical"
            )
        _check_not_free_text(table, name, row)
    seen = {cells[i] for i in np.flatnonzero(train).tolist()}
    return CategoricalColumn(name, tuple(sorted(v for v in seen if not is_missing(v))))


def _is_text(cell: str) -> bool:
    return parse_number(cell) is None and not is_missing(cell)


def _fit_numeric(table: Table, name: str, numbers: NDArray[np.float64]) -> NumericColumn:
    """``numbers`` are those of the training rows, NaN where missing."""
    present = numbers[~np.isnan(numbers)]
    indicator = len(present) < len(numbers)
    if len(present) == 0:
        return NumericColumn(name, 0.0, 0.0, indicator)
    if present.min() == present.max():
        return NumericColumn(name, float(present[0]), 0.0, indicator)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, std = float(present.mean()), float(present.std())
    if not (math.isfinite(mean) and math.isfinite(std)):
        raise DataError(
            f"{table.name}, column {show(name)}: numbers must be small enough to average; the "
            f"largest is {np.abs(present).max():g}: rescale the column"
        )
    return NumericColumn(name, mean, std, indicator)


def _numbers(table: Table, name: str) -> tuple[NDArray[np.float64], int | None]:
    """``(rows,)`` numbers, NaN where missing, and the first row with anything else.

    If all else is numeric, an explicit NaN or infinity is an error.
    """
    cells = table.columns[name]
    try:  # the usual column, without a gap or a fault, at full speed
        numbers = np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))
        if np.isfinite(numbers).all() and "_" not in "".join(cells):
            return numbers, None
    except ValueError:
        pass
    numbers = np.full(len(cells), np.nan)
    undefined: int | None = None
    for row, cell in enumerate(cells):
        value = parse_number(cell)
        if value is None:
            if not is_missing(cell):
                return numbers, row
        elif math.isfinite(value):
            numbers[row] = value
        elif undefined is None:
            undefined = row
    if undefined is not None:
        raise DataError(
            f"{table.at(undefined, name)}: features must be finite numbers; got "
            f"{show(cells[undefined])}: leave the cell empty if the value is unknown"
        )
    return numbers, None


def _check_not_free_text(table: Table, name: str, row: int) -> None:
    """``row`` is the first whose cell is not a number."""
    cells = table.columns[name]
    distinct = sum(not is_missing(cell) for cell in set(cells))
    if distinct <= FREE_TEXT_VALUES:
        return
    count = sum(not is_missing(cell) for cell in cells)
    if distinct > FREE_TEXT_SHARE * count:
        raise DataError(
            f"{table.at(row, name)}: a feature must be a number or one of a few categories; "
            f"{show(cells[row])} is no number and {distinct} of {count} cells "
            "differ: leave the column out of the features, correct the cell, or mark the column "
            "as categorical"
        )


def _fill_numeric(
    part: NDArray[np.float32], column: NumericColumn, table: Table, report: TransformReport
) -> None:
    """Write ``(rows, 1)`` or ``(rows, 2)`` features in place."""
    numbers, row = _numbers(table, column.name)
    if row is not None:
        raise DataError(
            f"{table.at(row, column.name)}: the column is numeric, as it was in training; got "
            f"{show(table.columns[column.name][row])}"
        )
    absent = np.isnan(numbers)
    if column.std > 0:
        with np.errstate(over="ignore"):
            part[:, 0] = np.where(absent, 0.0, (numbers - column.mean) / column.std)
        bad = np.flatnonzero(~np.isfinite(part[:, 0]))
        if len(bad):
            raise DataError(
                f"{table.at(int(bad[0]), column.name)}: numbers must be of the size they had in "
                f"training (mean {column.mean:g}, deviation {column.std:g}); got "
                f"{show(table.columns[column.name][bad[0]])}"
            )
    if column.indicator:
        part[:, 1] = absent
    elif absent.any():
        report.imputed[column.name] = int(absent.sum())


def _fill_categorical(
    part: NDArray[np.float32], column: CategoricalColumn, table: Table, report: TransformReport
) -> None:
    """Write ``(rows, categories + 2)`` features in place."""
    codes = {category: code for code, category in enumerate(column.categories)}
    unseen, missing = len(codes), len(codes) + 1
    cells = table.columns[column.name]
    code_of = {c: missing if is_missing(c) else codes.get(c, unseen) for c in set(cells)}
    code = np.fromiter((code_of[c] for c in cells), dtype=np.int64, count=len(cells))
    part[np.arange(len(code)), code] = 1
    count = int((code == unseen).sum())
    if count:
        report.unseen[column.name] = count


def _column_from_json(entry: object) -> NumericColumn | CategoricalColumn:
    if isinstance(entry, dict) and isinstance(entry.get("name"), str):
        e = cast(dict[str, Any], entry)
        if e.get("kind") == "numeric":
            mean, std, indicator = e.get("mean"), e.get("std"), e.get("indicator")
            numbers = all(
                isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)
                for v in (mean, std)
            )
            if numbers and isinstance(indicator, bool) and cast(float, std) >= 0:
                return NumericColumn(
                    e["name"], float(cast(float, mean)), float(cast(float, std)), indicator
                )
        if e.get("kind") == "categorical":
            values = e.get("categories")
            if isinstance(values, list) and all(isinstance(value, str) for value in values):
                return CategoricalColumn(e["name"], tuple(values))
    raise DataError(
        "a stored feature encoder must list numeric columns (name, mean, std, indicator) and "
        f"categorical ones (name, categories); got {show(str(entry), 80)}"
    )
