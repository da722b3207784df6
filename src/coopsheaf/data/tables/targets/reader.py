"""Columns of labels become class numbers, labels or real targets; stored, and applied again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.columns.truths import read_truths
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.reading.words import plain_number
from coopsheaf.data.tables.targets import labels as label_rules
from coopsheaf.data.tables.targets.labels import (
    Labels,
    says_no_number,
    says_unknown,
    where,
    whole_number,
)
from coopsheaf.data.tables.targets.lists import (
    SEPARATORS,
    check_size,
    find_separator,
    list_parts,
    look_like_lists,
    read_lists,
)
from coopsheaf.data.tables.targets.numbers import (
    has_fractions,
    number_values,
    real_targets,
)
from coopsheaf.data.tables.targets.several import check_truths, choose_task_of_columns

TARGET_TASKS = {
    "classification": "binary or multiclass, by the number of classes",
    "binary": "two classes, one logit",
    "multiclass": "several classes, one logit each",
    "multilabel": "several yes/no labels at once, one logit each",
    "regression": "real targets",
}
ABSENT = "no label is"
LABEL_TYPES = ("text", "whole", "truth")
AS_CLASSES = "--task multiclass would take each as a class"
MAX_STORED = 1_000_000  # columns or classes of a stored reader


@dataclass(frozen=True)
class Targets:
    """The targets of a table.

    Args:
        y: ``(n,)`` int64 class numbers, -1 where unknown; or float32, NaN where unknown:
            ``(n,)`` or ``(n, k)`` real targets, ``(n, k)`` labels 0 or 1.
        known: ``(n,)`` mask of the rows of which something is known.
        task: ``"binary"``, ``"multiclass"``, ``"multilabel"`` or ``"regression"``.
        class_names: in the order of class numbers or labels; empty for regression.
        foreign: number of labels that are none of the given classes; they count as unknown.
        notes: what the user should be told, one line each.
    """

    y: Tensor
    known: Tensor
    task: str
    class_names: tuple[str, ...]
    foreign: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TargetReader:
    """How columns become targets: found once, stored with a run, applied unchanged later.

    Args:
        columns: the target columns.
        task: ``"binary"``, ``"multiclass"``, ``"multilabel"`` or ``"regression"``.
        class_names: in the order of class numbers or labels; empty for regression. Several columns
            of yes and no are labels by their own names.
        unlabelled: texts that the user said mean unknown, besides empty cells.
        separator: of the labels in one cell; empty if a cell has one.
        label_type: what the classes are to the user: ``"text"``, ``"whole"`` numbers (``1.0`` is
            then the class ``1``) or ``"truth"`` values, which are ``True`` and ``False``.
    """

    columns: tuple[str, ...]
    task: str
    class_names: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    separator: str = ""
    label_type: str = "text"

    @classmethod
    def fit(
        cls,
        table: Table,
        columns: Sequence[str],
        *,
        task: str | None,
        unlabelled: Sequence[str] | None = None,
        customary: bool = False,
    ) -> tuple[TargetReader, Targets]:
        """Read labels to train on; empty cells are to be predicted.

        One column is classes, lists of labels (``a|b``) or real targets, several are labels (all
        yes or no) or real targets; without a ``task`` that is found from the labels
        (:func:`~coopsheaf.data.tables.targets.labels.choose_task`,
        :func:`~coopsheaf.data.tables.targets.lists.look_like_lists`), and said in the notes.

        Args:
            task: a key of ``TARGET_TASKS``.
            unlabelled: the texts that mean unknown, besides empty cells. Without it the usual words
                for missing do, and labels that may mean it (``?``, ``unknown``, -1) are an error
                that asks.
            customary: nobody said ``unlabelled``, it is the custom where the labels come from; then
                it goes without saying that none of them means it.
        """
        if task is not None:
            check_choice("task", task, TARGET_TASKS)
        names = tuple(columns)
        if not names:
            raise ValueError("`columns` must name a target column or more; got none")
        for name in names:
            table.column(name, "the target")
        if len(set(names)) < len(names):
            raise DataError(f"{table.name}: target columns must differ; got {show_list(names)}")
        if len(names) > 1:
            reader, hint = _fit_columns(table, names, task, unlabelled)
        else:
            reader, hint = _fit_column(table, names[0], task, unlabelled)
        targets = reader.read(table)
        notes = [reader._say(targets) + (f"; {hint}" if hint and task is None else "")]
        found = _note_unknown(table, reader, targets.y, unlabelled)
        notes += [note for note in found if not (customary and note.startswith(ABSENT))]
        notes += label_rules.note_similar(reader.class_names, where(table, *names))
        return reader, replace(targets, notes=tuple(notes))

    def read(self, table: Table) -> Targets:
        """Read the labels of a table, as far as there are any.

        Columns that are not there say nothing; labels that are none of the classes count as
        unknown, and are counted.
        """
        foreign = 0
        width = max(len(self.columns), len(self.class_names) if self.separator else 1)
        check_size(table.num_rows, width, where(table, *self.columns))
        if self.task == "regression":
            numbers = [real_targets(table, name, self.unlabelled) for name in self.columns]
            y = torch.from_numpy(np.stack(numbers, axis=1).astype(np.float32))
            y = y if len(numbers) > 1 else y.squeeze(1)
        elif self.task != "multilabel":
            y, foreign = self._read_classes(table)
        elif self.separator:
            y, foreign = self._read_lists(table)
        else:
            y, foreign = self._read_truths(table)
        known = y >= 0 if not y.is_floating_point() else ~y.isnan()
        known = known if known.dim() == 1 else known.any(1)
        targets = Targets(y, known, self.task, self.class_names, foreign)
        notes = [self._say(targets)]
        if foreign:
            notes.append(f"WARNING: {foreign} labels are none of the model's classes; not counted")
        return replace(targets, notes=tuple(notes))

    def labels(self) -> NDArray[Any]:
        """``(classes,)`` of the user's own type: int64, bool, or texts as objects."""
        if self.label_type == "whole":
            return np.array([int(name) for name in self.class_names], dtype=np.int64)
        if self.label_type == "truth":
            return np.array([name == "True" for name in self.class_names], dtype=np.bool_)
        return np.array(self.class_names, dtype=object)

    def to_json(self) -> dict[str, Any]:
        """Plain lists and texts; :meth:`from_json` restores it exactly."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}

    @classmethod
    def from_json(cls, stored: object) -> TargetReader:
        """Restore what :meth:`to_json` returned."""
        if isinstance(stored, dict) and stored.keys() == vars(cls(("",), "regression")).keys():
            lists = ("columns", "class_names", "unlabelled")
            others: dict[str, Any] = {k: v for k, v in stored.items() if k not in lists}
            if all(_are_texts(stored[k]) for k in lists) and _are_texts(list(others.values())):
                others.update({k: tuple(stored[k]) for k in lists})
                reader = cls(**others)
                if reader._is_sound():
                    return reader
        raise DataError(
            "a stored target reader must have columns, a task and classes that go with it, and the "
            f"type of the labels; got {show(str(stored), 80)}"
        )

    def _is_sound(self) -> bool:
        """Whether the parts go together."""
        names = self.class_names
        alone = len(self.columns) == 1
        if not self.columns or self.separator not in ("", *SEPARATORS):
            return False
        if len(set(self.columns)) < len(self.columns) or len(set(names)) < len(names):
            return False
        if self.label_type not in LABEL_TYPES:
            return False
        if self.label_type == "whole" and not all(_is_plain_whole(name) for name in names):
            return False
        if self.label_type == "truth" and names != ("False", "True"):
            return False
        if self.task == "multilabel":
            return len(names) > 1 and (alone if self.separator else names == self.columns)
        sizes = {"binary": len(names) == 2, "multiclass": len(names) > 1}
        fits = sizes.get(self.task, False) and alone
        return not self.separator and (fits or (self.task == "regression" and not names))

    def _say(self, targets: Targets) -> str:
        """What was taken, in one line."""
        labelled, n = int(targets.known.sum()), len(targets.known)
        what = show_list(self.class_names)
        if self.task == "regression":
            several = len(self.columns) > 1
            what = f"real targets {show_list(self.columns)}" if several else "real targets"
        elif self.separator:
            what = f"lists separated by {self.separator}, of {what}"
        return f"task: {self.task} ({what}); {labelled} nodes labelled, {n - labelled} not"

    def _find(self) -> Callable[[str], int]:
        """The class number of a text; -1 if it is none of the classes."""
        number = {name: i for i, name in enumerate(self.class_names)}
        if self.label_type != "whole":
            return lambda text: number.get(text, -1)
        return lambda text: number.get(text, number.get(str(whole_number(text)), -1))

    def _read_classes(self, table: Table) -> tuple[Tensor, int]:
        """``(n,)`` int64, and how many labels are foreign."""
        cells = table.columns.get(self.columns[0])
        if cells is None:
            return torch.full((table.num_rows,), -1), 0
        codes, texts = cells.distinct
        numbers = np.fromiter(map(self._find(), texts), dtype=np.int64, count=len(texts))
        blank = says_no_number(self.unlabelled)
        strange = [number < 0 and not blank(t) for number, t in zip(numbers, texts, strict=True)]
        foreign = int(np.array(strange, dtype=np.bool_)[codes].sum())
        return torch.from_numpy(numbers[codes]), foreign

    def _read_lists(self, table: Table) -> tuple[Tensor, int]:
        cells = table.columns.get(self.columns[0])
        if cells is None:
            return torch.full((table.num_rows, len(self.class_names)), torch.nan), 0
        unknown = says_unknown(cells, self.unlabelled or None)
        y, foreign = read_lists(cells, self.separator, self._find(), len(self.class_names), unknown)
        return torch.from_numpy(y), foreign

    def _read_truths(self, table: Table) -> tuple[Tensor, int]:
        y = np.full((table.num_rows, len(self.columns)), np.nan, dtype=np.float32)
        foreign = 0
        for i, name in enumerate(self.columns):
            if name in table.columns:
                y[:, i], odd = read_truths(table.columns[name], says_no_number(self.unlabelled))
                foreign += len(odd)
        return torch.from_numpy(y), foreign


def _fit_column(
    table: Table, column: str, task: str | None, unlabelled: Sequence[str] | None
) -> tuple[TargetReader, str]:
    """How to read one column, and what another ``--task`` would do."""
    stored = _stored(unlabelled)
    if task == "regression" or (task is None and has_fractions(table, column, stored)):
        return _real_reader(table, (column,), stored), AS_CLASSES
    labels = Labels.of(table, column, says_unknown(table.columns[column], unlabelled))
    maybe = label_rules.doubtful(labels) if unlabelled is None else []
    hint = ""
    if task is None:
        task, hint = _choose(labels, maybe)
    if task == "regression":
        return _real_reader(table, (column,), stored), hint
    label_rules.ask(labels, maybe)
    separator = find_separator(labels) if task == "multilabel" else ""
    texts = list_parts(labels, separator) if separator else labels.texts
    names, label_type = label_rules.class_names(texts, labels.where)
    if len(names) < 2:
        raise DataError(
            f"{labels.where}: labels must be of two classes or more; got only "
            f"{show_list(names) or 'empty lists'}"
        )
    if task == "binary" and len(names) != 2:
        raise DataError(
            f"{labels.where}: a binary task must have two classes; got {len(names)}: "
            f"{show_list(names)}: choose the task multiclass"
        )
    if task == "classification":
        task = "binary" if len(names) == 2 else "multiclass"
    return TargetReader((column,), task, names, stored, separator, label_type), hint


def _choose(labels: Labels, maybe: Sequence[str]) -> tuple[str, str]:
    """The task of a column, and what another one would do.

    Args:
        maybe: labels that may mean unknown, so that they must not decide.
    """
    words = {text for text in labels.texts if label_rules.is_doubtful(text)}
    clear = labels.without(words.union(maybe))
    values = [v for v in map(plain_number, clear.texts) if v is not None]
    if values and len(values) == len(clear.kept):
        if label_rules.choose_task(clear) == "regression":
            label_rules.ask(labels, [text for text in maybe if text not in words], "a number")
            years = "they look like years; " if label_rules.are_years(values) else ""
            return "regression", years + AS_CLASSES
        hint = "--task regression would take the numbers as they are"
    else:
        if look_like_lists(clear):
            return "multilabel", "--task multiclass would take each combination as a class"
        lists = any("|" in text for text in clear.texts)
        hint = "--task multilabel would take a|b as two labels" if lists else ""
    label_rules.ask(labels, maybe)
    return label_rules.choose_task(labels), hint


def _fit_columns(
    table: Table, names: tuple[str, ...], task: str | None, unlabelled: Sequence[str] | None
) -> tuple[TargetReader, str]:
    """How to read several columns, and what another ``--task`` would do."""
    stored, hint = _stored(unlabelled), ""
    if task is None:
        task, hint = choose_task_of_columns(table, names, unlabelled)
    if task == "regression":
        return _real_reader(table, names, stored), hint
    if task != "multilabel":
        raise DataError(
            f"{table.name}: the task {task} must have one target column; got {show_list(names)}: "
            "choose --task multilabel or --task regression"
        )
    check_truths(table, names, stored)
    return TargetReader(names, "multilabel", names, stored), hint


def _real_reader(table: Table, names: tuple[str, ...], unlabelled: tuple[str, ...]) -> TargetReader:
    for name in names:
        if np.isnan(real_targets(table, name, unlabelled)).all():
            label_rules.raise_empty(table, name)
    return TargetReader(names, "regression", unlabelled=unlabelled)


def _note_unknown(
    table: Table, reader: TargetReader, y: Tensor, unlabelled: Sequence[str] | None
) -> list[str]:
    """Which words were taken for unknown, and which were to be but are not there."""
    notes: list[str] = []
    found: set[str] = set()
    for i, column in enumerate(reader.columns):
        values = y[:, i] if y.dim() == 2 else y
        unknown = values.isnan() if y.is_floating_point() else values < 0
        codes, texts = table.columns[column].take(np.flatnonzero(unknown.numpy())).distinct
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        words = [f"{n} {show(t)}" for n, t in zip(counts, texts, strict=True) if t.strip()]
        found.update(text.strip() for text in texts)
        if words:
            classes = len(reader.columns) == 1 and reader.task != "regression"
            hint = "; --unlabelled '' keeps them as classes" if classes and not unlabelled else ""
            notes.append(f"column {show(column)}: {', '.join(words[:5])} mean unknown{hint}")
        below = values[values < 0] if reader.task == "regression" else values[:0]
        if unlabelled is None and len(below) and (below == -1).all():
            notes.append(
                f"column {show(column)}: {len(below)} targets are -1, the only ones below zero; "
                "--unlabelled -1 if they are unknown"
            )
    numbers = number_values(list(found))
    absent = [
        text
        for text in unlabelled or ()
        if text.strip() not in found | {""} and plain_number(text) not in numbers
    ]
    if absent:
        notes.append(f"{ABSENT} {show_list(absent)}, which was said to mean unknown")
    return notes


def _stored(unlabelled: Sequence[str] | None) -> tuple[str, ...]:
    return () if unlabelled is None else tuple(unlabelled) or ("",)


def _are_texts(values: object) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= MAX_STORED
        and all(isinstance(value, str) for value in values)
    )


def _is_plain_whole(name: str) -> bool:
    return str(whole_number(name)) == name
