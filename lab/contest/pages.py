"""All places of the two pages that are written from records."""

from __future__ import annotations

from pathlib import Path

from lab.contest.directions import PLACE, share_lines
from lab.contest.entries import read_entries
from lab.contest.questions import question_places
from lab.contest.tables import contest_places


def contents(results: Path) -> dict[str, str]:
    """What belongs in each place, by its name."""
    entries = read_entries(results / "contest")
    return {**contest_places(entries), PLACE: share_lines(entries), **question_places(results)}
