"""A contest is run in slices: nothing twice, nothing of the plan left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli.program import Program
from made_up_contest import whole, write_entries

from lab.contest import running
from lab.contest.entries import read_entries
from lab.contest.plan import Budget, Contestant, League
from lab.contest.running import Contest, deadline, make_runs

SHORT = ("train.epochs=2",)
SMALL = Contestant("gcn-plain", "gcn-plain", fixed=SHORT)
DATA = "directed-communities-50"
LEAGUE = League("small", "", {"gcn-plain": SMALL}, {DATA: Budget(2, (0, 1), (0, 1, 2))})


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The splits of every pass that is made."""
    made: list[tuple[int, ...]] = []

    def counted(recipe: Any, dataset: Any, splits: Any) -> Any:
        made.append(tuple(splits))
        return make_runs(recipe, dataset, splits)

    monkeypatch.setattr(running, "make_runs", counted)
    return made


def test_the_search_and_then_the_chosen_trial(tmp_path: Path, passes: list[Any]) -> None:
    entries = list(Contest(LEAGUE, tmp_path).run(["gcn-plain"], [DATA]))
    assert passes == [(0, 1), (0, 1), (2,)]
    assert [(one.trial, one.split) for one in entries[:4]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert read_entries(tmp_path) == entries
    assert {one.together for one in entries} == {0, 2}
    assert {one.alone for one in entries} == {""}
    for one in entries:
        assert one.val is not None
        assert one.epochs == 2
        assert one.versions
        assert one.config_hash == SMALL.recipe(one.trial, DATA).hash()


def test_what_is_recorded_is_not_run_again(tmp_path: Path, passes: list[Any]) -> None:
    """A slice that ends after the first pass, and another one."""
    first = Contest(LEAGUE, tmp_path, lambda: bool(passes))
    assert len(list(first.run(["gcn-plain"], [DATA]))) == 2
    list(Contest(LEAGUE, tmp_path).run(["gcn-plain"], [DATA]))
    assert passes == [(0, 1), (0, 1), (2,)]
    assert list(Contest(LEAGUE, tmp_path).run(["gcn-plain"], [DATA])) == []


def test_other_leagues_are_not_run_again(tmp_path: Path, passes: list[Any]) -> None:
    list(Contest(LEAGUE, tmp_path).run(["gcn-plain"], [DATA]))
    passes.clear()
    other = replace(LEAGUE, name="other")
    found = list(Contest(other, tmp_path).run(["gcn-plain"], [DATA]))
    assert passes == []
    assert {one.league for one in found} == {"other"}
    assert len(found) == 5


def test_what_cannot_be_trained_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise ValueError("the loss is\nnot finite")

    monkeypatch.setattr(running, "run_together", broken)
    monkeypatch.setattr(running, "run_split", broken)
    made = make_runs(None, None, [0, 3])  # type: ignore[arg-type]
    assert [(one.split, one.run, one.trouble) for one in made] == [
        (0, None, "the loss is not finite"),
        (3, None, "the loss is not finite"),
    ]


def test_what_cannot_share_a_pass_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is trained one by one, and the record has the reason."""

    def refused(*arguments: Any) -> Any:
        raise ValueError("gcn-plain cannot be trained\ntogether (a reason)")

    monkeypatch.setattr(running, "run_together", refused)
    entries = list(Contest(LEAGUE, tmp_path).run(["gcn-plain"], [DATA]))
    first, last = entries[:4], entries[4:]
    assert {one.alone for one in first} == {"gcn-plain cannot be trained together (a reason)"}
    assert [one.alone for one in last] == [""]  # one split was left: there was nobody to share with
    assert all(one.val is not None and one.together == 0 for one in entries)
    assert read_entries(tmp_path) == entries


def test_a_deadline_is_asked_for() -> None:
    assert not deadline(None)()
    assert not deadline(5)()
    assert deadline(0)()


def test_wrong_words_are_one_line(laboratory: Program) -> None:
    for words, said in (
        (["--league", "none"], "--league"),
        (["--models", "none"], "--models"),
        (["--datasets", "none"], "--datasets"),
        (["--minutes", "0"], "--minutes must be positive; got 0"),
    ):
        done = laboratory("contest", *words)
        assert done.code != 0
        assert said in done.error


def test_plan_and_report_train_nothing(laboratory: Program) -> None:
    done = laboratory("contest", "--plan", "--models", "csnn")
    assert "csnn, trial 19: train.optimizer=adam" in done.out
    assert "Nothing has been run yet" in laboratory("contest", "--report").out


def test_documents_are_written_from_records(laboratory: Program) -> None:
    Path("page.md").write_text(
        "<!-- contest-sheaves-csnn: begin -->\n<!-- contest-sheaves-csnn: end -->\n"
        "<!-- answer-maps: begin -->\n<!-- answer-maps: end -->\n"
    )
    for name, start in (("csnn", 0.8), ("mlp", 0.7), ("csnn-identity", 0.6)):
        tests = [start + split / 100 for split in range(10)]
        write_entries(Path("results/contest"), whole(name, tests, start))
    done = laboratory("contest", "--report", "--document", "page.md")
    assert "page.md: contest-sheaves-csnn, answer-maps" in done.out
    text = Path("page.md").read_text()
    assert "texas: CSNN is better than the best rival (csnn against mlp" in text
    assert "Each with what an equal search chose: Yes, on texas" in text
