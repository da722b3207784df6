"""Tables and lines from made-up records: what they say is what the numbers say."""

from __future__ import annotations

import pytest
from made_up_contest import BUDGET, entry, finished, league

from lab.contest.entries import Entry, standings
from lab.contest.plan import LEAGUES, PUBLISHED
from lab.contest.tables import (
    BEST,
    budget_table,
    common_sets,
    contest_places,
    csnn_against_best,
    csnn_lines,
    league_table,
    mean_ranks,
    missing,
    published_table,
    ranks_as_one,
    shared_table,
    space_table,
    verdict,
)

HIGH, LOW, NOISY = [0.8, 0.81, 0.82, 0.83], [0.6, 0.61, 0.62, 0.63], [0.9, 0.5, 0.95, 0.85]


def line(entries: list[Entry]) -> str:
    return csnn_lines(league(texas=BUDGET), entries).splitlines()[-1]


def test_csnn_is_better() -> None:
    said = line(finished("csnn", HIGH) + finished("mlp", LOW))
    assert said == (
        "- texas: CSNN is better than the best rival (csnn against mlp, +20.00 ± 0.00 over 4"
        " splits)."
    )


def test_csnn_is_worse() -> None:
    said = line(finished("csnn", LOW) + finished("mlp", HIGH))
    assert "texas: CSNN is worse than the best rival (csnn against mlp, -20.00" in said


def test_csnn_is_undecided() -> None:
    said = line(finished("csnn", HIGH) + finished("mlp", NOISY))
    assert "texas: CSNN is undecided: the interval holds zero" in said


def test_csnn_is_not_compared_yet() -> None:
    said = line(finished("csnn", HIGH) + finished("mlp", LOW)[:-1])
    assert said == "- texas: CSNN is not compared yet: not enough has been run."


def test_validation_chooses_the_option_and_the_rival() -> None:
    """The messages have the best test scores and the poorer validation: they are not shown."""
    entries = finished("csnn", LOW, 0.7) + finished("csnn-messages", HIGH, 0.6)
    entries += finished("mlp", HIGH, 0.4) + finished("gcn", LOW, 0.5)
    (found,) = csnn_against_best(league(texas=BUDGET), entries)
    assert (found.first, found.second) == ("csnn", "gcn")
    assert found.source == "made-up: best of 2 against best of 2"
    assert found.paired.mean == pytest.approx(0)


def test_the_table_has_scores_and_how_far_the_others_are() -> None:
    entries = finished("csnn", HIGH) + finished("mlp", LOW) + finished("gcn", LOW)[:2]
    entries += finished("csnn-messages", HIGH)[:-1]
    table = league_table(league(texas=BUDGET), entries)
    assert f"| *{BEST}* | – | 1.00 | 81.50 ± 1.12 |" in table
    assert "| csnn | 1.00 | – | **81.50 ± 1.12** |" in table
    assert "| mlp | 2.00 | 2.00 | 61.50 ± 1.12 |" in table
    assert "| gcn | – | – | 1 of 2 trials |" in table
    assert "| csnn-messages | – | – | searched; final runs missing |" in table
    assert "Ranks are means over texas;" in table


def test_ranks_are_over_what_all_have() -> None:
    both = finished("csnn", HIGH) + finished("csnn", LOW, dataset="film")
    entries = both + finished("mlp", HIGH)
    found = standings(league(), entries)
    assert common_sets(found) == ["texas"]
    assert mean_ranks(found) == {"csnn": 1.5, "mlp": 1.5}  # equals share their places
    found = standings(league(), entries + finished("mlp", HIGH, dataset="film"))
    assert mean_ranks(found) == {"csnn": 1.75, "mlp": 1.25}


def test_the_best_option_is_chosen_by_validation_on_every_data_set() -> None:
    """Another option on either data set; one by one none of them is first on both."""
    entries = finished("csnn", HIGH, 0.7) + finished("csnn-messages", LOW, 0.6)
    entries += finished("csnn", LOW, 0.6, "film") + finished("csnn-messages", HIGH, 0.7, "film")
    rival = [0.7, 0.71, 0.72, 0.73]
    entries += finished("mlp", rival) + finished("mlp", rival, dataset="film")
    found = standings(league(), entries)
    assert mean_ranks(found) == {"csnn": 2.0, "csnn-messages": 2.0, "mlp": 2.0}
    assert ranks_as_one(found) == {BEST: 1.0, "mlp": 2.0}
    assert f"| *{BEST}* | – | 1.00 | 81.50 ± 1.12 | 81.50 ± 1.12 |" in league_table(
        league(), entries
    )
    assert verdict(league(), entries) == (
        f"{BEST} is nowhere worse than the best rival with significance (2 data sets compared)."
        " Its mean rank is the best of all: 1.00 of 2, before mlp with 2.00."
    )


def test_a_better_test_score_chooses_no_option() -> None:
    entries = finished("csnn", LOW, 0.7) + finished("csnn-messages", [0.99] * 4, 0.6)
    entries += finished("mlp", HIGH) + finished("gcn", HIGH, 0.4)
    text = verdict(league(texas=BUDGET), entries)
    assert text == (
        f"{BEST} is worse than the best rival with significance on texas (1 data set compared)."
        " Its mean rank, 3.00 of 3, is not the best: gcn with 1.50."
    )


def test_what_is_not_compared_is_counted() -> None:
    entries = finished("csnn", HIGH) + finished("mlp", LOW)
    text = verdict(league(), entries)
    assert "1 of 2 are not compared yet." in text
    assert verdict(league(), finished("csnn", HIGH)).endswith("not enough has been run.")
    equal = finished("csnn", HIGH) + finished("mlp", HIGH)
    assert verdict(league(), equal).endswith("is shared by mlp with 1.50.")


def test_nothing_at_all_is_said() -> None:
    assert league_table(league(), []) == "Nothing has been run yet.\n"
    assert "There are no ranks yet" in league_table(league(), finished("csnn", HIGH)[:1])


def test_what_is_missing_has_a_command() -> None:
    text = missing(league(texas=BUDGET), finished("csnn", HIGH))
    wanted = "--league made-up --datasets texas --models csnn-messages mlp gcn`"
    assert wanted in text
    assert "| everybody | `python -m lab contest --league made-up" in missing(league(), [])
    everybody = [one for name in league().contestants for one in finished(name, HIGH)]
    assert missing(league(texas=BUDGET), everybody).startswith("Nothing")


def test_published_settings_are_in_no_search() -> None:
    runs = [entry("csnn", PUBLISHED, split, 0.99, 0.9) for split in range(4)]
    some = league(published=True, texas=BUDGET)
    assert "| csnn | 90.00 ± 0.00 |" in published_table(some, runs)
    assert "(3 splits)" in published_table(some, runs[:3])
    assert standings(some, runs)["csnn", "texas"].chosen is None


def test_a_trial_that_never_succeeds_is_said() -> None:
    runs = [entry("csnn", t, s, None, None, trouble="loss") for t in (0, 1) for s in (0, 1)]
    assert "no trial succeeded" in league_table(league(texas=BUDGET), runs)


def test_budgets_and_spaces_are_those_of_the_plan() -> None:
    table = budget_table(LEAGUES["heterophily"])
    assert "| texas | 20 | splits 0-9 | splits 0-9 |" in table
    assert "| cornell5 | those of johns-hopkins55 | – | splits 0-4 |" in table
    table = space_table(LEAGUES["sheaves"])
    assert "`model.stalk_dim`: 2, 3, 4" in table
    [row] = [line for line in table.splitlines() if line.startswith("| nlsd ")]
    assert "`model.phi`" in row
    assert "add_lp" not in row  # drawn for all of the family, and nothing that it has
    assert "| `train.lr` | 0.003, 0.01, 0.03 |" in shared_table()


def test_every_league_has_its_places() -> None:
    places = contest_places([])
    for name in LEAGUES:
        assert {f"contest-{name}-{part}" for part in ("budget", "scores", "csnn")} <= set(places)
