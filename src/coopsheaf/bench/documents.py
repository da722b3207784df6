"""Places in a document that are written from records. Imports no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from coopsheaf.files import write_atomically

_BEGIN = re.compile(r"<!-- ([a-z0-9-]+): begin -->")


def find_places(text: str) -> list[str]:
    """The names of the places of a document, in their order."""
    return _BEGIN.findall(text)


def fill_document(text: str, place: str, content: str) -> str:
    """A document with something else between the two markers of a place."""
    begin, end = f"<!-- {place}: begin -->", f"<!-- {place}: end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the document must hold the markers {begin} and {end}")
    return f"{before}{begin}\n{content}{end}{after}"


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


def fill_file(document: Path, contents: Mapping[str, str]) -> None:
    """Write a document again with what belongs in some of its places."""
    text = document.read_text(encoding="utf-8")
    for place, content in contents.items():
        text = fill_document(text, place, content)
    write_atomically(document, text.encode())
