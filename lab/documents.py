"""Places in a document that are written from records. Imports no PyTorch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from coopsheaf.files import write_atomically

_BEGIN = re.compile(r"<!-- ([a-z0-9-]+): begin -->")


def find_places(text: str) -> list[str]:
    """The names of the places of a document, in their order."""
    return _BEGIN.findall(text)


def fill_document(text: str, place: str, content: str) -> str:
    """A document with something else between the two markers of a place."""
    begin, end = f"<!-- {place}: begin -->", f"<!-- {place}: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if text.count(begin) != 1 or rest.count(end) != 1:
        raise ValueError(f"the document must hold the markers {begin} and {end}, once each")
    return f"{before}{begin}\n{content}{end}{after}"


def fill_files(documents: Iterable[Path], contents: Mapping[str, str]) -> dict[Path, list[str]]:
    """Write documents again with what belongs in their places, all of them or none.

    Returns the places that were written, for each document. A place that is not in ``contents`` is
    left as it is; a document without any is an error.
    """
    texts, filled = {}, {}
    for document in documents:
        try:
            text = document.read_bytes().decode()
            places = [place for place in find_places(text) if place in contents]
            for place in places:
                text = fill_document(text, place, contents[place])
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{document}: cannot be read ({error})") from None
        except ValueError as error:
            raise ValueError(f"{document}: {error}") from None
        if not places:
            raise ValueError(
                f"{document}: must hold a line `<!-- NAME: begin -->` and one with `end`, "
                f"where NAME is one of {', '.join(contents)}"
            )
        texts[document], filled[document] = text, places
    for document, text in texts.items():
        write_atomically(document, text.encode())
    return filled
