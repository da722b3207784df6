"""Real processes: Ctrl-C and a later --resume, two benches of one recipe at once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import torch
from cli.program import SMALL, Program, records, start, wait_for, write_tables
from published import REAL_DATA, needs_real_data

from coopsheaf.cli import dispatch
from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.run import load_run, read_run_info


def test_control_c_keeps_the_state_and_resume_ends_the_same(
    program: Program, tmp_path: Path
) -> None:
    nodes, edges = write_tables(tmp_path)
    words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 250, *SMALL, "--set", "train.patience=0", "--out", "run")  # fmt: skip
    folder = tmp_path / "process"
    folder.mkdir()
    process = start(folder, *words)
    wait_for(folder / "run" / "run.json")
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    process.join(120)
    assert process.exitcode == 130
    (log,) = folder.glob("err-*.txt")
    assert "stopping after this epoch" in log.read_text()
    assert "--resume" in log.read_text()
    assert "Traceback" not in log.read_text()
    assert not (folder / "results").exists()
    info = read_run_info(folder / "run")
    assert info["status"] == "interrupted"
    assert 0 < info["result"]["epochs"] < 250
    assert (folder / "run" / "state.safetensors").exists()

    resumed = start(folder, *words, "--resume")
    program.ok(*words)  # meanwhile, here, without an interruption
    resumed.join(120)
    assert resumed.exitcode == 0
    whole, pieces = load_run(Path("run")), load_run(folder / "run")
    for key in ("scores", "history", "best_epoch", "epochs"):
        assert whole.info["result"][key] == pieces.info["result"][key]
    ours, theirs = (load_tensors(p / "run/model.safetensors")[0] for p in (Path(), folder))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not (folder / "run" / "state.safetensors").exists()
    assert [record.test for record in records(folder / "results")] == [
        record.test for record in records()
    ]


def test_an_interruption_outside_training_is_130(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(command: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(dispatch, "_call", interrupt)
    done = program("models")
    assert (done.code, done.err) == (130, "coopsheaf: interrupted\n")


@needs_real_data
def test_two_benches_at_once_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[recipe]\nname = "mine"\n[model]\nname = "csnn"\nhidden_channels = 4\nstalk_dim = 2\n'
        '[data]\nname = "texas"\n[train]\nepochs = 15\n'
    )
    words = ("bench", "mine.toml", "--splits", "0-3", "--data-dir", REAL_DATA)
    processes = [start(tmp_path, *words) for _ in range(2)]
    for process in processes:
        process.join(240)
    assert [process.exitcode for process in processes] == [0, 0]
    found = records(tmp_path / "results")
    assert sorted(record.split for record in found) == [0, 1, 2, 3]
    assert all(record.epochs == 15 for record in found)
    lines = (tmp_path / "results/csnn-texas.jsonl").read_text("utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == 4
    said = (tmp_path / "out.txt").read_text("utf-8").splitlines()
    assert len([line for line in said if line.endswith("(recorded already)")]) == 4
    for record in found:
        (folder,) = (tmp_path / "runs").glob(f"csnn-texas-{record.split}-*")
        assert load_run(folder).info["result"]["scores"]["test"] == record.test
