"""Records are read as they were written, and validation alone chooses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from made_up_contest import BUDGET, entry, finished, league

from coopsheaf.train.records import Record
from lab.contest.entries import append_entry, from_record, read_entries, standings


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    some = [entry("csnn", 0, 0, 0.5, 0.4), entry("csnn", 0, 1, None, None, trouble="diverged")]
    for one in some:
        append_entry(tmp_path, one)
    assert read_entries(tmp_path) == some
    assert [file.name for file in tmp_path.glob("made-up/*.jsonl")] == ["csnn-texas.jsonl"]


def test_nothing_is_chosen_before_all_trials_are_recorded() -> None:
    runs = finished("csnn", [0.7, 0.7, 0.7, 0.7])
    some = standings(league(), runs[1:])["csnn", "texas"]
    assert some.whole_trials == [1]
    assert some.chosen is None
    assert not some.done
    assert some.tests == {}


def test_validation_chooses_whatever_the_test_scores_are() -> None:
    standing = standings(league(), finished("csnn", [0.7, 0.6, 0.5, 0.4]))["csnn", "texas"]
    assert standing.chosen == 1
    assert standing.done
    assert standing.tests == {0: 0.7, 1: 0.6, 2: 0.5, 3: 0.4}
    assert standing.validation == 0.5


def test_the_first_of_equal_trials_is_chosen() -> None:
    runs = [entry("csnn", trial, split, 0.5, 0.1) for trial in (1, 0) for split in (0, 1)]
    assert standings(league(), runs)["csnn", "texas"].chosen == 0


def test_a_trial_that_came_to_nothing_on_one_split_is_not_chosen() -> None:
    runs = finished("csnn", [0.7, 0.7, 0.7, 0.7])
    broken = replace(runs[2], val=None, test=None, trouble="diverged")
    standing = standings(league(), [*runs[:2], broken, *runs[3:]])["csnn", "texas"]
    assert standing.worth(1) == -math.inf
    assert standing.chosen == 0
    assert len(standing.troubles) == 1


def test_of_a_run_that_was_recorded_twice_the_first_counts() -> None:
    runs = finished("csnn", [0.7] * 4) + finished("csnn", [0.1] * 4)
    assert standings(league(), runs)["csnn", "texas"].tests == dict.fromkeys(range(4), 0.7)


def test_settings_are_taken_over() -> None:
    over = replace(BUDGET, takes_over="texas")
    some = league(film=over, texas=BUDGET)
    found = standings(some, finished("csnn", [0.7] * 4))
    assert found["csnn", "film"].chosen == 1
    assert not found["csnn", "film"].done
    assert found["mlp", "film"].chosen is None


def test_errors_are_better_where_they_are_smaller() -> None:
    runs = [replace(run, metric="mae") for run in finished("csnn", [0.7] * 4)]
    assert standings(league(), runs)["csnn", "texas"].chosen == 0


def test_the_record_of_a_bench_is_the_same_run() -> None:
    record = Record("csnn", "texas", 3, 43, "paper", "accuracy", 0.5, 0.4, 7, "abc")
    one = from_record(record)
    assert (one.split, one.seed, one.val, one.test, one.config_hash) == (3, 43, 0.5, 0.4, "abc")
    assert one.same == replace(one, league="x", contestant="y", trial=3).same
    assert one.same != replace(one, split=4).same
