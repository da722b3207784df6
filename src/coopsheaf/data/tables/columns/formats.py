"""How people write numbers, truth values and dates.

A column is read as a whole: which mark is the decimal one is decided from all of its cells, and
the format that was found can be stored and applied unchanged to a later table.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.columns.dates import Times, read_times
from coopsheaf.data.tables.columns.nearly import GOOD, MISSING_CELL, ODD
from coopsheaf.data.tables.columns.truths import TRUTH
from coopsheaf.data.tables.reading.cells import Cells, NumberCells
from coopsheaf.data.tables.reading.words import is_missing, plain_number

__all__ = ["NumberFormat", "Numbers", "Times", "read_numbers", "read_times"]

# What a text can be, beside a number, a gap (MISSING_CELL) or nothing known (ODD).
CODE = 3  # digits with a leading zero, such as a postal code
INFINITE = 4

DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = ("", ",", ".", " ", "'")
MAX_LENGTH = 64  # of a number that is not written in the plain way

_INFINITE = frozenset({"inf", "infinity"})

_SAME = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "’": "'", "−": "-"})
_CURRENCY = (
    r"(?:US|A|C|NZ|HK|S|R)?\$|[€£¥₹₽₩₺₫₪₴₦฿₿¢]|kr\.?|zł|Kč|Ft|Fr\.|"
    r"(?:USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|UAH|RUB|TRY|"
    r"BRL|MXN|ARS|CLP|COP|PEN|ZAR|NGN|KES|EGP|ILS|AED|SAR|KRW|HKD|SGD|TWD|THB|IDR|MYR|PHP|VND|PKR|"
    r"BTC)"
)
_DECORATED = re.compile(
    rf"(?P<sign>[+-])?\s?(?P<before>{_CURRENCY})?\s?(?P<inner>[+-])?"
    r"(?P<body>[0-9.,][0-9.,' ]*?(?:[eE][+-]?[0-9]+)?)"
    rf"\s?(?P<percent>%)?(?:\s?(?P<after>{_CURRENCY}))?"
)
_BARE = re.compile(r"[+-]?[0-9.,](?:[0-9.,' ]*[0-9.,])?(?:[eE][+-]?[0-9]+)?")
_SHAPE = str.maketrans("012345678", "999999999")


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Signs of currencies, per cent (a hundredth) and brackets for negative numbers are read in every
    format.

    Args:
        decimal: the mark before the fraction, ``"."`` or ``","``.
        thousands: the mark between groups of three digits, empty if there is none.
        truths: whether true, false, yes, no and the like are 1 and 0.
        zeros: whether leading zeros are allowed; with them, a number is all that Python reads as
            one, which is what encoders did before they stored a format.
    """

    decimal: str = "."
    thousands: str = ""
    truths: bool = False
    zeros: bool = False


PLAIN = NumberFormat()
TRUTHS = NumberFormat(truths=True)
AS_PYTHON = NumberFormat(zeros=True)
# Ties go to the first: what programs write, then thousands with a comma.
_CANDIDATES = tuple(
    NumberFormat(decimal, thousands)
    for decimal in DECIMAL_MARKS
    for thousands in THOUSANDS_MARKS
    if decimal != thousands
)


@dataclass(frozen=True)
class Numbers:
    """A column read as numbers.

    Args:
        values: ``(rows,)`` numbers, NaN where missing or odd.
        odd: rows that are neither numbers nor missing.
        format: how they were read.
        remarks: what was not clear about the format, a line each.
    """

    values: NDArray[np.float64]
    odd: NDArray[np.int64]
    format: NumberFormat
    remarks: tuple[str, ...] = ()


class Reading(NamedTuple):
    """Different texts as numbers: ``(texts,)`` values, NaN if none, and what each text is."""

    values: NDArray[np.float64]
    kinds: NDArray[np.int8]


def read_numbers(cells: Cells, format: NumberFormat | None = None) -> Numbers:
    """Read a column as numbers, as far as its cells are some.

    Args:
        format: the one to apply; by default the one that most of the cells are written in.
    """
    typed = isinstance(cells, NumberCells)  # what came as numbers has no format
    plain = typed or format is None or format.decimal == "."
    if plain and cells.numbers is not None:
        return Numbers(cells.numbers, np.empty(0, dtype=np.int64), format or PLAIN)
    codes, texts = cells.distinct
    scan = NumberTexts(texts)
    remarks: tuple[str, ...] = ()
    if format is None:
        format, remarks = scan.decide(np.bincount(codes, minlength=len(texts)))
    values, kinds = scan.read(PLAIN if typed else format)
    odd = (kinds != GOOD) & (kinds != MISSING_CELL)
    return Numbers(values[codes], np.flatnonzero(odd[codes]), format, remarks)


class NumberTexts:
    """Different texts, taken apart once, that can be read in several formats."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._cells = [_undress(text) for text in texts]

    def decide(self, counts: NDArray[np.int64]) -> tuple[NumberFormat, tuple[str, ...]]:
        """The format that most cells are written in, and what to say about it.

        Args:
            counts: ``(texts,)`` how often each text occurs; those with 0 say nothing.
        """
        shapes: Counter[str] = Counter()
        example: dict[str, _Cell] = {}
        currencies: dict[str, None] = {}
        percent = other = 0
        for cell, count in zip(self._cells, counts.tolist(), strict=True):
            if cell is None or count == 0:
                continue
            shape = _shape(cell.body)
            shapes[shape] += count
            example.setdefault(shape, cell)
            if cell.currency:
                currencies.setdefault(cell.currency)
            if cell.percent:
                percent += count
            elif cell.body.strip("0.,"):
                other += count
        best, remarks = _most_read(shapes, example)
        if len(currencies) > 1:
            named = show_list(currencies)
            remarks.append(f"amounts in several currencies ({named}) are not converted")
        if percent and other:
            remarks.append(
                f"{percent} cells have a % sign and {other} have none: only those are / 100"
            )
        return best, tuple(remarks)

    def read(self, format: NumberFormat) -> Reading:
        """The numbers of one format, and what each text is."""
        values = np.full(len(self._texts), np.nan)
        kinds = np.full(len(self._texts), ODD, dtype=np.int8)
        for at, (text, cell) in enumerate(zip(self._texts, self._cells, strict=True)):
            value = _as_python(text) if format.zeros else _parse(cell, format)
            if value is None and cell is None:
                value = _without_marks(text, format)
            if value is None:
                kinds[at] = _kind(text, cell)
            elif abs(value) == math.inf:
                kinds[at] = INFINITE
            else:
                kinds[at], values[at] = GOOD, value
        return Reading(values, kinds)


class _Cell(NamedTuple):
    body: str
    negative: bool
    percent: bool
    currency: str


def _parse(cell: _Cell | None, format: NumberFormat) -> float | None:
    """The number, which may be infinite; ``None`` if it is none in this format."""
    if cell is None:
        return None
    decimal, thousands = format.decimal, format.thousands
    if _pattern(decimal, thousands).fullmatch(cell.body) is None:
        return None
    body = cell.body.replace(thousands, "") if thousands else cell.body
    value = float(body if decimal == "." else body.replace(decimal, "."))
    value = value / 100 if cell.percent else value
    return -value if cell.negative else value


def _without_marks(text: str, format: NumberFormat) -> float | None:
    """A truth word, or a plain number that is very long."""
    if format.truths:
        return TRUTH.get(text.strip().lower())
    return plain_number(text) if format.decimal == "." and len(text) > MAX_LENGTH else None


def _kind(text: str, cell: _Cell | None) -> int:
    """What a text is that is no number."""
    if cell is not None:
        return CODE if _is_code(cell.body) else ODD
    if is_missing(text):
        return MISSING_CELL
    return INFINITE if text.strip().lstrip("+-").lower() in _INFINITE else ODD


def _is_code(body: str) -> bool:
    """Whether leading zeros alone keep it from being a number, which they do not in a date."""
    if body[:1] != "0" or not body[1:2].isdigit():
        return False
    rest = body.lstrip("0")
    rest = rest if rest[:1].isdigit() else f"0{rest}"
    return any(_pattern(f.decimal, f.thousands).fullmatch(rest) for f in _CANDIDATES)


def _shape(body: str) -> str:
    """The marks of a number; of its digits only whether the first is a zero."""
    shape = body.translate(_SHAPE)
    return f"0{shape[1:]}" if body[0] == "0" else shape


def _as_python(text: str) -> float | None:
    try:
        value = None if "_" in text else float(text)
    except ValueError:
        return None
    return None if value != value else value


def _undress(text: str) -> _Cell | None:
    """The digits and marks of a number, without sign, currency, per cent and brackets."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    if not text.isascii():
        text = text.translate(_SAME)
    if _BARE.fullmatch(text):  # the usual one
        return _Cell(text.lstrip("+-"), text[0] == "-", False, "")
    negative = text[-1] == ")" and text.count("(") == text.count(")") == 1
    if negative:  # as accountants write it, the currency inside or before
        before, _, inside = text[:-1].partition("(")
        text = before.strip() + inside.strip()
    found = _DECORATED.fullmatch(text)
    if found is None:
        return None
    sign, before, inner, body, percent, after = found.groups()
    if (sign and inner) or (negative and (sign or inner)) or (before and after):
        return None
    negative = negative or "-" in (sign, inner)
    return _Cell(body, negative, percent is not None, before or after or "")


@lru_cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """What may be written in a format, without sign and decoration."""
    whole = "0|[1-9][0-9]*"
    if thousands:
        mark = re.escape(thousands)
        whole += rf"|[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+"
    if thousands == ",":  # 12,34,567
        whole += "|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"
    point = re.escape(decimal)
    return re.compile(rf"(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _most_read(shapes: Counter[str], example: dict[str, _Cell]) -> tuple[NumberFormat, list[str]]:
    """The format that reads most cells, and whether another one would do; a cell per shape."""
    read = [
        {shape for shape in shapes if _pattern(f.decimal, f.thousands).fullmatch(shape)}
        for f in _CANDIDATES
    ]
    totals = [sum(shapes[shape] for shape in found) for found in read]
    best = int(np.argmax(totals))  # the first of the largest
    format = _CANDIDATES[best]
    rivals = [i for i, total in enumerate(totals) if i != best and total == totals[best] > 0]
    for other in rivals if format != PLAIN else ():  # the plain way needs no excuse
        for shape in (s for s in shapes if s in read[best] and s in read[other]):
            cell = example[shape]
            value, rival = _parse(cell, format), _parse(cell, _CANDIDATES[other])
            if value != rival:
                return format, [
                    f"{show(cell.body)} could be {value:g} or {rival:g}, and no other cell tells: "
                    f"taken as {value:g}; write numbers without a thousands mark to be understood"
                ]
    return format, []
