"""The plan is still that of the records: what has been run was drawn as it is drawn now."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from coopsheaf.train.recipe import Recipe
from coopsheaf.train.records import read_lines
from lab.contest.directions import PLACE
from lab.contest.entries import Entry
from lab.contest.pages import contents
from lab.contest.plan import LEAGUES, PUBLISHED
from lab.contest.tables import contest_places
from lab.documents import fill_document, find_places

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "results" / "contest").glob("*/*.jsonl"))


@cache
def drawn(league: str, contestant: str, trial: int, dataset: str) -> Recipe:
    return LEAGUES[league].contestants[contestant].recipe(trial, dataset)


@cache
def settings(league: str, contestant: str, trial: int) -> list[str]:
    return list(LEAGUES[league].contestants[contestant].settings(trial))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_recorded_trials_are_those_of_the_plan(file: Path) -> None:
    for entry in read_lines(Entry, [file]):
        budget = LEAGUES[entry.league].budgets[entry.dataset]
        assert (file.parent.name, file.stem) == (
            entry.league,
            f"{entry.contestant}-{entry.dataset}",
        )
        assert entry.split in budget.final
        recipe = drawn(entry.league, entry.contestant, entry.trial, entry.dataset)
        assert (entry.model, entry.seed) == (recipe.model_name, recipe.train.seed)
        assert entry.config_hash == recipe.hash()
        if entry.trial != PUBLISHED:
            assert entry.trial < budget.trials
            assert entry.settings == settings(entry.league, entry.contestant, entry.trial)


def test_the_page_has_a_place_for_everything() -> None:
    page = (ROOT / "docs" / "contest.md").read_text("utf-8")
    assert set(find_places(page)) == {*contest_places([]), PLACE}


@pytest.mark.parametrize("page", ["contest.md", "questions.md", "csnn-options.md"])
def test_the_pages_are_those_of_the_committed_records(page: str) -> None:
    """What ``python -m lab contest --report --document PAGES`` writes."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    found = contents(ROOT / "results")
    places = [place for place in find_places(text) if place in found]
    assert places
    for place in places:
        assert fill_document(text, place, found[place]) == text, place
