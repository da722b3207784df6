"""Values, names and paths as they appear in messages: on one line, and short."""

from __future__ import annotations

from collections.abc import Iterable


def show(value: object, limit: int = 40) -> str:
    """A value for an error message: quoted, escaped to one line, cut when long."""
    if isinstance(value, str):
        part = value[:limit]
        while len(repr(part)) > 2 * limit:  # what is not printable grows as it is escaped
            part = part[: len(part) // 2]
        if part != value:
            return f"{part!r}... ({len(value)} characters)"
    return repr(value)


def show_list(values: Iterable[str], limit: int = 10) -> str:
    """The first few of several names, for an error message."""
    names = list(values)
    shown = ", ".join(show(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def show_path(path: object) -> str:
    """A file name as the user wrote it, unless it would break the line."""
    text = str(path)
    return text if text.isprintable() else repr(text)
