"""Text that goes into tables. Imports no PyTorch."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def one_line(text: str) -> str:
    """Without line breaks and other control characters, which no table can hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def escape_markdown(text: str) -> str:
    """A name that a user typed, so that it is read as it stands."""
    escaped = html.escape(one_line(text), quote=False)
    for character in "\\|*_`[]~#!":
        escaped = escaped.replace(character, "\\" + character)
    return escaped


def markdown_table(head: str, rows: Iterable[Sequence[str]], align: str) -> str:
    """A table in Markdown.

    Args:
        head: the headings, with `` | `` between them.
        rows: the cells.
        align: ``l`` or ``r`` for each column.
    """
    rules = "|".join("---:" if side == "r" else "---" for side in align)
    lines = [f"| {head} |", f"|{rules}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"
