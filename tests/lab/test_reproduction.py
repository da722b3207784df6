"""The page of measurements: computed from records, and equal to what is committed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from report.example import make

from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.records import Record
from lab.documents import fill_document, find_places
from lab.reproduction import (
    Evidence,
    best_rival,
    contents,
    load_evidence,
    rows_below,
    summary,
)

ROOT = Path(__file__).parents[2]
TEN = [0.84, 0.86, 0.85, 0.87, 0.83, 0.85, 0.86, 0.84, 0.85, 0.85]


def runs(tests: list[float], **changes: Any) -> list[Record]:
    model = changes.get("model", "csnn")
    config = {"model": {"name": model, "scale": "exp"}, "train": {}, "data": {}}
    return [
        make(split=k, test=test, seconds=60.0, config=config, **changes)
        for k, test in enumerate(tests)
    ]


def evidence(*groups: list[Record]) -> Evidence:
    return Evidence(tuple(record for group in groups for record in group))


def test_every_number_is_said_with_what_it_needs() -> None:
    found = contents(evidence(runs(TEN), runs([0.8, 0.81], model="gcn", semantics="")))
    (line,) = (line for line in found["details"].splitlines() if "| csnn |" in line)
    for part in ("85.00 ± 1.10", "10 of 10", "85.45 ± 0.53", "-0.45 (-1.2 s.e.)", "10.0", "0.500"):
        assert part in line
    assert "2 of 10" in found["details"]
    assert "| tolokers | gcn | 2 |" in found["rivals"]
    assert "+4.50 ± 6.35; ± 8.98 | undecided" in found["rivals"]
    assert "85.00 ± 1.10" in found["tables"]
    assert "0.14" in found["runtime"]  # the paper's seconds


def test_models_with_one_split_are_left_out_but_for_csnn() -> None:
    found = contents(
        evidence(runs([0.8]), runs([0.7], model="gcn", dataset="chameleon", semantics=""))
    )
    assert "csnn" in found["details"]
    assert "gcn" not in found["details"]
    assert found["summary"] == "There are no results of several splits yet.\n"
    assert "gcn 1," in found["remaining"]


def test_one_seed_is_shown_where_there_is_one_split() -> None:
    peptides: dict[str, Any] = {"dataset": "peptides-func", "metric": "ap", "seed": 0}
    gcn = runs([0.65], model="gcn-lrgb", semantics="", **peptides)
    found = contents(evidence(runs([0.7], **peptides), gcn))
    (line,) = (line for line in found["details"].splitlines() if "gcn-lrgb" in line)
    for part in ("| 65.00 |", "| 1 of 4 |", "68.60 ± 0.50"):
        assert part in line
    assert "gcn-lrgb" in found["tables"]
    assert "gcn-lrgb 1" in found["remaining"]
    assert found["rivals"] == "Nothing to compare yet.\n"  # one difference has no interval


def test_validation_alone_names_the_best_rival() -> None:
    strong = runs([0.99] * 10, model="gcn", semantics="", val=0.5)
    chosen = runs([0.6] * 10, model="sage", semantics="", val=0.9)
    ablation = runs([1.0] * 10, model="csnn-identity", val=1.0)
    all_of_them = evidence(runs(TEN), strong, chosen, ablation)
    (row,) = (row for row in all_of_them.rows if row.model == "csnn")
    rival = best_rival(row, all_of_them)
    assert rival is not None
    assert rival.model == "sage"
    assert "sage 60.00 ± 0.00" in summary(all_of_them)
    untuned = evidence(runs(TEN), runs([0.6] * 10, model="sage", semantics="", recipe="default"))
    assert "| sage (default settings) 60.00" in summary(untuned)
    assert "**sage (default settings)**" in contents(untuned)["rivals"]


def test_a_rival_is_compared_on_the_splits_of_csnn() -> None:
    """Not passed over because it has more of them; chosen by its validation on the common ones."""
    vals = {"gcn": [0.9, 0.9, 0.1], "sage": [0.8, 0.8, 1.0]}
    groups = [
        [make(model=model, semantics="", split=k, val=val) for k, val in enumerate(scores)]
        for model, scores in vals.items()
    ]
    everything = evidence(runs([0.8, 0.8]), *groups)
    (row,) = (row for row in everything.rows if row.model == "csnn")
    rival = best_rival(row, everything)
    assert rival is not None
    assert rival.model == "gcn"
    longer = runs([0.5, 0.6, 1.0], model="sage", semantics="")
    assert "sage 55.00 ± 5.00 | +25.00" in summary(evidence(runs([0.8, 0.8]), longer))
    undefined = evidence(runs([0.2] * 2, dataset="own", metric="mae"), runs([0.1] * 2, model="gcn", semantics="", dataset="own", metric="mae", val=None))  # fmt: skip
    assert best_rival(undefined.rows[0], undefined) is None


def test_ablations_are_never_the_headline() -> None:
    zeros = [
        make(
            split=k, test=0.99, val=0.99, config_hash="z", config={"model": {"scale": "rectified"}}
        )
        for k in range(10)
    ]
    found = contents(evidence(runs(TEN), zeros))
    for place in ("summary", "tables", "details", "below"):
        assert "99.00" not in found[place]
    assert "99.00" in found["settings"]


def test_one_seed_and_the_newest_version_are_shown() -> None:
    other = runs([0.5, 0.5], seed=7)
    assert [row.seed for row in evidence(runs(TEN), other).rows] == [43]
    for val, seed in ((0.1, 43), (0.99, 7)):  # of equally many runs, by validation
        equal = runs(TEN, seed=7, val=val)
        assert [row.seed for row in evidence(runs(TEN), equal).rows] == [seed]
    newer = runs([0.6], model_version=2, config_hash="n")
    assert [row.model_version for row in evidence(runs(TEN), newer).rows] == [2]


def test_numbers_measured_in_another_way_are_marked() -> None:
    found = contents(evidence(runs([0.42, 0.44], dataset="chameleon", metric="accuracy")))
    for place in ("summary", "details"):
        assert "43.09 ± 3.17 ‡" in found[place]
        assert "‡ csnn on chameleon: the paper's number is on chameleon-directed" in found[place]
    remarked = contents(evidence(runs([0.42, 0.44], dataset_remark="a substitute")))
    assert "† tolokers: a substitute." in remarked["summary"]


def test_a_mark_is_explained_once_for_all_it_is_said_of() -> None:
    substitutes = [
        runs([0.4, 0.5], dataset=dataset, dataset_remark="a substitute")
        for dataset in ("tolokers", "minesweeper")
    ]
    again = runs([0.4, 0.5], semantics="released", dataset_remark="a substitute")
    text = contents(evidence(*substitutes, again))["details"]
    assert "† minesweeper, tolokers: a substitute." in text
    assert text.count("a substitute") == 1


def test_errors_have_four_digits_and_their_advantage_is_positive() -> None:
    own = {"dataset": "own", "metric": "mae"}
    better = runs([0.21, 0.22], **own)
    worse = runs([0.2134, 0.2236], model="gcn", semantics="", **own)
    assert "+0.0035 ±" in contents(evidence(better, worse))["rivals"]


def test_names_cannot_break_a_table() -> None:
    odd = runs([0.5, 0.6], dataset="my|own_x", dataset_remark="<b>", recipe="a`|b")
    found = contents(evidence(odd))
    heads = {name: text.splitlines()[0].count("|") for name, text in found.items()}
    for name in ("summary", "details", "settings"):
        for line in found[name].splitlines():
            if line.startswith("|") and "my" in line:
                assert line.replace("\\|", "").count("|") == heads[name]
    assert "<b>" not in found["details"]


def test_records_that_say_little_are_no_obstacle() -> None:
    bare = [make(split=k, config={}, seconds=None, seconds_per_epoch=None) for k in range(2)]
    undefined = [make(split=k, model="gcn", semantics="", val=None, test=None) for k in range(2)]
    found = contents(evidence(bare, undefined))
    assert "| gcn |" in found["details"]


def test_what_is_below_the_paper_is_found() -> None:
    assert rows_below(evidence(runs(TEN))) == []
    low = evidence(runs([test - 0.02 for test in TEN]))
    assert [row.dataset for row in rows_below(low)] == ["tolokers"]
    assert "-2.45" in contents(low)["below"]
    assert rows_below(evidence(runs([0.1]))) == []  # one split has no standard error


def test_all_settings_are_listed_and_not_only_the_chosen() -> None:
    other = runs([0.5, 0.5], config_hash="bbbb")
    table = contents(evidence(runs(TEN), other, runs([0.4], config_hash="cccc")))["settings"]
    assert "| 10 |" in table
    assert "bbbb" in table
    assert "cccc" not in table


def test_rivals_with_several_settings_are_listed_with_all_of_them() -> None:
    gcn: dict[str, Any] = {"model": "gcn", "semantics": ""}
    authors = runs([0.8, 0.8], **gcn, config_hash="aaaa", recipe="gcn/tolokers", val=0.85)
    found = runs([0.9, 0.9], **gcn, config_hash="bbbb", recipe="sweep/gcn/tolokers", val=0.8)
    alone = runs([0.7, 0.7], model="mlp", semantics="", config_hash="cccc")
    table = contents(evidence(authors, found, alone))["rival-settings"]
    # Validation, not test, chose it.
    assert re.search(r"\*\*gcn\*\* \| gcn/tolokers \|.*metric \| 2 \|.*aaaa", table)
    assert re.search(r"\| gcn \| sweep/gcn/tolokers \|.*bbbb", table)
    more = runs([0.5, 0.5, 0.5], **gcn, config_hash="dddd", val=0.1)
    table = contents(evidence(authors, found, more))["rival-settings"]
    assert re.search(r"\*\*gcn\*\* .*dddd", table)  # more runs come first
    assert "mlp" not in table
    assert contents(evidence(alone))["rival-settings"] == "None.\n"


def test_default_settings_are_marked_on_both_sides() -> None:
    gcn = runs(TEN, model="gcn", semantics="", recipe="default")
    (line,) = summary(evidence(runs(TEN, recipe="default"), gcn)).splitlines()[2:3]
    assert "| 85.00 ± 1.10 (default settings) |" in line
    assert "| gcn (default settings) 85.00 ± 1.10 |" in line
    assert "default" not in summary(evidence(runs(TEN, recipe="csnn/tolokers")))


def test_mini_batches_are_marked() -> None:
    config = {"model": {"name": "csnn"}, "train": {"epochs": 40}, "batch": {"kind": "clusters"}}
    batches = [make(split=k, config=config) for k in range(2)]
    found = contents(evidence(batches))
    assert (
        "‡ csnn on tolokers: steps on: the whole graph in the paper, clusters here"
        in found["summary"]
    )
    assert "| 40, clusters |" in found["settings"]
    assert "‡" not in contents(evidence(runs(TEN)))["summary"]
    assert "whole graph |" in contents(evidence(runs(TEN)))["settings"]


def test_without_records_nothing_is_claimed() -> None:
    found = contents(evidence(runs([0.8], dataset="own")))
    assert found["below"] == "There is no such number.\n"
    assert found["rivals"] == "Nothing to compare yet.\n"
    assert found["sweeps"] == "No sweep is recorded yet.\n"
    assert found["question-order"] == "Nothing has been run for this yet.\n"


# --- what is committed ----------------------------------------------------------------------------


DOCUMENTS = (
    "README.md",
    "docs/reproduction.md",
    "docs/results.md",
    "docs/compare.md",
    "docs/heterophily.md",
)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_committed_tables_are_those_of_the_committed_records(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    found = contents(load_evidence(ROOT / "results"))
    places = [place for place in find_places(text) if place in found]
    assert places
    for place in places:
        assert fill_document(text, place, found[place]) == text, place


def test_every_place_is_on_one_page() -> None:
    texts = [(ROOT / path).read_text(encoding="utf-8") for path in DOCUMENTS]
    places = [place for text in texts for place in find_places(text)]
    others = {"steps"}  # written by benchmarks/headlines.py
    here = sorted(place for place in places if place not in others)
    assert here == sorted(contents(load_evidence(ROOT / "results")))


def test_what_is_below_the_paper_was_investigated() -> None:
    """Each dataset has its own paragraph under the heading, which says what was tried."""
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    section = page.split("## Where ours is below the paper")[1].split("\n## ")[0]
    prose = section.split("<!-- settings: end -->")[1]
    investigated = set(re.findall(r"\*\*([a-z0-9-]+)/([a-z0-9-]+)\*\*", prose))
    for row in rows_below(load_evidence(ROOT / "results")):
        assert (row.model, row.dataset) in investigated, f"{row.model}/{row.dataset}"


FOUND = {
    "csnn/texas": "csnn-texas-raw",
    "csnn/wisconsin": "csnn-wisconsin-raw",
    "csnn/cornell-corrected": "csnn-cornell-corrected-raw",
    "csnn/chameleon": "csnn-chameleon",
    "csnn/film": "csnn-film-raw",
    **{
        f"{model}/{dataset}": f"{model}-{dataset}"
        for model in ("bunn", "gat-sep", "gt-sep")
        for dataset in ("texas", "wisconsin", "cornell-corrected")
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_recipes_are_what_the_searches_found(name: str) -> None:
    best = ROOT / "results" / "sweeps" / FOUND[name] / "best.toml"
    recipe = load_recipe(name)
    assert recipe.hash() == load_recipe(str(best)).hash()
    assert f"results/sweeps/{FOUND[name]})" in recipe.source
