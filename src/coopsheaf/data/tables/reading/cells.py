"""The cells of a column as they came: texts, numbers or times.

What a column *means* is decided elsewhere (``encoding``, ``targets``). Here it only has to be
looked at quickly, whatever it came from: as texts, each different one once, or as numbers if that
is what all of them are.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.reading.words import plain_numbers

_CODE = re.compile(r"\n\s*[+-]?0[0-9]")


class Distinct(NamedTuple):
    """The different texts of a column and where they stand.

    Cell ``i`` is ``texts[codes[i]]``; texts are in the order of their first row.
    """

    codes: NDArray[np.int64]
    texts: list[str]


class Ids:
    """Names, and the position of each."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.kept: Any = None  # the names in another form, for whom that is quicker

    @cached_property
    def number(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.texts)}

    def __len__(self) -> int:
        return len(self.texts)


class Cells(ABC):
    """The cells of one column."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def text(self, row: int) -> str:
        """One cell as text; empty where there is none."""

    @cached_property
    @abstractmethod
    def distinct(self) -> Distinct:
        """The different texts of the column."""

    @cached_property
    @abstractmethod
    def numbers(self) -> NDArray[np.float64] | None:
        """``(rows,)`` finite numbers, NaN where missing; ``None`` if any cell is neither.

        Texts count as numbers only in the plain way to write them
        (:func:`~coopsheaf.data.tables.reading.words.plain_number`).
        """

    @property
    def times(self) -> NDArray[np.datetime64] | None:
        """``(rows,)`` of ``datetime64[us]``, NaT where missing, if the column came as times."""
        return None

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> Cells:
        """The cells of some rows."""

    def look_up(self, ids: Ids) -> NDArray[np.int64]:
        """``(rows,)`` positions of the cells among the ids; -1 where they are none."""
        codes, texts = self.distinct
        found = np.fromiter((ids.number.get(t, -1) for t in texts), np.int64, count=len(texts))
        return found[codes]

    @abstractmethod
    def join(self, others: Sequence[Cells]) -> Cells:
        """These cells and those of the same kind below them."""


class TextCells(Cells):
    """Texts in a list."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def text(self, row: int) -> str:
        return self._texts[row]

    @cached_property
    def distinct(self) -> Distinct:
        code: dict[str, int] = {}
        codes = np.fromiter(
            (code.setdefault(text, len(code)) for text in self._texts),
            dtype=np.int64,
            count=len(self._texts),
        )
        return Distinct(codes, list(code))

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        try:  # the usual column, without a gap or an oddity, at full speed
            numbers = np.fromiter(map(float, self._texts), dtype=np.float64, count=len(self))
            if np.isfinite(numbers).all() and not _has_odd(self._texts):
                return numbers
        except ValueError:
            pass
        distinct = self.distinct
        found = plain_numbers(distinct.texts)
        return None if found is None else found[distinct.codes]

    def look_up(self, ids: Ids) -> NDArray[np.int64]:
        found = map(ids.number.get, self._texts, repeat(-1))
        return np.fromiter(found, dtype=np.int64, count=len(self))

    def take(self, rows: NDArray[np.int64]) -> Cells:
        return TextCells([self._texts[row] for row in rows.tolist()])

    def join(self, others: Sequence[Cells]) -> Cells:
        every = (part for part in (self, *others) if isinstance(part, TextCells))
        return TextCells(list(chain.from_iterable(part._texts for part in every)))


class NumberCells(Cells):
    """Numbers, whole or not; NaN where missing.

    Whole numbers are written without a fraction, also where gaps made floats of them.
    """

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values  # int64 or float64

    def __len__(self) -> int:
        return len(self._values)

    def text(self, row: int) -> str:
        return _spell(self._values[row].item())

    @cached_property
    def distinct(self) -> Distinct:
        values, first, codes = np.unique(self._values, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return Distinct(rank[codes.reshape(-1)], [_spell(v) for v in values[order].tolist()])

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        numbers = self._values.astype(np.float64)
        return None if np.isinf(numbers).any() else numbers

    def take(self, rows: NDArray[np.int64]) -> Cells:
        return NumberCells(self._values[rows])

    def join(self, others: Sequence[Cells]) -> Cells:
        every = [part._values for part in (self, *others) if isinstance(part, NumberCells)]
        return NumberCells(np.concatenate(every))


class TimeCells(Cells):
    """Dates and times; NaT where missing."""

    def __init__(self, values: NDArray[np.datetime64]) -> None:
        self._values = values.astype("datetime64[us]")

    def __len__(self) -> int:
        return len(self._values)

    def text(self, row: int) -> str:
        return _spell_time(self._values[row])

    @cached_property
    def distinct(self) -> Distinct:
        numbers = NumberCells(self._values.astype(np.int64)).distinct
        first = np.zeros(len(numbers.texts), dtype=np.int64)
        first[numbers.codes[::-1]] = np.arange(len(self))[::-1]
        return Distinct(numbers.codes, [self.text(row) for row in first.tolist()])

    @cached_property
    def numbers(self) -> NDArray[np.float64] | None:
        return np.full(len(self), np.nan) if np.isnat(self._values).all() else None

    @property
    def times(self) -> NDArray[np.datetime64]:
        return self._values

    def take(self, rows: NDArray[np.int64]) -> Cells:
        return TimeCells(self._values[rows])

    def join(self, others: Sequence[Cells]) -> Cells:
        every = [part._values for part in (self, *others) if isinstance(part, TimeCells)]
        return TimeCells(np.concatenate(every))


def join_cells(parts: Sequence[Cells]) -> Cells:
    """Cells one below the other; as texts if they are of several kinds."""
    first, *others = parts
    if not others or {type(part) for part in parts} == {type(first)}:
        return first.join(others) if others else first
    return TextCells([part.text(row) for part in parts for row in range(len(part))])


def compact(cells: Cells) -> Cells:
    """Cells of which only the numbers matter, without their texts if all are numbers."""
    return cells if cells.numbers is None else NumberCells(cells.numbers)


def cells_of(values: Sequence[object] | NDArray[Any]) -> Cells:
    """Python values or an array as cells: numbers if all are, times if all are, else texts.

    ``None`` is missing; truth values are the texts ``True`` and ``False``.
    """
    array = values if isinstance(values, np.ndarray) else _as_numbers(values)
    if array is not None and array.dtype.kind in "iu" and _fits(array):
        return NumberCells(array.astype(np.int64))
    if array is not None and array.dtype.kind == "f":
        return NumberCells(array.astype(np.float64))
    if array is not None and array.dtype.kind == "M":
        return TimeCells(array)
    return TextCells(["" if _is_none(value) else str(value) for value in values])


def columns_of(name: str, values: Any, argument: str) -> dict[str, Cells]:
    """Values as a column ``name``; a ``(n, k)`` array as ``name[0]``, ``name[1]``, ..."""
    plain = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    if not plain or any(isinstance(value, list | tuple | np.ndarray) for value in values):
        values = _as_array(values, argument)
    if not isinstance(values, np.ndarray):
        return {name: cells_of(values)}
    if values.dtype.kind == "c":
        raise DataError(f"`{argument}` must be real numbers; got {values.dtype}")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.ndim == 1:
        return {name: cells_of(values if values.dtype.kind in "iufM" else values.tolist())}
    if values.ndim != 2 or values.dtype.kind not in "iufb":
        raise DataError(
            f"`{argument}` must be numbers of shape (n, k); got {values.dtype} of {values.shape}"
        )
    return {f"{name}[{i}]": cells_of(_no_truths(column)) for i, column in enumerate(values.T)}


def _as_array(values: Any, argument: str) -> NDArray[Any]:
    """An array of what is none yet: a tensor, a Series."""
    if hasattr(values, "detach"):  # a tensor; numpy has no bfloat16
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() else values
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.ndim == 0:
        raise DataError(
            f"`{argument}` must be an array of one or two dimensions; got {type(values).__name__}"
        )
    return array


def _no_truths(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.int64) if column.dtype.kind == "b" else np.ascontiguousarray(column)


def _fits(whole: NDArray[Any]) -> bool:
    """Whether unsigned numbers are small enough not to become negative."""
    return whole.dtype != np.uint64 or not len(whole) or int(whole.max()) < 2**63


def _as_numbers(values: Sequence[object]) -> NDArray[Any] | None:
    kinds = {type(value) for value in values}
    if kinds == {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            return None
    if kinds <= {int, float, type(None)} and kinds - {type(None)}:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    return None


def _is_none(value: object) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas.NA says neither; a list of arrays cannot say
        return type(value).__name__ == "NAType"


def _has_odd(texts: Sequence[str]) -> bool:
    """What Python's float reads, too, though nobody who writes a table means a number by it:
    2020_01, 007, digits of other scripts."""
    joined = "\n".join(["", *texts])
    return "_" in joined or not joined.isascii() or _CODE.search(joined) is not None


def _spell(value: float | int) -> str:
    if value != value:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    return repr(value)


def _spell_time(value: np.datetime64) -> str:
    """ISO, a date alone where there is no time of day."""
    if np.isnat(value):
        return ""
    text = str(value).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(" 00:00:00")
