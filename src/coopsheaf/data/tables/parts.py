"""Which nodes are for training, validation and test: columns that say it, or a draw.

Three kinds of columns are understood: the words of ``PARTS`` in a column ``split``, truth values in
``train_mask``, ``val_mask`` and ``test_mask``, and the numbers of folds in a column ``fold``. A
column of such a name is never a feature unless the user says so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.splits import masks_of_folds, stratified_split
from coopsheaf.data.tables.columns.truths import read_truths
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.reading.words import is_missing
from coopsheaf.data.tables.targets.labels import where
from coopsheaf.data.tables.targets.reader import Targets

PARTS = {
    "train": 0, "training": 0,
    "val": 1, "valid": 1, "validation": 1, "dev": 1,
    "test": 2, "testing": 2,
}  # fmt: skip
# Of these only the first is never a feature; the others are a split if they have the word for
# training, and else may be anything.
SPLIT_NAMES = ("split", "set", "subset", "part", "partition")
FOLD = "fold"
MASK = "_mask"
MAX_FOLDS = 20
FOLD_RULE = (
    f"the numbers of 2 to {MAX_FOLDS} folds must be 0, 1, 2, ... or 1, 2, 3, ..., each there"
)


@dataclass(frozen=True)
class Parts:
    """The nodes of each part.

    Args:
        train, val, test: ``(splits, n)`` masks, disjoint in each split.
        columns: those that say it; empty if it was drawn.
        notes: what the user should be told, one line each.
    """

    train: Tensor
    val: Tensor
    test: Tensor
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Found(NamedTuple):
    """Columns that say the split, by name.

    Args:
        columns: those to use; ``None`` if there are none.
        ignored: columns that look like it but are not used and must not be features; for each the
            note that says why.
    """

    columns: tuple[str, ...] | None
    ignored: dict[str, str]


def find_parts(table: Table, split: str | None, taken: Collection[str]) -> Found:
    """The columns that say the split.

    Args:
        split: the column that the user names: words, folds, or one of the masks.
        taken: columns that the user gave another role.

    Raises:
        DataError: a column is a split but for some words or nodes.
    """
    free = [name for name in table.columns if name not in taken and name != split]
    usable: list[tuple[str, ...]] = []
    reasons: dict[str, str] = {}
    if split is not None:
        usable.append(_named(table, split, free))
    for find in (_find_words, _find_masks, _find_folds):
        good, bad = find(table, [n for n in free if n not in _all(usable)], not usable)
        usable += good
        reasons |= bad
    chosen = usable[0] if usable else None
    for name in _all(usable[1:]):
        reasons[name] = f"the split is said by {show_list(usable[0])}"
    end = "not used, and no feature unless --features names it"
    return Found(chosen, {n: f"column {show(n)}: {why}; {end}" for n, why in reasons.items()})


def read_parts(table: Table, columns: Sequence[str]) -> Parts:
    """What the columns say, of all nodes.

    - Words: one split; empty cells are in no part.
    - Masks: one split; empty cells are false.
    - Folds: as many splits as folds. Split i is tested on fold i and validated on the next one;
      the others are for training. Two folds leave nothing for validation.
    """
    names = tuple(columns)
    if len(names) > 1:
        if any(_mask_part(name) is None for name in names):
            raise DataError(f"several columns of a split must be masks; got {show_list(names)}")
        train, val, test = _read_masks(table, names)
        return Parts(train, val, test, names)
    cells = table.column(names[0], "the split")
    if not _has_numbers(cells):
        train, val, test = _read_words(table, names[0])
        return Parts(train, val, test, names)
    folds = _folds(cells)
    if folds is None:
        raise DataError(f"{where(table, *names)}: {FOLD_RULE}, or the words train, val and test")
    count = int(folds.max()) + 1
    train, val, test = masks_of_folds(torch.from_numpy(folds))
    how = "the next one" if count > 2 else "a fifth of the other one, drawn at random"
    note = f"column {show(names[0])}: {count} splits, each tested on one fold, validated on {how}"
    return Parts(train, val, test, names, (note,))


def make_parts(
    table: Table,
    target: Sequence[str],
    targets: Targets,
    found: Sequence[str] | None,
    seed: int,
    lonely: Tensor | None = None,
) -> Parts:
    """Parts to train with: labelled nodes only, with something to learn from.

    Args:
        target: the target columns, for messages.
        found: the columns that say the split; without any it is drawn, stratified, 60/20/20.
        seed: of what is drawn.
        lonely: ``(n,)`` nodes without edges that shall be in no part.

    Raises:
        DataError: no labelled nodes for training or validation, or of one class only.
    """
    known, lack = targets.known, "no label"
    if lonely is not None:
        known, lack = known & ~lonely, "no label or no edge"
    if not found:
        train, val, test = stratified_split(targets.y, known, seed=seed)
        kind = "stratified" if targets.y.dim() == 1 else "random"
        how = f"a {kind} 60/20/20 split (seed {seed})"
        hint, place = "label more nodes or give a split column", where(table, *target)
        parts = Parts(train[None], val[None], test[None])
    else:
        parts = _of_known(read_parts(table, found), known, lack)
        parts = _draw_validation(parts, targets, seed)
        how = f"column{'s' if len(found) > 1 else ''} {show_list(found)}"
        hint, place = "mark labelled nodes for it", where(table, *found)
    return _sound(parts, targets, int(known.sum()), place, how, hint)


def parts_of_masks(
    table: Table,
    masks: Sequence[Tensor],
    targets: Targets,
    lonely: Tensor | None = None,
    how: str = "the masks of the data",
) -> Parts:
    """Parts to train with, by three ``(splits, n)`` masks that a graph object brings along."""
    known = targets.known if lonely is None else targets.known & ~lonely
    train, val, test = (mask & known for mask in masks)
    number = int(known.sum())
    return _sound(Parts(train, val, test), targets, number, table.name, how, "correct the masks")


def _sound(parts: Parts, targets: Targets, labelled: int, place: str, how: str, hint: str) -> Parts:
    """Parts that can be trained with, and what they are like."""
    for part, masks in (("training", parts.train), ("validation", parts.val)):
        if not masks.any(1).all():
            raise DataError(
                f"{place}: there must be labelled nodes for {part}; {how} of "
                f"{labelled} labelled nodes has none{_which(~masks.any(1))}: {hint}"
            )
    sizes = "/".join(str(int(m[0].sum())) for m in (parts.train, parts.val, parts.test))
    first = " in the first split" if len(parts.train) > 1 else ""
    said = f"split: {how}: {sizes} nodes to train, validate and test{first}"
    absent = _check_classes(parts.train, targets, place, hint)
    return _with_notes(parts, said, *absent)


def later_parts(table: Table, targets: Targets, found: Sequence[str] | None) -> Parts:
    """Of a later table: what its columns say of the labelled nodes, else all of these are tests.

    Args:
        found: the columns that said the split of the training table.
    """
    there = [name for name in found or () if name in table.columns]
    note = ""
    if found and len(there) == len(found):
        cells = table.columns[found[0]]
        if len(found) > 1 or not _has_numbers(cells) or _folds(cells) is not None:
            return _of_known(read_parts(table, found), targets.known)
        note = f"column {show(found[0])} has not every fold: all labelled nodes are tests"
    elif there:
        note = f"column {show(there[0])} does not say the split alone: all labelled nodes are tests"
    nothing = torch.zeros_like(targets.known)[None]
    return Parts(nothing, nothing, targets.known[None], (), (note,) if note else ())


# --- what the parts are made of --------------------------------------------------------------


def _of_known(parts: Parts, known: Tensor, lack: str = "no label") -> Parts:
    """The parts of the labelled nodes."""
    without = int(((parts.train | parts.val | parts.test).any(0) & ~known).sum())
    columns = f"column{'s' if len(parts.columns) > 1 else ''} {show_list(parts.columns)}"
    notes = [f"{without} nodes of {columns} have {lack}: in no part"] if without else []
    masks = (parts.train & known, parts.val & known, parts.test & known)
    return Parts(*masks, parts.columns, (*parts.notes, *notes))


def _draw_validation(parts: Parts, targets: Targets, seed: int) -> Parts:
    """Two folds: a fifth of the training nodes for validation instead."""
    if len(parts.train) != 2 or parts.val.any():
        return parts
    drawn = [
        stratified_split(targets.y, mask, seed=seed, ratios=(0.8, 0.1, 0.1)) for mask in parts.train
    ]
    train = torch.stack([first for first, _, _ in drawn])
    return Parts(train, parts.train & ~train, parts.test, parts.columns, parts.notes)


def _check_classes(train: Tensor, targets: Targets, place: str, hint: str) -> list[str]:
    """Refuse training nodes of one class; a note for each class that none of them has."""
    if targets.task == "regression":
        return []
    if targets.task == "multilabel":
        has = torch.stack([(targets.y[mask] == 1).any(0) for mask in train]).all(0).tolist()
    else:
        size = len(targets.class_names)
        counts = torch.stack([targets.y[mask].bincount(minlength=size) for mask in train])
        for split, count in zip(train, counts, strict=True):
            if int((count > 0).sum()) < 2:
                only = targets.class_names[int(count.argmax())]
                raise DataError(
                    f"{place}: training nodes must be of two classes or more; all "
                    f"{int(split.sum())} are {show(only)}: {hint}"
                )
        has = (counts > 0).all(0).tolist()
    absent = [name for name, there in zip(targets.class_names, has, strict=True) if not there]
    return [f"no training node has a label of {show_list(absent)}"] if absent else []


def _with_notes(parts: Parts, *notes: str) -> Parts:
    return Parts(parts.train, parts.val, parts.test, parts.columns, (*parts.notes, *notes))


def _which(bad: Tensor) -> str:
    """Which splits, if there are several."""
    return f" in split {int(bad.nonzero()[0])}" if len(bad) > 1 else ""


def part_like(names: Sequence[str]) -> list[str]:
    """Columns that may say the split, by their names."""
    keys = {name: name.strip().casefold() for name in names}
    return [n for n, key in keys.items() if key in (*SPLIT_NAMES, FOLD) or key.endswith(MASK)]


# --- which columns say it --------------------------------------------------------------------

Candidates = tuple[list[tuple[str, ...]], dict[str, str]]


def _named(table: Table, split: str, free: Sequence[str]) -> tuple[str, ...]:
    """The columns meant by the one that the user named."""
    table.column(split, "the split")
    if _mask_part(split) is None:
        return (split,)
    good, bad = _find_masks(table, [split, *free], True)
    if not good:
        raise DataError(f"{where(table, split)}: {bad[split]}")
    return good[0]


def _find_words(table: Table, names: Sequence[str], strict: bool) -> Candidates:
    """Columns of words, and why others are none; with ``strict`` an unknown word is an error."""
    good: list[tuple[str, ...]] = []
    bad: dict[str, str] = {}
    for name in sorted(names, key=lambda name: name.strip().casefold() != "split"):
        key = name.strip().casefold()
        if key not in SPLIT_NAMES:
            continue
        words = {text.strip().lower() for text in table.columns[name].distinct.texts}
        if key != "split" and words.isdisjoint({"train", "training"}):
            continue
        if words.isdisjoint(PARTS):
            bad[name] = "it has none of the words train, val and test"
        else:
            if strict and not good:
                _read_words(table, name)
            good.append((name,))
    return good, bad


def _find_masks(table: Table, names: Sequence[str], strict: bool) -> Candidates:
    """The set of masks, and why others are none."""
    masks = [name for name in names if name.strip().casefold().endswith(MASK)]
    trio: dict[int, str] = {}
    bad: dict[str, str] = {}
    for name in masks:
        part = _mask_part(name)
        if part is None:
            bad[name] = "it is no train_mask, val_mask or test_mask"
        elif part in trio:
            bad[name] = f"column {show(trio[part])} is for the same part"
        else:
            trio[part] = name
    chosen = [trio[part] for part in sorted(trio)]
    lacking = [f"{part}{MASK}" for i, part in enumerate(("train", "val")) if i not in trio]
    no_truth = [n for n in chosen if np.isnan(read_truths(table.columns[n]).values).all()]
    if no_truth:
        reason = f"column {show(no_truth[0])} has no truth values"
    elif lacking:
        reason = f"a split by masks lacks {' and '.join(lacking)}"
    else:
        if strict:
            _read_masks(table, chosen)
        return [tuple(chosen)], bad
    return [], bad | dict.fromkeys(chosen, reason)


def _find_folds(table: Table, names: Sequence[str], strict: bool) -> Candidates:
    """Columns of folds, and why others are none."""
    called = [name for name in names if name.strip().casefold() == FOLD]
    good = [name for name in called if _folds(table.columns[name]) is not None]
    return [(name,) for name in good], {name: FOLD_RULE for name in called if name not in good}


def _mask_part(name: str) -> int | None:
    """The part whose mask a column is, by its name."""
    key = name.strip().casefold()
    return PARTS.get(key.removesuffix(MASK)) if key.endswith(MASK) else None


def _all(columns: Sequence[tuple[str, ...]]) -> list[str]:
    return [name for names in columns for name in names]


# --- what a column says ----------------------------------------------------------------------


def _read_words(table: Table, column: str) -> Tensor:
    """``(3, 1, n)`` masks."""
    codes, texts = table.columns[column].distinct
    parts = [PARTS.get(text.strip().lower(), -1) for text in texts]
    for code, text in enumerate(texts):
        if parts[code] < 0 and not is_missing(text):
            row = int(np.argmax(codes == code))
            raise DataError(
                f"{table.at(row, column)}: a split must be train, val, test or empty; got "
                f"{show(text)}: correct it, or --drop {show(column)}"
            )
    part = np.array(parts)[codes]
    return torch.from_numpy(part == np.arange(3)[:, None])[:, None]


def _read_masks(table: Table, columns: Sequence[str]) -> Tensor:
    """``(3, 1, n)`` masks; no node is in two parts."""
    masks = np.zeros((3, 1, table.num_rows), dtype=np.bool_)
    owner: dict[int, str] = {}
    for name in columns:
        values, odd = read_truths(table.column(name, "a mask of the split"))
        if len(odd):
            row = int(odd[0])
            raise DataError(
                f"{table.at(row, name)}: a mask must be true, false, 1, 0 or empty; got "
                f"{show(table.columns[name].text(row))}: correct it, or --drop {show(name)}"
            )
        part = _mask_part(name)
        assert part is not None
        for other, column in owner.items():
            both = np.flatnonzero(masks[other, 0] & (values == 1))
            if len(both):
                more = f" (and at {len(both) - 1} more)" if len(both) > 1 else ""
                raise DataError(
                    f"{table.at(int(both[0]))}: a node must be in one part; both {show(column)} "
                    f"and {show(name)} are true{more}"
                )
        owner[part] = name
        masks[part, 0] |= values == 1
    return torch.from_numpy(masks)


def _has_numbers(cells: Cells) -> bool:
    return cells.numbers is not None and not np.isnan(cells.numbers).all()


def _folds(cells: Cells) -> NDArray[np.int64] | None:
    """``(rows,)`` folds from zero on, -1 where in none; ``None`` if the column has no folds."""
    if not _has_numbers(cells):
        return None
    assert cells.numbers is not None
    there = ~np.isnan(cells.numbers)
    used = np.unique(cells.numbers[there])
    whole = used[0] in (0, 1) and np.array_equal(used, used[0] + np.arange(len(used)))
    if not whole or not 2 <= len(used) <= MAX_FOLDS:
        return None
    folds = np.full(len(cells), -1, dtype=np.int64)
    folds[there] = cells.numbers[there].astype(np.int64) - int(used[0])
    return folds
