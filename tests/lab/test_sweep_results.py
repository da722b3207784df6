"""Finished sweeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report.example import make

from coopsheaf.train.records import RecordError, append_record
from lab.sweep_results import find_sweeps, sweep_table


def write_sweep(folder: Path, vals: dict[str, list[float | None]], splits: list[int]) -> None:
    for name, scores in vals.items():
        for split, val in zip(splits, scores, strict=False):
            config = {"model": {"stalk_dim": ord(name)}, "train": {"lr": None}}
            more = {"config_hash": name, "config": config, "parameters": 200 - ord(name)}
            record = make(split=split, val=val, seconds=30.0, **more)
            append_record(folder / "records" / "csnn-texas.jsonl", record)
    space = {"model.stalk_dim": [97, 98, 99], "train.lr": {"low": 1}, "train.epochs": [5]}
    plan = {"splits": splits, "sampler": "tpe", "space": {"settings": space}}
    (folder / "sweep.json").write_text(json.dumps({"plan": plan}))


def test_sweeps_say_their_size_and_what_they_found(tmp_path: Path) -> None:
    scores = {"a": [0.5, 0.6], "b": [0.7, 0.9], "c": [0.4], "d": [0.99, None], "e": [0.8, 0.8]}
    folder = tmp_path / "csnn-texas"
    write_sweep(folder, scores, [0, 2])
    append_record(folder / "records" / "csnn-texas.jsonl", make(config_hash="b", val=0.0))  # again
    line = sweep_table(find_sweeps(tmp_path)).splitlines()[-1]
    # Of the equals b and e the smaller network.
    assert line == (
        "| csnn-texas | 5 | 3 | splits 0, 2 | tpe | 80.00 | 4 | stalk\\_dim 101, lr none (e) |"
    )


def test_a_sweep_without_a_whole_trial_found_nothing(tmp_path: Path) -> None:
    write_sweep(tmp_path / "gcn-film", {"a": [0.5]}, [0, 1])
    assert sweep_table(find_sweeps(tmp_path)) == "No sweep is recorded yet.\n"


@pytest.mark.parametrize("text", ["{", "{}", '{"plan": 3}', '{"plan": {"splits": [0]}}'])
def test_a_damaged_description_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "sweep.json").write_text(text)
    with pytest.raises(RecordError, match=r"a/sweep.json: not the description of a sweep"):
        find_sweeps(tmp_path)
