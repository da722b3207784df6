"""Tables: what is averaged, what is chosen, what is marked."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.example import make

from coopsheaf.report import layout as plain_layout
from coopsheaf.report import rows
from coopsheaf.report.rows import select
from coopsheaf.report.tables import Line, Table, format_score
from coopsheaf.train.records import Record, append_record, read_records
from lab.published import PAPER, PUBLISHED, TABLES

# Beside the paper, which knows how many runs a benchmark has.
layout = partial(plain_layout, reference=PAPER)
summarise = partial(rows.summarise, reference=PAPER)
expected_runs = PAPER.expected_runs


def splits(tests: list[float], **changes: Any) -> list[Record]:
    return [make(split=split, test=test, **changes) for split, test in enumerate(tests)]


def only(tables: list[Table]) -> Table:
    (table,) = tables
    return table


def lines(table: Table, source: str) -> dict[str, Line]:
    return {line.model: line for line in table.lines if line.source == source}


def ours(table: Table) -> Line:
    (line,) = lines(table, "ours").values()
    return line


def notes_of(table: Table, line: Line, column: int = 0) -> list[str]:
    return [table.notes[number - 1] for number in line.cells[column].notes]


# --- what is averaged -----------------------------------------------------------------------------


def test_the_deviation_is_that_of_the_population() -> None:
    (row,) = summarise(splits([0.1, 0.2, 0.3, 0.4]))
    assert row.mean == pytest.approx(0.25)
    assert row.std == pytest.approx((0.05 / 4) ** 0.5)  # sum of squares 0.05, over 4 and not 3
    assert row.runs == (0, 1, 2, 3)
    table = only(layout(splits([0.1, 0.2, 0.3, 0.4])))
    assert ours(table).cells[0].text == "25.00 ± 11.18"
    assert any("population standard deviation" in remark for remark in table.remarks)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_means_and_deviations_are_those_of_the_scores(tests: list[float]) -> None:
    (row,) = summarise(splits(tests))
    mean = sum(tests) / len(tests)
    assert row.mean == pytest.approx(mean)
    variance = sum((test - mean) ** 2 for test in tests) / len(tests)
    assert row.std == pytest.approx(variance**0.5, abs=1e-9)


def test_times_and_epochs_are_summarised() -> None:
    records = [
        make(split=0, seconds_per_epoch=1.0, best_epoch=5),
        make(split=1, seconds_per_epoch=2.0, best_epoch=7),
        make(split=2, seconds_per_epoch=None, best_epoch=9),
    ]
    (row,) = summarise(records)
    assert row.seconds_per_epoch == pytest.approx(1.5)
    assert row.best_epochs == (5, 7, 9)


def test_a_split_counts_once_and_its_first_record_is_kept() -> None:
    (row,) = summarise([make(split=0, test=0.5), make(split=1, test=0.6), make(split=0, test=0.9)])
    assert row.tests == (0.5, 0.6)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "gcn"},
        {"dataset": "minesweeper"},
        {"semantics": "released"},
        {"config_hash": "b"},
        {"model_version": 2},
        {"dataset_checksum": "other"},
        {"dataset_remark": "substitute features"},
        {"metric": "accuracy"},
        {"seed": 44},
    ],
)
def test_what_differs_is_never_averaged(change: dict[str, Any]) -> None:
    rows = summarise([make(test=0.4), make(test=0.6, **change)])
    assert [row.mean for row in rows] == [0.4, 0.6]


def test_what_does_not_matter_is_averaged() -> None:
    rows = summarise([make(), make(split=1, commit="other", machine="other", recipe="renamed")])
    assert len(rows) == 1


def test_peptides_are_averaged_over_seeds() -> None:
    records = [
        make(dataset="peptides-struct", metric="mae", seed=seed, test=0.24 + 0.01 * seed)
        for seed in range(4)
    ]
    (row,) = summarise(records)
    assert (row.seed, row.over, row.runs, row.expected) == (None, "seeds", (0, 1, 2, 3), 4)
    table = only(layout(records))
    assert ours(table).cells[0].text == "0.2550 ± 0.0112"
    assert ours(table).model == "csnn, paper semantics"
    assert table.metrics == ("MAE",)


def test_a_score_that_is_not_defined_is_left_out_and_said() -> None:
    records = [*splits([0.4, 0.6]), make(split=2, test=None, val=None)]
    (row,) = summarise(records)
    assert row.mean == pytest.approx(0.5)
    assert "no test score in 1 of 3 runs" in row.notes
    table = only(layout([make(test=None, val=None)]))
    assert ours(table).cells[0].text == "–"


def test_one_run_has_no_deviation() -> None:
    assert ours(only(layout([make(test=0.8545)]))).cells[0].text == "85.45"


def test_scores_are_formatted_by_metric() -> None:
    assert format_score("auroc", 0.8545, 0.0053) == "85.45 ± 0.53"
    assert format_score("accuracy", 1.0, 0.0) == "100.00 ± 0.00"
    assert format_score("mae", 0.2432, 0.0004) == "0.2432 ± 0.0004"


# --- what is chosen -------------------------------------------------------------------------------


def test_the_validation_score_chooses_never_the_test_score() -> None:
    good_test = splits([0.9, 0.9], config_hash="a", val=0.5)
    good_val = splits([0.1, 0.1], config_hash="b", val=0.6)
    for records in (good_test + good_val, good_val + good_test):
        ((row, beaten),) = select(summarise(records))
        assert (row.config_hash, beaten) == ("b", 1)
        table = only(layout(records))
        assert ours(table).cells[0].text == "10.00 ± 0.00"
        said = "of 2 settings, the best mean validation score"
        assert said in notes_of(table, ours(table))


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=5),
    st.randoms(use_true_random=False),
)
def test_other_test_scores_choose_the_same_setting(
    scores: list[tuple[float, float]], random: Any
) -> None:
    records = [make(config_hash=str(k), val=v, test=t) for k, (v, t) in enumerate(scores)]
    shuffled = [replace(record, test=random.random()) for record in records]
    ((chosen, _),), ((again, _),) = select(summarise(records)), select(summarise(shuffled))
    assert chosen.config_hash == again.config_hash
    assert chosen.val_mean == max(v for v, _ in scores)


def test_errors_are_better_when_small() -> None:
    base = {"dataset": "peptides-struct", "metric": "mae"}
    records = [make(val=0.3, config_hash="a", **base), make(val=0.2, config_hash="b", **base)]
    ((row, _),) = select(summarise(records))
    assert row.config_hash == "b"


def test_a_lucky_split_does_not_beat_a_whole_benchmark() -> None:
    records = splits([0.8] * 10, config_hash="whole", val=0.8)
    records += splits([0.9], config_hash="one", val=0.9)
    ((row, _),) = select(summarise(records))
    assert row.config_hash == "whole"


def test_only_the_newest_version_of_a_model_counts() -> None:
    records = splits([0.9] * 10, val=0.9) + splits([0.5], val=0.5, model_version=2)
    ((row, beaten),) = select(summarise(records))
    assert (row.model_version, beaten) == (2, 0)


def test_a_setting_without_validation_scores_is_chosen_last() -> None:
    records = [make(val=None, config_hash="a"), make(val=0.1, config_hash="b")]
    ((row, _),) = select(summarise(records))
    assert row.config_hash == "b"


def test_seeds_and_semantics_have_lines_of_their_own() -> None:
    table = only(layout([make(), make(seed=44), make(semantics="released")]))
    assert set(lines(table, "ours")) == {
        "csnn, paper semantics, seed 43",
        "csnn, paper semantics, seed 44",
        "csnn, released semantics, seed 43",
    }


# --- what stands beside ---------------------------------------------------------------------------


def test_the_paper_stands_beside_and_is_labelled() -> None:
    table = only(layout(splits([0.85] * 10)))
    assert table.title == TABLES["heterophilous"].title
    assert [cell.text for cell in table.datasets] == ["tolokers"]
    assert table.metrics == ("AUROC, %",)
    paper = lines(table, "paper")
    assert len(paper) == 10
    assert paper["csnn"].cells[0].text == "85.45 ± 0.53"
    models = [(line.model, line.source) for line in table.lines]
    assert models[-2:] == [("csnn", "paper"), ("csnn, paper semantics", "ours")]


def test_the_paper_may_be_left_out() -> None:
    table = only(plain_layout([make(dataset="squirrel", metric="accuracy")]))
    assert not lines(table, "paper")
    assert table.title == "Results"
    assert notes_of(table, ours(table)) == ["1 split"]
    assert not any(remark.startswith("paper:") for remark in table.remarks)


@pytest.mark.parametrize(
    ("count", "dataset", "metric", "note"),
    [
        (3, "tolokers", "auroc", "3 of 10 splits"),
        (1, "penn94", "accuracy", "1 of 5 splits"),
        (2, "roman-empire-substitute", "accuracy", "2 of 10 splits"),
        (1, "minesweeper-generated", "auroc", "1 of 10 splits"),
        (1, "my graph", "accuracy", "1 split"),
        (3, "my graph", "accuracy", "3 splits"),
    ],
)
def test_partial_benchmarks_are_marked(count: int, dataset: str, metric: str, note: str) -> None:
    table = only(layout(splits([0.5] * count, dataset=dataset, metric=metric)))
    assert notes_of(table, ours(table)) == [note]


def test_a_whole_benchmark_has_no_mark() -> None:
    table = only(layout(splits([0.5] * 10)))
    assert notes_of(table, ours(table)) == []


def test_ablations_have_lines_of_their_own() -> None:
    zeros = {"model": {"scale": "rectified"}}
    turns = {"model": {"scale": "unit", "orthogonal": "identity"}}
    records = [
        make(val=0.8, test=0.7, config={"model": {"scale": "exp"}}),
        make(val=0.9, test=0.8, config=zeros, config_hash="b"),
        make(val=0.9, test=0.6, config=turns, config_hash="c"),
        make(model="nsd-random", semantics="", config=turns),
    ]
    scores = {row.label: row.mean for row, beaten in select(summarise(records)) if not beaten}
    assert scores == {
        "csnn, paper semantics": 0.7,
        "csnn, paper semantics, exact zeros": 0.8,
        "csnn, paper semantics, identity maps, unit scales": 0.6,
        "nsd-random": 0.85,
    }
    (table,) = plain_layout(records)
    assert [line.model for line in table.lines] == list(scores)


def test_default_settings_are_marked() -> None:
    table = only(layout(splits([0.5] * 10, recipe="default")))
    assert notes_of(table, ours(table)) == ["default settings, not tuned"]


def test_substitute_data_has_its_own_table_and_no_published_number() -> None:
    remark = "substitute features: not comparable with published numbers"
    records = splits([0.9] * 10, dataset="roman-empire", metric="accuracy")
    records += splits(
        [0.8] * 10, dataset="roman-empire-substitute", metric="accuracy", dataset_remark=remark
    )
    real, other = layout(records)
    assert [cell.text for cell in real.datasets] == ["roman-empire"]
    assert [cell.text for cell in other.datasets] == ["roman-empire-substitute"]
    assert other.notes == (remark,)
    assert other.datasets[0].notes == (1,)
    assert not lines(other, "paper")


def test_data_that_calls_itself_a_substitute_never_stands_beside_the_paper() -> None:
    records = [
        make(dataset="roman-empire", metric="accuracy", dataset_remark="substitute features")
    ]
    table = only(layout(records))
    assert table.title == "Other datasets"
    assert not lines(table, "paper")


def test_another_metric_never_stands_beside_the_paper() -> None:
    table = only(layout([make(metric="accuracy")]))
    assert not lines(table, "paper")


def test_two_files_under_one_name_have_columns_of_their_own() -> None:
    table = only(layout([make(dataset="mine", dataset_checksum=c * 64) for c in "ab"]))
    assert [cell.text for cell in table.datasets] == ["mine (aaaaaaaa)", "mine (bbbbbbbb)"]


def test_other_edges_than_the_papers_are_marked() -> None:
    squirrel = splits([0.4] * 10, dataset="squirrel", metric="accuracy")
    table = only(layout(squirrel))
    assert notes_of(table, ours(table)) == [
        "the paper's number is on squirrel-directed, ours on squirrel"
    ]
    assert "directed filtered file" in notes_of(table, lines(table, "paper")["csnn"])[0]
    assert notes_of(table, lines(table, "paper")["gcn"]) == []
    directed = [
        replace(record, dataset="squirrel-directed", processing={"direction": "stored"})
        for record in squirrel
    ]
    table = only(layout(directed))
    assert table.title == TABLES["heterophilous"].title
    assert notes_of(table, ours(table)) == []
    assert notes_of(table, lines(table, "paper")["gcn"]) == ["measured on squirrel"]


def test_another_direction_than_the_papers_is_marked() -> None:
    records = splits([0.9] * 10, dataset="roman-empire", metric="accuracy")
    table = only(layout(records))
    assert notes_of(table, ours(table)) == ["edges: stored in the paper, undirected here"]
    stored = [replace(record, processing={"direction": "stored"}) for record in records]
    table = only(layout(stored))
    assert notes_of(table, ours(table)) == []


def test_other_features_than_the_papers_are_marked() -> None:
    def notes(**processing: str) -> list[str]:
        records = splits([0.8] * 10, dataset="texas", metric="accuracy", processing=processing)
        table = only(layout(records))
        return notes_of(table, ours(table))

    assert notes(direction="undirected", features="raw") == [
        "features: row-normalized in the paper, raw here"
    ]
    assert notes(direction="undirected", features="row-normalized") == []
    assert notes(direction="stored", features="raw") == [
        "edges: undirected in the paper, stored here",
        "features: row-normalized in the paper, raw here",
    ]


def test_the_two_cornells_are_never_mixed() -> None:
    records = splits([0.8] * 10, dataset="cornell", metric="accuracy")
    records += splits([0.8] * 10, dataset="cornell-corrected", metric="accuracy")
    table = only(layout(records))
    names = [cell.text for cell in table.datasets]
    assert names == ["cornell", "cornell-corrected"]
    paper = lines(table, "paper")
    assert [cell.text for cell in paper["csnn"].cells] == ["–", "81.62 ± 4.32"]
    assert [cell.text for cell in paper["nsd-diag"].cells] == ["86.49 ± 7.35", "–"]


def test_kinds_of_deviation_are_said() -> None:
    (remark,) = [r for r in only(layout([make()])).remarks if r.startswith("paper:")]
    assert "sample deviations (× 0.949 for the population's): gcn, sage" in remark
    assert "not stated: nsd-orthogonal" in remark


# --- order and choice -----------------------------------------------------------------------------


def test_columns_are_in_the_papers_order_or_in_the_order_asked_for() -> None:
    records = [make(), make(dataset="minesweeper"), make(dataset="roman-empire", metric="accuracy")]
    names = [cell.text for cell in only(layout(records)).datasets]
    assert names == ["roman-empire", "minesweeper", "tolokers"]
    asked = layout(records, datasets=["tolokers", "roman-empire"])
    assert [cell.text for cell in only(asked).datasets] == ["tolokers", "roman-empire"]


def test_a_dataset_without_records_shows_the_paper_alone() -> None:
    table = only(layout([], datasets=["penn94"]))
    assert [line.source for line in table.lines] == ["paper"] * 12
    assert plain_layout([], datasets=["penn94"]) == []
    assert layout([], datasets=["nothing of the kind"]) == []
    assert layout([]) == []


def test_models_may_be_chosen() -> None:
    records = [make(), make(model="gcn-plain", semantics="")]
    table = only(layout(records, models=["gcn-plain", "gcn"]))
    assert [(line.model, line.source) for line in table.lines] == [
        ("gcn", "paper"),
        ("gcn-plain", "ours"),
    ]


def test_all_tables_of_the_paper_can_be_shown() -> None:
    tables = layout([], datasets=sorted({entry.dataset for entry in PUBLISHED}))
    assert [table.title for table in tables] == [table.title for table in TABLES.values()]
    shown = sum(cell.text != "–" for t in tables for line in t.lines for cell in line.cells)
    # Every number once, and once more where a dataset has two forms of its edges.
    assert shown == len(PUBLISHED) + 9 + 9


def test_seconds_per_epoch() -> None:
    records = [make(machine="a machine", threads=1), make(split=1, machine="a machine", threads=1)]
    table = layout(records, timing=True)[-1]
    assert table.title == "Seconds per epoch"
    assert [(line.model, line.source, line.cells[0].text) for line in table.lines] == [
        ("csnn", "paper", "0.14"),
        ("csnn, paper semantics", "ours", "0.500"),
    ]
    assert "a machine (threads: 1)" in table.remarks[0]


def test_tables_come_from_files(tmp_path: Path) -> None:
    records = splits([0.8, 0.9, 0.85])
    for record in records:
        append_record(tmp_path / "a.jsonl", record)
    assert layout(read_records([tmp_path / "a.jsonl"])) == layout(records)


def test_expected_runs() -> None:
    assert expected_runs("squirrel-directed") == (10, "splits")
    assert expected_runs("peptides-func") == (4, "seeds")
    assert expected_runs("my graph") == (None, "splits")


def test_tables_need_no_torch() -> None:
    code = "import sys, coopsheaf.report.formats; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
