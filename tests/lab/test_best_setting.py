"""The paper's operator and the best setting: two columns, each chosen by validation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_up_contest import whole
from report.example import make

from coopsheaf.report.rows import summarise
from coopsheaf.train.records import Record
from lab.best_setting import ALONE, best_table, is_paper, reached, sentence, short_table, words

LOW, HIGH = 0.6, 0.8
OPERATOR = "the paper's operator"


def bench(val: float, test: float, name: str, splits: int = 3, **changes: Any) -> list[Record]:
    values: dict[str, Any] = {"dataset": "own", "metric": "accuracy", "splits": 3} | changes
    return [
        make(split=k, val=val, test=test + k / 100, config_hash=name, **values)
        for k in range(splits)
    ]


def option(**model: Any) -> dict[str, Any]:
    return {"config": {"model": model}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, OPERATOR),
        ({"semantics": "messages"}, "messages alone"),
        ({"semantics": "released"}, "the released order"),
        (option(scale="rectified"), "the paper's operator, exact zeros"),
        (option(block="prenorm"), "the paper's operator, pre-norm blocks"),
        (option(structure="rows"), "the paper's operator, rows of the adjacency matrix"),
        (option(step="wave"), "the paper's operator, waves"),
        (option(jk="max"), "the paper's operator, all layers at the end"),
        (option(map_start="equal", block="residual", step="euler", jk="last"), OPERATOR),
    ],
)
def test_every_option_is_told_from_the_papers_operator(changes: dict[str, Any], said: str) -> None:
    (row,) = summarise(bench(0.5, LOW, "a", **changes))
    assert words(row) == said
    assert is_paper(row) == (said == OPERATOR)


def test_each_column_is_what_validation_chose_of_its_own() -> None:
    records = [
        *bench(0.7, LOW, "a"),
        *bench(0.6, 0.95, "b"),  # a better test score chooses nothing
        *bench(0.9, HIGH, "c", semantics="messages"),
        *bench(0.8, 0.99, "d", semantics="released"),
    ]
    (one,) = reached(records, [], [])
    assert (one.paper.config_hash, one.best.config_hash) == ("a", "c")
    assert (one.settings, one.others) == (4, 2)
    table = best_table([one])
    assert "| 61.00 ± 0.82 | 81.00 ± 0.82 | messages alone | 4 (2) | +20.00" in table
    assert "| better |" in table
    assert "| own | 61.00 ± 0.82 | 81.00 ± 0.82 |" in short_table([one])
    assert sentence([one]).startswith("Validation prefers another setting")


def test_the_papers_operator_may_be_the_best_setting() -> None:
    (one,) = reached(bench(0.9, HIGH, "a"), bench(0.7, LOW, "b", semantics="messages"), [])
    assert one.best is one.paper
    assert "| 81.00 ± 0.82 | 81.00 ± 0.82 | the paper's operator | 2 (1) | – | – |" in best_table(
        [one]
    )
    assert sentence([one]) == "It prefers the paper's operator on own."


def test_where_nothing_else_was_run_the_column_says_so() -> None:
    """Part of the splits does not count, and neither do identity maps."""
    others = bench(0.99, HIGH, "b", splits=2, semantics="messages")
    others += bench(0.99, HIGH, "c", **option(orthogonal="identity"))
    others += bench(0.99, HIGH, "d", model="csnn-identity")
    (one,) = reached(bench(0.5, LOW, "a") + others, [], [])
    assert f"| 61.00 ± 0.82 | {ALONE} | – | 1 (0) | – | – |" in best_table([one])
    assert f"| own | 61.00 ± 0.82 | {ALONE} |" in short_table([one])
    assert sentence([one]) == ("Nothing but the paper's operator was run on all splits of own.")


def test_without_the_papers_operator_there_is_no_line() -> None:
    assert reached(bench(0.5, LOW, "a", semantics="released"), [], []) == []
    assert reached(bench(0.5, LOW, "a", splits=2), [], []) == []
    assert best_table([]).startswith("The paper's operator has not been run")


def test_finished_searches_compete() -> None:
    tests = [0.9 + k / 100 for k in range(10)]
    made = whole("csnn-messages", tests, 0.9)
    option = ["model.semantics=messages"]
    messages = [replace(one, model="csnn", settings=one.settings + option) for one in made]
    known = [replace(one, splits=10) for one in bench(0.5, LOW, "a", 10, dataset="texas")]
    (one,) = reached(known, [], messages)
    assert one.best.recipe == "contest sheaves: csnn-messages, trial 1"
    assert words(one.best) == "messages alone"
    assert one.paired is not None
    assert len(one.paired.differences) == 10
    (one,) = reached(known, [], messages[1:])  # its search is not finished
    assert one.others == 0
    (one,) = reached(known, [], whole("csnn-identity", tests, 0.9))  # a control
    assert one.others == 0
