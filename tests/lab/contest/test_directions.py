"""Scores by the share of arcs that tell by direction: what is said and drawn of records."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, pstdev

import pytest
from cli.program import Program
from made_up_contest import whole, write_entries

from lab.contest.directions import ASKED, LEAGUE, SHARES, curves, share_lines
from lab.contest.entries import Entry
from lab.contest.figures import direction_figure

EVEN = [0.5 + split / 100 for split in range(10)]


def scores(name: str, share: int, gain: float, wobble: float = 0.0) -> list[Entry]:
    """Test scores that are ``gain`` higher than even ones, now more and now less."""
    tests = [value + gain + wobble * (-1) ** k for k, value in enumerate(EVEN)]
    return whole(name, tests, dataset=f"directed-communities-{share}", league="directions")


RECORDS = [
    *scores("csnn", 0, 0.0, wobble=0.02),
    *scores("csnn-both-ways", 0, 0.0),
    *scores("csnn", 75, -0.3),
    *scores("csnn-both-ways", 75, 0.0),
    *scores("csnn", 100, 0.4, wobble=0.01),
    *scores("csnn-both-ways", 100, 0.0),
]


def test_all_data_of_the_league_is_a_share_and_all_asked_compete() -> None:
    assert list(SHARES.values()) == [0, 25, 50, 75, 100]
    for first, second, _ in ASKED:
        assert {first, second} <= set(LEAGUE.contestants)


def test_every_verdict_is_said_with_its_shares() -> None:
    said = share_lines(RECORDS)
    assert (
        "csnn against csnn-both-ways (the same network on arcs both ways): better at 100 %, "
        "worse at 75 %, undecided at 0 %, not measured yet at 25 and 50 %." in said
    )
    assert "(the same diffusion without phases, on arcs both ways): not measured yet.\n" in said
    assert "| 100 % | +40.00 ± " in said
    assert "| 75 % | -30.00 ± " in said
    assert "| 25 %" not in said


def test_nothing_is_said_before_there_are_records() -> None:
    assert share_lines([]).count("not measured yet.\n") == len(ASKED)
    assert "|" not in share_lines([])


def test_curves_are_means_and_deviations_of_who_has_finished() -> None:
    unfinished = scores("dsnn", 50, 0.0)[:-1]
    found = curves([*RECORDS, *unfinished])
    assert set(found) == {"csnn", "csnn-both-ways"}
    assert [share for share, _, _ in found["csnn"]] == [0, 75, 100]
    share, *measured = found["csnn-both-ways"][0]
    assert share == 0
    assert measured == pytest.approx([fmean(EVEN), pstdev(EVEN)])


def test_the_figure_shows_them_in_per_cent() -> None:
    axes = direction_figure(RECORDS).axes[0]
    lines = {bar.get_label(): bar.lines[0] for bar in axes.containers}  # type: ignore[attr-defined]
    assert list(lines) == ["csnn", "csnn-both-ways"]
    assert list(lines["csnn"].get_xdata()) == [0, 75, 100]
    assert list(lines["csnn"].get_ydata()) == pytest.approx([54.5, 24.5, 94.5])


def test_it_is_drawn_by_the_command(laboratory: Program) -> None:
    said = laboratory("contest", "--league", "directions", "--report", "--figure", "a.svg").error
    assert "--figure needs a contestant of the league directions that has finished" in said
    write_entries(Path("results/contest"), RECORDS)
    words = ("contest", "--league", "directions", "--report", "--figure")
    assert "figure: a.svg" in laboratory(*words, "a.svg").out
    assert Path("a.svg").read_text("utf-8").lstrip().startswith("<?xml")
    assert "--figure must end in .svg" in laboratory(*words, "a.txt").error
    other = laboratory("contest", "--league", "sheaves", "--report", "--figure", "b.svg").error
    assert "--figure is drawn of --league directions" in other
