"""Columns of a table become features: fitted on the training rows, stored, re-applied."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.columns.choice import Chooser
from coopsheaf.data.tables.columns.findings import Report
from coopsheaf.data.tables.columns.kinds import (
    HASHED_WIDTH,
    KINDS,
    CategoricalColumn,
    Column,
)
from coopsheaf.data.tables.columns.stored import Stored
from coopsheaf.data.tables.reading.table import Table

MAX_CELLS = 100_000_000  # 0.4 GB


class Fitted(NamedTuple):
    """An encoder that was fitted.

    Args:
        notes: what was decided about the columns, one line each. What single cells are made of
            (odd ones, new categories) is said by :meth:`FeatureEncoder.transform`.
        left_out: why a column is no feature, by its name.
    """

    encoder: FeatureEncoder
    notes: list[str]
    left_out: dict[str, str]


class Transformed(NamedTuple):
    """The features of a table.

    Args:
        x: ``(rows, num_features)`` float32.
        notes: what training had not, one line each.
        unseen: number of cells with an unseen category, by column; only columns with any.
        imputed: number of missing values in columns without a missing one in training.
    """

    x: Tensor
    notes: list[str]
    unseen: dict[str, int]
    imputed: dict[str, int]


@dataclass(frozen=True)
class FeatureEncoder:
    """How the columns of a table become features.

    Without any column every node has the constant feature 1.
    """

    columns: tuple[Column, ...]

    @property
    def num_features(self) -> int:
        return sum(column.width for column in self.columns) or 1

    @property
    def names(self) -> tuple[str, ...]:
        """The columns a table must have."""
        return tuple(column.name for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """A name for each feature."""
        return tuple(name for c in self.columns for name in c.feature_names) or ("1",)

    @classmethod
    def fit(
        cls,
        table: Table,
        names: Sequence[str],
        train: NDArray[np.bool_],
        *,
        categorical: Collection[str] = (),
        text: Collection[str] = (),
    ) -> Fitted:
        """Choose an encoding for each named column, by its training rows alone.

        Numbers, truth values, dates and categories are told apart by what (nearly) all cells are.

        Args:
            train: ``(rows,)`` mask of the training rows.
            categorical: columns of categories, whatever they look like.
            text: columns whose words are counted.
        """
        both = sorted(set(categorical) & set(text))
        if both:
            raise DataError(
                f"{table.name}, column {show(both[0])}: a column is categorical or text; this one "
                "is named as both"
            )
        chooser = Chooser(table, train)
        chosen = [chooser.choose(n, categorical=n in categorical, text=n in text) for n in names]
        columns = _fit_in([column for column in chosen if column is not None], chooser)
        notes = [*_summary(columns), *_about_all(chooser), *chooser.notes.lines()]
        return Fitted(cls(tuple(columns)), notes, chooser.left_out)

    def transform(self, table: Table) -> Transformed:
        """The features of a table, and what training had not seen."""
        n, report = table.num_rows, Report(table)
        if not self.columns:
            return Transformed(torch.ones(n, 1), [], {}, {})
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise DataError(
                f"{table.name} must have the feature columns of the training table; it lacks "
                f"{show_list(missing)} (its columns are {show_list(table.columns)})"
            )
        _check_size(table, self.columns, "read the table in parts, or train without it")
        x = np.zeros((n, self.num_features), dtype=np.float32)
        start = 0
        for column in self.columns:
            column.fill(x[:, start : start + column.width], report)
            start += column.width
        return Transformed(torch.from_numpy(x), report.notes.lines(), report.unseen, report.imputed)

    def to_json(self) -> dict[str, Any]:
        """Plain lists, texts, numbers and truth values; :meth:`from_json` restores it exactly."""
        return {"columns": [column.to_json() for column in self.columns]}

    @classmethod
    def from_json(cls, stored: object) -> FeatureEncoder:
        """Restore what :meth:`to_json` returned, in this version or an earlier one."""
        if not isinstance(stored, dict) or not isinstance(stored.get("columns"), list):
            raise DataError("a stored feature encoder must be an object with a list `columns`")
        entries = [Stored(entry) for entry in stored["columns"]]
        encoder = cls(tuple(KINDS[entry.text("kind", KINDS)].from_json(entry) for entry in entries))
        if len(set(encoder.names)) < len(encoder.names):
            raise DataError("a stored feature encoder must have columns of different names")
        return encoder


def _cells(table: Table, columns: Sequence[Column]) -> int:
    return table.num_rows * sum(column.width for column in columns)


def _fit_in(columns: list[Column], chooser: Chooser) -> list[Column]:
    """The columns in a block that is not too large: wide one-hot ones are hashed if need be."""
    table = chooser.table
    by_width = sorted(range(len(columns)), key=lambda at: -columns[at].width)
    for at in by_width:
        column = columns[at]
        if _cells(table, columns) <= MAX_CELLS:
            break
        if isinstance(column, CategoricalColumn) and column.width > HASHED_WIDTH + 1:
            columns[at] = chooser.hashed(column, "one-hot columns would take too much memory")
    _check_size(table, columns, "leave it out (--drop)")
    return columns


def _check_size(table: Table, columns: Sequence[Column], remedy: str) -> None:
    if _cells(table, columns) > MAX_CELLS:
        widest = max(columns, key=lambda column: column.width)
        raise DataError(
            f"{table.name}, column {show(widest.name)}: features must have at most {MAX_CELLS} "
            f"cells; {table.num_rows} rows x {sum(column.width for column in columns)} are more, "
            f"{widest.width} of them from this column: {remedy}"
        )


def _summary(columns: Sequence[Column]) -> list[str]:
    """How many columns there are of each kind."""
    names: dict[str, list[str]] = {}
    for column in columns:
        names.setdefault(column.label, []).append(column.name)
    lines = [f"{len(of)} {kind} feature columns: {show_list(of)}" for kind, of in names.items()]
    return lines or ["no feature columns: every node has the constant feature 1"]


def _about_all(chooser: Chooser) -> list[str]:
    """What is said of several columns in one line."""
    lines = []
    if chooser.missing:
        counts = [f"{show(name)} {count}" for name, count in chooser.missing.items()]
        more = f" and {len(counts) - 10} more columns" if len(counts) > 10 else ""
        lines.append(f"missing cells (of {chooser.table.num_rows}): {', '.join(counts[:10])}{more}")
    if len(chooser.constant) == 1:
        name = show(chooser.constant[0])
        lines.append(f"column {name} is the same everywhere in training: it says nothing")
    elif chooser.constant:
        lines.append(
            f"columns {show_list(chooser.constant)} are the same everywhere in training: they say "
            "nothing"
        )
    return lines
