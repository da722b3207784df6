"""Words that a cell may have instead of a value, and the plain way to write a number."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

# Exactly these: "none" may be a kind of damage and "na" a syllable, "None" and "NA" are neither.
MISSING = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "NaT", "null", "NULL", "None"}
    | {"-", "?"}
)
# A number as programs write it. Leading zeros make a code of it, such as a postal one.
PLAIN_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*|(?=\.[0-9]))(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value; spaces around do not matter."""
    return text.strip() in MISSING


def plain_number(text: str) -> float | None:
    """The number a cell states in the plain way; ``None`` if it does not, or is not finite."""
    text = text.strip()  # of separators such as \x1f, too, which `float` does not leave out
    if PLAIN_NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    return value if abs(value) != float("inf") else None


def plain_numbers(texts: list[str]) -> NDArray[np.float64] | None:
    """``(len,)`` numbers, NaN where missing; ``None`` unless every text is one or missing."""
    numbers = np.empty(len(texts))
    for row, text in enumerate(texts):
        value = plain_number(text)
        if value is None:
            if not is_missing(text):
                return None
            value = np.nan
        numbers[row] = value
    return numbers
