"""The one error of the data room."""

from __future__ import annotations


class DataError(ValueError):
    """A file or table that cannot be used: one line that names it, the rule and what to do."""
