"""All places of the pages that are written from records."""

from __future__ import annotations

from pathlib import Path

from lab.contest.directions import PLACE, share_lines
from lab.contest.entries import read_entries
from lab.contest.questions import Evidence, diagonal, question_places
from lab.contest.tables import contest_places

WHY_PLACE = "paper-or-messages"  # of docs/csnn-options.md


def contents(results: Path) -> dict[str, str]:
    """What belongs in each place, by its name."""
    entries = read_entries(results / "contest")
    answers = question_places(results) | {WHY_PLACE: why(results)}
    return {**contest_places(entries), PLACE: share_lines(entries), **answers}


def why(results: Path) -> str:
    """What is known of messages against the paper's operator, for ``docs/csnn-options.md``."""
    return f"{diagonal(Evidence(results)).sentence}\n"
