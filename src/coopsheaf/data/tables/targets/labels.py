"""One column of labels: what means unknown, what task it is, which classes there are."""

from __future__ import annotations

import itertools
import math
import shlex
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.reading.cells import Cells
from coopsheaf.data.tables.reading.table import Table
from coopsheaf.data.tables.reading.words import is_missing, plain_number

MAX_CLASSES = 100  # more are taken for classes only if they repeat a lot
MAX_CLASS_SHARE = 0.2
MAX_CODES = 1000  # classes that are numbered; more whole numbers are more likely amounts
FREE_CLASSES = 10  # from here on classes must repeat, on the average
MANY_NUMBERS = 20
YEARS = (1900, 2100)
# Words that people write for "not known" and for a class of that name. Nobody can tell which.
DOUBTFUL = frozenset({"?", "unknown", "unlabeled", "unlabelled", "undefined", "tbd", "n/k"})


@dataclass(frozen=True)
class Labels:
    """The different labels of a column, without what means unknown.

    Args:
        table, column: where they are.
        codes: ``(rows,)`` position of each cell's text in ``all_texts``.
        all_texts: the different texts of the column.
        kept: positions in ``all_texts`` of the labels.
        counts: how many cells have each label; as long as ``kept``.
    """

    table: Table
    column: str
    codes: NDArray[np.int64]
    all_texts: list[str]
    kept: list[int]
    counts: list[int]

    @classmethod
    def of(cls, table: Table, column: str, unknown: Callable[[str], bool]) -> Labels:
        """Those of a column; there must be some that are finite, if they are numbers."""
        codes, texts = table.columns[column].distinct
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        kept = [code for code, text in enumerate(texts) if not unknown(text)]
        found = cls(table, column, codes, texts, kept, [counts[code] for code in kept])
        if not kept:
            raise_empty(table, column)
        for code in kept:
            if not _is_finite(texts[code]):
                raise DataError(
                    f"{table.at(found.first_row(code), column)}: a label must be a class or a "
                    f"finite number; got {show(texts[code])}: leave the cell empty if it is to be "
                    "predicted"
                )
        return found

    @property
    def where(self) -> str:
        return where(self.table, self.column)

    @property
    def texts(self) -> list[str]:
        return [self.all_texts[code] for code in self.kept]

    @property
    def total(self) -> int:
        """How many cells have a label."""
        return sum(self.counts)

    def first_row(self, code: int) -> int:
        return int(np.argmax(self.codes == code))

    def without(self, texts: Collection[str]) -> Labels:
        """The labels but for some."""
        pairs = [
            (code, count)
            for code, count in zip(self.kept, self.counts, strict=True)
            if self.all_texts[code] not in texts
        ]
        kept, counts = [code for code, _ in pairs], [count for _, count in pairs]
        return Labels(self.table, self.column, self.codes, self.all_texts, kept, counts)


def where(table: Table, *columns: str) -> str:
    """Columns of a table in a message."""
    return f"{table.name}, column{'s' if len(columns) > 1 else ''} {show_list(columns)}"


def raise_empty(table: Table, column: str) -> None:
    raise DataError(
        f"{where(table, column)}: some labels must be there to train on; all "
        f"{table.num_rows} cells are empty or mean unknown"
    )


def says_unknown(cells: Cells, unlabelled: Sequence[str] | None) -> Callable[[str], bool]:
    """Which texts of a column of classes mean that the class is not known.

    Without ``unlabelled`` the words for missing but ``?``, about which the user is asked, and but
    for ``-`` beside nothing but ``+``. With it exactly these texts and empty cells; numbers are
    compared as numbers, so that ``-1`` is ``-1.0``.
    """
    if unlabelled is None:
        signs = {text.strip() for text in cells.distinct.texts if not is_missing(text)} == {"+"}
        kept = {"?", "-"} if signs else {"?"}
        return lambda text: is_missing(text) and text.strip() not in kept
    words = {text.strip() for text in unlabelled} | {""}
    values = {plain_number(word) for word in words} - {None}
    return lambda text: text.strip() in words or plain_number(text) in values


def says_no_number(unlabelled: Sequence[str] | None) -> Callable[[str], bool]:
    """Which texts mean unknown where only numbers, or yes and no, can be meant."""
    words = {text.strip() for text in unlabelled or ()}
    values = {plain_number(word) for word in words} - {None}
    return lambda text: (
        is_missing(text)
        or is_doubtful(text)
        or text.strip() in words
        or plain_number(text) in values
    )


def is_doubtful(text: str) -> bool:
    """Whether a label may well mean "not known"."""
    return text.strip().casefold() in DOUBTFUL


def doubtful(labels: Labels) -> list[str]:
    """Labels that may mean "not known": such words, and -1 where no other label is below zero.

    Exactly -1 and 1 are two classes.
    """
    words = [text for text in labels.texts if is_doubtful(text)]
    rest = {text: plain_number(text) for text in labels.texts if not is_doubtful(text)}
    ones = [text for text, value in rest.items() if value == -1]
    others = [value for value in rest.values() if value != -1]
    plain = all(value is None for value in others)
    whole = all(value is not None and value.is_integer() and value >= 0 for value in others)
    if ones and others and (plain or whole) and set(others) != {1.0}:
        return [*words, *ones]
    return words


def ask(labels: Labels, texts: Sequence[str], otherwise: str = "a class") -> None:
    """Say that some labels may mean unknown, and both answers; ``texts`` are among the labels."""
    if not texts:
        return
    counts = dict(zip(labels.texts, labels.counts, strict=True))
    found = " and ".join(f"{counts[text]} {show(text)}" for text in texts)
    option = " ".join(shlex.quote(text.strip()) for text in texts)
    them = "it" if len(texts) == 1 else "them"
    raise DataError(
        f"{labels.where}: labels that may mean unknown are not guessed; got {found}: choose "
        f"--unlabelled {option} to have these nodes predicted, or --unlabelled '' to keep {them} "
        f"as {otherwise}"
    )


def choose_task(labels: Labels) -> str:
    """``"regression"`` or ``"classification"``; where a guess would be absurd, an error that asks.

    - Numbers with fractions are real targets if there are more than 20 different ones or more
      than half of them differ.
    - More than ten different whole numbers, all from 1900 to 2100, are years: real targets.
    - Other whole numbers are classes if there are at most 100, or if they look like numbers of
      classes: 0, 1, 2, ... or 1, 2, 3, ... without a gap, at most 1,000, and fewer than a fifth of
      the labels differ.
    - Texts are classes if there are at most 100, or fewer than a fifth of the labels differ.
    - Beyond ten classes at most half of the labels may differ.
    """
    numbers = [plain_number(text) for text in labels.texts]
    values = [value for value in numbers if value is not None]
    if len(values) == len(numbers):
        if all(value.is_integer() for value in values):
            return _task_of_whole_numbers(labels, values)
        return task_of_fractions(labels.where, len(values), labels.total)
    distinct, total = len(numbers), labels.total
    many = distinct > MAX_CLASSES and distinct >= MAX_CLASS_SHARE * total
    if not (many or (distinct > FREE_CLASSES and distinct > total / 2)):
        return "classification"
    if len(values) > len(numbers) / 2:
        odd = labels.kept[numbers.index(None)]
        raise DataError(
            f"{labels.table.at(labels.first_row(odd), labels.column)}: most labels are numbers; "
            f"{show(labels.all_texts[odd])} is none: correct the cell or leave it empty, or choose "
            "--task multiclass"
        )
    raise DataError(
        f"{labels.where}: labels must be classes that repeat; {distinct} of {total} differ, such "
        f"as {show_list(sorted(labels.texts), 2)}, which looks like free text: name another "
        "column, or choose --task multiclass"
    )


def task_of_fractions(where: str, distinct: int, total: int) -> str:
    """The task of ``distinct`` different numbers among ``total``, not all of them whole."""
    if distinct > MANY_NUMBERS or distinct > total / 2:
        return "regression"
    raise DataError(
        f"{where}: {distinct} different numbers with fractions in {total} labels could be "
        "classes or real targets: choose --task regression or --task multiclass"
    )


def are_years(values: Sequence[float]) -> bool:
    """Whether different whole numbers look like years, too many for classes."""
    return len(values) > FREE_CLASSES and YEARS[0] <= min(values) <= max(values) <= YEARS[1]


def _task_of_whole_numbers(labels: Labels, values: Sequence[float]) -> str:
    distinct, total = len(values), labels.total
    if are_years(values):
        return "regression"
    rare = distinct > FREE_CLASSES and distinct > total / 2
    first, last = min(values), max(values)
    counted = first in (0, 1) and last - first + 1 == distinct
    codes = counted and distinct <= MAX_CODES and distinct < MAX_CLASS_SHARE * total
    if rare or (distinct > MAX_CLASSES and not codes):
        raise DataError(
            f"{labels.where}: {distinct} different whole numbers in {total} labels could be classes"
            " or real targets: choose --task regression or --task multiclass"
        )
    return "classification"


def class_names(texts: Sequence[str], where: str) -> tuple[tuple[str, ...], str]:
    """The classes in order, and their type: ``"whole"``, ``"truth"`` or ``"text"``.

    Whole numbers are in order of their value and written plainly (``1`` for ``1.0``, which gaps
    make of it), anything else is sorted as text. No number may be written in two ways.
    """
    whole = [whole_number(text) for text in texts]
    order = sorted((v, text) for v, text in zip(whole, texts, strict=True) if v is not None)
    if len(order) < len(texts):
        names = tuple(sorted(texts))
        return names, "truth" if names == ("False", "True") else "text"
    for (value, text), (following, other) in itertools.pairwise(order):
        if value == following:
            raise DataError(
                f"{where}: a class must be written one way; got {show(text)} and {show(other)} for "
                "the same number"
            )
    return tuple(str(value) for value, _ in order), "whole"


def whole_number(text: str) -> int | None:
    """The whole number of at most 63 bits that a text states, exactly; else ``None``."""
    value = plain_number(text)
    if value is None or not value.is_integer() or abs(value) >= 2**63:
        return None
    try:
        return int(text)  # exact beyond 2**53, where floats are not
    except ValueError:
        return int(value)


def note_similar(names: Sequence[str], where: str) -> list[str]:
    """A warning if some classes differ by case or space only."""
    groups: dict[str, list[str]] = {}
    for name in names:
        key = "".join(unicodedata.normalize("NFKC", name).casefold().split())
        groups.setdefault(key, []).append(name)
    similar = [group for group in groups.values() if len(group) > 1]
    if not similar:
        return []
    more = f" (and {len(similar) - 1} more such groups)" if len(similar) > 1 else ""
    return [
        f"WARNING: {where}: the classes {show_list(similar[0])} differ by case or space only{more};"
        " they are kept apart: correct the table if they are one"
    ]


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return True
