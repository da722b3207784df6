"""Checks of plain arguments: each error names the argument, the rule and the value it got."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


def check_choice(argument: str, value: str, choices: Mapping[str, T]) -> T:
    """Look ``value`` up in ``choices``; the error lists what there is."""
    if not isinstance(value, str) or value not in choices:
        names = ", ".join(repr(name) for name in choices)
        hint = did_you_mean(value, choices)
        raise ValueError(f"`{argument}` must be one of {names}; got {_brief(value)}{hint}")
    return choices[value]


def _brief(value: object) -> str:
    """A value in a message, which may come from a file of any size."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


def did_you_mean(name: object, choices: Iterable[str], most: int = 1) -> str:
    """`` (did you mean 'texas'?)``, or nothing; case, ``-``, ``_`` and spaces do not matter."""
    folded: dict[str, str] = {}
    for choice in choices:
        folded.setdefault(_fold(choice), choice)
    close = difflib.get_close_matches(_fold(str(name)[:100]), folded, n=most)
    words = " or ".join(repr(folded[match]) for match in close)
    return f" (did you mean {words}?)" if words else ""


def _fold(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


def check_int(argument: str, value: int, *, minimum: int) -> int:
    """A whole number (not a bool) of at least ``minimum``."""
    try:
        number = operator.index(value)  # also takes NumPy's integers
    except TypeError:
        number = minimum - 1
    if isinstance(value, bool) or number < minimum:
        raise ValueError(f"`{argument}` must be an integer of at least {minimum}; got {value!r}")
    return number


def check_probability(argument: str, value: float) -> float:
    """A number in [0, 1)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise ValueError(f"`{argument}` must be a number in [0, 1); got {value!r}")
    return float(value)
