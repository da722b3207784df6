"""Several labels in one cell: ``drama|comedy``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.targets.labels import MAX_CLASS_SHARE, MAX_CLASSES, Labels

SEPARATORS = ("|", ";", ",")  # only the first is found without being asked for
LIST_SHARE = 0.2
MAX_CELLS = 100_000_000


def split_list(text: str, separator: str) -> list[str]:
    """The labels of a cell, each once; order, spaces and empty parts do not matter."""
    parts = (part.strip() for part in text.split(separator))
    return list(dict.fromkeys(part for part in parts if part))


def check_size(rows: int, labels: int, where: str) -> None:
    """Refuse what would fill the memory."""
    if rows * labels > MAX_CELLS:
        raise DataError(
            f"{where}: targets must have at most {MAX_CELLS} cells; {rows} rows x {labels} are "
            "more: merge labels or name fewer columns"
        )


def look_like_lists(labels: Labels) -> bool:
    """Whether the cells are lists, separated by ``|``.

    A fifth of them have one; there are fewer different parts than combinations of them, which is
    not so for classes that happen to have a ``|`` in their name; parts occur twice on the average
    and are no more than classes may be.
    """
    pairs = list(zip(labels.texts, labels.counts, strict=True))
    if sum(count for text, count in pairs if "|" in text) < LIST_SHARE * labels.total:
        return False
    lists = [split_list(text, "|") for text, _ in pairs]
    parts = {part for found in lists for part in found}
    occurrences = sum(len(found) * n for found, (_, n) in zip(lists, pairs, strict=True))
    few = len(parts) <= MAX_CLASSES or len(parts) < MAX_CLASS_SHARE * labels.total
    combinations = {frozenset(found) for found in lists}
    return 2 <= len(parts) < len(combinations) and occurrences >= 2 * len(parts) and few


def find_separator(labels: Labels) -> str:
    """The first of ``| ; ,`` that any cell has, for lists that were asked for."""
    for separator in SEPARATORS:
        if any(separator in text for text in labels.texts):
            return separator
    raise DataError(
        f"{labels.where}: several labels in a cell must be separated by | or ; or ,; no cell of "
        f"{labels.total} has two, such as {show(labels.texts[0])}: choose --task multiclass, or "
        "name several target columns"
    )


def list_parts(labels: Labels, separator: str) -> list[str]:
    """The different labels of all cells."""
    return list(dict.fromkeys(p for text in labels.texts for p in split_list(text, separator)))


def read_lists(
    cells: Cells,
    separator: str,
    find: Callable[[str], int],
    size: int,
    unknown: Callable[[str], bool],
) -> tuple[NDArray[np.float32], int]:
    """``(rows, labels)`` of 0, 1, and NaN where nothing is known; and how many labels are foreign.

    A cell of foreign labels alone is unknown; a separator alone says that a node has none.

    Args:
        find: the number of a label, below ``size``; -1 if it is none of them.
        unknown: whether a cell says that nothing is known.
    """
    codes, texts = cells.distinct
    table = np.zeros((len(texts), size), dtype=np.float32)
    counts = np.bincount(codes, minlength=len(texts)).tolist()
    foreign = 0
    for code, text in enumerate(texts):
        parts = [] if unknown(text) else split_list(text, separator)
        numbers = [find(part) for part in parts]
        good = [number for number in numbers if number >= 0]
        foreign += (len(numbers) - len(good)) * counts[code]
        if unknown(text) or (parts and not good):
            table[code] = np.nan
        table[code, good] = 1
    return table[codes], foreign
