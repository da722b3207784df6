"""What is recorded of the peptides, what validation chooses from it, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.example import make

from coopsheaf.train.records import Record, append_record
from lab.documents import fill_document, find_places
from lab.peptides.plan import MODELS, TRIALS, Job, cut_job, full_job, search_job
from lab.peptides.records import (
    chosen_trial,
    folder_of,
    jobs,
    read_known,
    recorded,
    search_precision,
    searched,
)
from lab.peptides.tables import contents

ROOT = Path(__file__).parents[3]


def record_of(job: Job, **changes: Any) -> Record:
    model, dataset, seed, config_hash, version = job.key
    values = {
        "model": model,
        "dataset": dataset,
        "seed": seed,
        "config_hash": config_hash,
        "model_version": version,
        "metric": "ap",
        "epochs": job.recipe.train.epochs,
        "config": job.recipe.to_mapping(),
        "parameters": 123_456,
        "seconds_per_epoch": 61.4,
    }
    return make(**(values | changes))


def known_of(*records: Record) -> dict[Any, Record]:
    return {(r.model, r.dataset, r.seed, r.config_hash, r.model_version): r for r in records}


def a_search(vals: list[float], precision: str = "32", **changes: Any) -> list[Record]:
    return [
        record_of(search_job(trial, precision), val=val, test=1 - val, **changes)
        for trial, val in zip(TRIALS, vals, strict=False)
    ]


def test_validation_chooses_once_all_settings_are_recorded() -> None:
    vals = [0.2, 0.3, 0.25, 0.1, 0.28]
    assert len(vals) == len(TRIALS)
    assert chosen_trial(known_of(*a_search(vals))) == list(TRIALS)[1]
    assert chosen_trial(known_of(*a_search(vals[:-1]))) is None
    assert chosen_trial({}) is None


def test_a_search_is_of_one_precision() -> None:
    """Halves of two searches are no search."""
    both = [*a_search([0.2] * 2), *a_search([0.2] * 4, "bf16")]
    known = known_of(*both)
    assert search_precision(known) == "bf16"
    assert len(searched(known, "32")) == 2
    assert chosen_trial(known) is None
    whole = known_of(*a_search([0.9]), *a_search([0.1, 0.2, 0.3, 0.5, 0.4], "bf16"))
    assert chosen_trial(whole) == list(TRIALS)[3]


def test_short_runs_are_kept_apart_from_whole_ones(tmp_path: Path) -> None:
    cut, full = cut_job("gine", "32", None), full_job("gine", 0, "32", None)
    for job in (cut, full):
        append_record(folder_of(job.part, tmp_path) / "a.jsonl", record_of(job))
    append_record(tmp_path / "a.jsonl", record_of(full, val=0.1))  # again: the first one counts
    assert (tmp_path / "peptides" / "a.jsonl").exists()
    known = read_known(tmp_path)
    assert set(known) == {cut.key, full.key}
    assert known[full.key].val != 0.1
    assert list(recorded("cut", known)) == list(recorded("full", known)) == ["gine"]


def test_one_seed_of_everything_comes_before_the_next() -> None:
    found = jobs("full", ["csnn", "gcn-lrgb"], (0, 1), "32", None)
    assert [(job.name, job.recipe.train.seed) for job in found] == [
        ("csnn", 0), ("gcn-lrgb", 0), ("csnn", 1), ("gcn-lrgb", 1),
    ]  # fmt: skip
    assert [job.name for job in jobs("search", (), (0,), "32", None)] == list(TRIALS)


def row(text: str, model: str) -> list[str]:
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {model} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_tables_say_how_much_of_the_protocol_it_is() -> None:
    runs = [
        record_of(cut_job("gine", "bf16", None), val=0.5, test=0.45),
        *(
            record_of(full_job("gcn-lrgb", seed, "32", None), val=0.7, test=0.6 + seed / 100)
            for seed in (0, 2)
        ),
    ]
    found = contents(known_of(*runs))
    cut = row(found["peptides-cut"], "gine")
    assert cut[1:] == ["123,456", "40 of 250", "1 of 4", "bf16", "50.00", "45.00", "61", "66.21 ± 0.67 †"]  # fmt: skip
    full = row(found["peptides-full"], "gcn-lrgb")
    assert full[1:] == ["123,456", "250 of 250", "2 of 4", "32", "70.00 ± 0.00", "61.00 ± 1.00", "61", "68.60 ± 0.50 †"]  # fmt: skip
    assert row(found["peptides-full"], "gine")[1:] == [*["–"] * 7, "66.21 ± 0.67 †"]
    assert row(found["peptides-cut"], "csnn")[-1] == "71.58 ± 0.80"  # the paper's own
    assert row(found["peptides-cut"], "graph-mixer")[-1] == "–"
    assert "† Tönshoff et al. 2023, tuned again." in found["peptides-cut"]


def test_the_search_shows_validation_alone_and_what_is_missing() -> None:
    text = contents(known_of(*a_search([0.21, 0.34], best_epoch=4)))["peptides-search"]
    assert row(text, "stalks of 2")[-3:] == ["34.00", "4 of 5", "61"]
    assert "66.00" not in text  # a test score
    assert "not run" in row(text, "recipe")
    assert "2 of 5 settings are recorded: nothing is chosen yet." in text
    whole = contents(known_of(*a_search([0.2, 0.3, 0.1, 0.1, 0.1])))["peptides-search"]
    assert "| **stalks of 2** |" in whole
    assert "nothing is chosen" not in whole


def test_a_csnn_of_another_setting_than_the_chosen_is_not_shown() -> None:
    search = a_search([0.2, 0.3, 0.1, 0.1, 0.1])
    other = record_of(cut_job("csnn", "32", "small"))
    assert recorded("cut", known_of(*search, other)) == {}
    chosen = record_of(cut_job("csnn", "32", "stalks of 2"))
    assert recorded("cut", known_of(*search, other, chosen)) == {"csnn": [chosen]}


def test_what_networks_need_is_read_off_their_recipes() -> None:
    text = contents({})["peptides-needs"]
    assert row(text, "graph-vit")[1:] == ["rwse", "codes", "128", "200", "plateau", "`[partition]`"]
    assert row(text, "drew")[1:] == ["lappe", "–", "128", "300", "plateau", "–"]
    assert len(text.splitlines()) == 2 + len(MODELS)


def test_the_committed_page_is_that_of_the_committed_records() -> None:
    text = (ROOT / "docs" / "peptides.md").read_text(encoding="utf-8")
    found = contents(read_known(ROOT / "results"))
    assert sorted(find_places(text)) == sorted(found)
    for place, content in found.items():
        assert fill_document(text, place, content) == text, place
