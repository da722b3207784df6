"""Finished sweeps."""

from __future__ import annotations

import json
from pathlib import Path

from bench.example import make

from coopsheaf.bench.records import append_record
from coopsheaf.bench.sweep_results import find_sweeps, sweep_table


def test_sweeps_say_their_size_and_what_they_found(tmp_path: Path) -> None:
    folder = tmp_path / "csnn-texas"
    for name, vals in {"a": [0.5, 0.6], "b": [0.7, 0.9], "c": [0.4]}.items():
        for split, val in enumerate(vals):
            config = {"model": {"stalk_dim": ord(name)}, "train": {"lr": 0.1}}
            record = make(split=split, val=val, config_hash=name, config=config, seconds=30.0)
            append_record(folder / "records" / "csnn-texas.jsonl", record)
    space = {"settings": {"model.stalk_dim": [97, 98, 99], "train.lr": [0.1]}}
    plan = {"splits": [0, 1], "sampler": "tpe", "space": space}
    (folder / "sweep.json").write_text(json.dumps({"plan": plan}))
    line = sweep_table(find_sweeps(tmp_path)).splitlines()[-1]
    assert line == "| csnn-texas | 3 (1 given up) | 0–1 | tpe | 80.00 | 2 | stalk_dim 98 (b) |"


def test_a_sweep_without_a_whole_trial_found_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "gcn-film"
    append_record(folder / "records" / "a.jsonl", make())
    plan = {"splits": [0, 1], "sampler": "tpe", "space": {"settings": {}}}
    (folder / "sweep.json").write_text(json.dumps({"plan": plan}))
    assert sweep_table(find_sweeps(tmp_path)) == "No sweep is recorded yet.\n"
