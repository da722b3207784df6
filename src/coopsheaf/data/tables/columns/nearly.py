"""When a column is of a kind though a few of its cells are not."""

from __future__ import annotations

# What a text can be for a reader of numbers or times.
GOOD, MISSING_CELL, ODD = 0, 1, 2

SHARE = 0.9  # of the filled cells must be good; so if any is not, nine others are


def nearly_all(good: int, filled: int) -> bool:
    """Whether a column of so many filled cells is of the kind that so many of them are."""
    return good > 0 and good >= SHARE * filled
