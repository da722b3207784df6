"""Questions: what is said follows from the numbers, also when the answer is no."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up_contest import entry, finished, whole, write_entries

from coopsheaf.report.paired import Paired
from coopsheaf.train.records import Record, append_record
from lab.contest.depth import matched_depths, matched_table
from lab.contest.entries import Entry
from lab.contest.plan import LEAGUES
from lab.contest.questions import (
    ASKED,
    Evidence,
    contest_findings,
    directed_findings,
    hops,
    is_normal,
    maps,
    non_normal,
    question_places,
    stable,
)
from lab.contest.sentences import Finding, conclusion, finding_table
from lab.contest.sentences import test_per_train as per_train

UP, DOWN, SAME = (0.8, 0.81, 0.82), (0.6, 0.61, 0.62), (0.9, 0.5, 0.95)


def finding(first: tuple[float, ...], second: tuple[float, ...], dataset: str) -> Finding:
    return Finding(dataset, "accuracy", "a", "b", Paired(first, second), "made up")


def test_yes() -> None:
    said = conclusion([finding(UP, DOWN, "texas"), finding(UP, SAME, "film")], "it")
    assert said.startswith("Yes, on texas: there it is better, and nowhere worse.")


def test_no() -> None:
    said = conclusion([finding(DOWN, UP, "texas"), finding(UP, SAME, "film")], "it")
    assert said == (
        "No: it is worse on texas, and nowhere better. The mean of it is higher in 1 of 2"
        " comparisons."
    )


def test_it_depends() -> None:
    said = conclusion([finding(DOWN, UP, "texas"), finding(UP, DOWN, "film")], "it")
    assert said.startswith("It depends: it is better on film, and worse on texas.")


def test_undecided() -> None:
    said = conclusion([finding(UP, SAME, "texas")], "it")
    assert said.startswith("Undecided: no difference is larger than its interval.")


def test_not_measured() -> None:
    assert conclusion([], "it") == "Not measured yet."


def test_a_table_says_who_is_better() -> None:
    assert "| better | made up |" in finding_table([finding(UP, DOWN, "texas")])
    assert "| undecided | made up |" in finding_table([finding(UP, SAME, "texas")])


def test_the_correction_knows_the_splits() -> None:
    assert per_train("directed-communities-50") == pytest.approx(200 / 600)
    assert per_train("my own") == 0.5


def test_without_records_every_question_has_a_command(tmp_path: Path) -> None:
    places = question_places(tmp_path)
    assert len(places) == len(ASKED) == 8
    for text in places.values():
        assert text.startswith("**Not measured yet.**")
        assert "```bash\npython -m lab " in text


HIGH, LOW = [0.8 + k / 100 for k in range(10)], [0.6 + k / 100 for k in range(10)]


def write(folder: Path, entries: list[Entry]) -> Evidence:
    write_entries(folder / "contest", entries)
    return Evidence(folder)


def test_maps_that_do_not_help(tmp_path: Path) -> None:
    evidence = write(tmp_path, whole("csnn", LOW) + whole("csnn-identity", HIGH))
    found = maps(evidence)
    assert found.sentence == (
        "With the same settings: Not measured yet. Each with what an equal search chose: No: CSNN "
        "with learned maps is worse on texas, and nowhere better. The mean of CSNN with learned "
        "maps is higher in 0 of 1 comparison."
    )
    assert "contest sheaves" in found.table


def test_two_contestants_are_compared_where_both_are_finished() -> None:
    runs = whole("csnn", HIGH) + whole("csnn-identity", LOW)
    (one,) = contest_findings(runs, "csnn", "csnn-identity")
    assert one.paired.verdict == "better"
    last = [run for run in runs if not (run.contestant == "csnn" and run.split == 9)]
    assert contest_findings(last, "csnn", "csnn-identity") == []


def test_non_normal_operators_are_those_of_the_registry(tmp_path: Path) -> None:
    known = LEAGUES["sheaves"].contestants
    normal = {name: is_normal(known[name], "texas") for name in ("csnn", "dsnn", "mlp")}
    assert normal == {"csnn": False, "dsnn": True, "mlp": None}
    assert is_normal(known["csnn-identity"], "texas") is True
    assert is_normal(known["csnn-identity"], "squirrel-directed") is False
    runs = whole("csnn", HIGH) + whole("nsd-orthogonal", LOW) + whole("mlp", LOW, 0.9)
    found = non_normal(write(tmp_path, runs))
    assert found.sentence.startswith("Yes, on texas: there an operator that is not normal")
    assert "nsd-orthogonal" in found.table
    assert "mlp" not in found.table


def test_hops_are_layers_times_those_of_a_layer(tmp_path: Path) -> None:
    """The best trial has two layers: four hops of the paper's operator, two of messages alone."""
    far = write(tmp_path / "far", whole("csnn", LOW, 0.9) + whole("csnn-messages", LOW, 0.5))
    assert hops(far).sentence.startswith("More than two hops gain over a point")
    assert "4: 90.00" in hops(far).table
    near = write(tmp_path / "near", whole("csnn", LOW, 0.5) + whole("csnn-messages", LOW, 0.9))
    assert hops(near).sentence.startswith("No: networks of one or two hops")


def test_depths_are_matched_by_reach(tmp_path: Path) -> None:
    """The best trial has two layers: CSNN's stands beside the others of four, theirs beside one."""
    runs = whole("csnn", LOW, 0.9) + whole("gcn", LOW, 0.8) + whole("nsd-diag", LOW, 0.75)
    one, two = matched_depths(runs)
    assert (one.layers, two.layers) == (1, 2)
    assert one.csnn == pytest.approx(0.7)
    assert one.rivals == pytest.approx({"GCN": 0.8, "NSD": 0.75})
    assert two.csnn == pytest.approx(0.9)
    assert two.rivals == pytest.approx({"GCN": 0.6, "NSD": 0.55})
    table = matched_table([one, two])
    assert "| sheaves | texas | 1 / 2 | 70.00 | 80.00 (-10.00) | 75.00 (-5.00) |" in table
    assert "| sheaves | texas | 2 / 4 | 90.00 | 60.00 (+30.00) | 55.00 (+35.00) |" in table
    found = hops(write(tmp_path, runs))  # messages are not searched: no table of hops
    assert found.sentence == (
        "At equal reach, t layers of CSNN against 2t layers, CSNN's best validation score is higher"
        " than that of GCN in 1 of 2 comparisons and NSD in 1 of 2 comparisons."
    )


def test_the_best_of_a_family_is_matched_and_only_what_is_searched() -> None:
    runs = whole("csnn", LOW, 0.9) + whole("nsd-diag", LOW, 0.7) + whole("nsd-general", LOW, 0.8)
    assert [one.rivals["NSD"] for one in matched_depths(runs)] == pytest.approx([0.8, 0.6])
    assert "GCN" not in matched_depths(runs)[0].rivals
    assert "| – |" in matched_table(matched_depths(runs))
    half = [run for run in runs if not (run.contestant == "nsd-general" and run.trial == 11)]
    assert [one.rivals["NSD"] for one in matched_depths(half)] == pytest.approx([0.7, 0.5])
    assert matched_depths(whole("gcn", LOW)) == []


def test_a_trial_that_came_to_nothing_is_no_depth() -> None:
    """All of GCN's trials of four layers have failed: nobody is ahead of them."""
    runs = whole("csnn", LOW, 0.9) + whole("gcn", LOW, 0.8)
    failed = [
        replace(run, val=None, test=None, trouble="diverged")
        if run.contestant == "gcn" and run.trial % 4 == 3
        else run
        for run in runs
    ]
    (one,) = matched_depths(failed)
    assert one.layers == 1
    assert one.rivals == pytest.approx({"GCN": 0.8})


def test_trials_that_come_to_nothing_are_counted(tmp_path: Path) -> None:
    broken = replace(entry("csnn", 0, 0, None, None, league="sheaves"), trouble="diverged")
    evidence = write(tmp_path, [broken, *finished("csnn", [0.5] * 4, league="sheaves")])
    assert "1 of 7 runs of CSNN in searches came to nothing" in stable(evidence).sentence


def record(dataset: str, split: int, test: float) -> Record:
    processing = {"direction": "stored" if dataset.endswith("directed") else "undirected"}
    return Record(
        "csnn", dataset, split, 43, "paper", "accuracy", 0.5, test, 1, "abc", processing=processing
    )


def test_directions_are_compared_on_the_same_splits(tmp_path: Path) -> None:
    for split in range(3):
        append_record(tmp_path / "a.jsonl", record("chameleon-directed", split, LOW[split]))
        append_record(tmp_path / "a.jsonl", record("chameleon", split, HIGH[split]))
    (one,) = directed_findings(Evidence(tmp_path).records)
    assert (one.dataset, one.paired.verdict) == ("chameleon-directed", "worse")
