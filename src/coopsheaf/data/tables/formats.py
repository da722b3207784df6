"""How people write numbers, truth values and dates.

A column is read as a whole: which mark is the decimal one is decided from all of its cells, and
the format that was found can be stored and applied unchanged to a later table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopsheaf.data.messages import show, show_list
from coopsheaf.data.tables.cells import Cells, NumberCells
from coopsheaf.data.tables.dates import Times, read_times
from coopsheaf.data.tables.nearly import GOOD, MISSING_CELL, ODD
from coopsheaf.data.tables.words import is_missing, plain_number

__all__ = ["NumberFormat", "Numbers", "Times", "read_numbers", "read_times", "read_truths"]

# What a text can be, beside a number, a gap (MISSING_CELL) or nothing known (ODD).
CODE = 3  # digits with a leading zero, such as a postal code
INFINITE = 4

DECIMAL_MARKS = (".", ",")
THOUSANDS_MARKS = ("", ",", ".", " ", "'")
MAX_LENGTH = 64  # of a number that is not written in the plain way

_TRUE = frozenset({"true", "yes", "y", "t", "on"})
_FALSE = frozenset({"false", "no", "n", "f", "off"})
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
    # Numbers that came as numbers have no format; texts have the plain one, or none at all.
    typed = isinstance(cells, NumberCells) or format is None or format.decimal == "."
    if typed and cells.numbers is not None:
        return Numbers(cells.numbers, np.empty(0, dtype=np.int64), format or PLAIN)
    codes, texts = cells.distinct
    remarks: tuple[str, ...] = ()
    if format is None:
        format, remarks = decide_format(texts, np.bincount(codes, minlength=len(texts)))
    reading = parse_numbers(texts, format)
    if isinstance(cells, NumberCells):  # some are infinite; the others are not texts
        reading = parse_numbers(texts, PLAIN)
    odd = np.flatnonzero((reading.kinds != GOOD) & (reading.kinds != MISSING_CELL))
    rows = np.flatnonzero(np.isin(codes, odd)) if len(odd) else np.empty(0, dtype=np.int64)
    return Numbers(reading.values[codes], rows, format, remarks)


def read_truths(cells: Cells) -> NDArray[np.float64] | None:
    """``(rows,)`` 0 or 1, NaN where missing; ``None`` unless every filled cell is a truth word.

    The words are true, yes, y, t, on and false, no, n, f, off, in any case.
    """
    codes, texts = cells.distinct
    found = np.full(len(texts), np.nan)
    for at, text in enumerate(texts):
        value = _truth(text)
        if value is not None:
            found[at] = value
        elif not is_missing(text):
            return None
    return None if np.isnan(found).all() else found[codes]


def decide_format(
    texts: Sequence[str], counts: NDArray[np.int64]
) -> tuple[NumberFormat, tuple[str, ...]]:
    """The format that most cells are written in, and what to say about it.

    Args:
        texts: the different ones.
        counts: ``(texts,)`` how often each occurs; those with 0 say nothing.
    """
    shapes: Counter[str] = Counter()
    example: dict[str, str] = {}
    currencies: dict[str, None] = {}
    percent = other = 0
    for text, count in zip(texts, counts.tolist(), strict=True):
        cell = _undress(text) if count else None
        if cell is None:
            continue
        shape = cell.body[0] + cell.body[1:].translate(_SHAPE)
        shape = shape if shape[0] == "0" else shape.translate(_SHAPE)
        shapes[shape] += count
        example.setdefault(shape, text)
        if cell.currency:
            currencies.setdefault(cell.currency)
        percent += count * cell.percent
        other += count * (not cell.percent and cell.body.strip("0.,") != "")
    best, remarks = _most_read(shapes, example)
    if len(currencies) > 1:
        remarks.append(f"amounts in several currencies ({show_list(currencies)}) are not converted")
    if percent and other:
        remarks.append(f"{percent} cells have a % sign and {other} have none: only those are / 100")
    return best, tuple(remarks)


def parse_numbers(texts: Sequence[str], format: NumberFormat) -> Reading:
    """Texts as numbers of one format, and what each text is."""
    values = np.full(len(texts), np.nan)
    kinds = np.full(len(texts), ODD, dtype=np.int8)
    for at, text in enumerate(texts):
        value = _parse(text, format)
        if value is not None:
            finite = abs(value) != float("inf") and value == value
            kinds[at] = GOOD if finite else INFINITE
            values[at] = value if finite else np.nan
        elif is_missing(text):
            kinds[at] = MISSING_CELL
        elif text.strip().lstrip("+-").lower() in _INFINITE:
            kinds[at] = INFINITE
        elif _is_code(text):
            kinds[at] = CODE
    return Reading(values, kinds)


class _Cell(NamedTuple):
    body: str
    negative: bool
    percent: bool
    currency: str


def _parse(text: str, format: NumberFormat) -> float | None:
    """The number, which may be infinite; ``None`` if the text is none in this format."""
    if format.decimal == ".":
        value = plain_number(text)
        if value is not None:
            return value
    if format.truths:
        truth = _truth(text)
        if truth is not None:
            return truth
    if format.zeros:
        return None if is_missing(text) else _as_python(text)
    cell = _undress(text)
    if cell is None or _pattern(format.decimal, format.thousands).fullmatch(cell.body) is None:
        return None
    body = cell.body.replace(format.thousands, "") if format.thousands else cell.body
    value = float(body.replace(format.decimal, "."))
    value = value / 100 if cell.percent else value
    return -value if cell.negative else value


def _as_python(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _truth(text: str) -> float | None:
    word = text.strip().lower()
    return 1.0 if word in _TRUE else 0.0 if word in _FALSE else None


def _undress(text: str) -> _Cell | None:
    """The digits and marks of a number, without sign, currency, per cent and brackets."""
    text = text.strip()
    if not text or len(text) > MAX_LENGTH:
        return None
    text = text.translate(_SAME)
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


def _is_code(text: str) -> bool:
    cell = _undress(text)
    return (
        cell is not None and len(cell.body) > 1 and cell.body[0] == "0" and cell.body[1].isdigit()
    )


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


def _most_read(shapes: Counter[str], example: dict[str, str]) -> tuple[NumberFormat, list[str]]:
    """The format that reads most cells; ``shapes`` are numbers whose digits do not matter."""
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
            if _parse(shape, format) != _parse(shape, _CANDIDATES[other]):
                text = example[shape]
                value = _parse(text, format)
                return format, [
                    f"{show(text)} could be {value:g} or {_parse(text, _CANDIDATES[other]):g}, and "
                    f"no other cell tells: taken as {value:g}; write numbers without a thousands "
                    "mark to be understood"
                ]
    return format, []
