"""``torchrun ... -m coopsheaf train``: real processes, one voice, one record."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli.program import SMALL, Program, records, write_tables

from coopsheaf.train.run import load_run, read_run_info

pytest.importorskip("pymetis")


def torchrun(folder: Path, *words: object) -> subprocess.Popen[str]:
    command = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "-m", "coopsheaf")  # fmt: skip
    return subprocess.Popen(
        [*map(str, (*command, *words))],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.thorough
def test_two_processes_stop_resume_and_record_once(tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, n=120)
    words = (
        "train", "--nodes", nodes, "--edges", edges, "--target", "label", "--out", "run", *SMALL,
        "--set", "train.patience=0", "--set", "batch.kind=clusters", "--set", "batch.parts=8",
        "--set", "batch.size=2", "--epochs", 40,
    )  # fmt: skip
    job = torchrun(tmp_path, *words)
    end = time.monotonic() + 120
    while not (tmp_path / "run" / "run.json").exists():
        assert time.monotonic() < end
        assert job.poll() is None, job.communicate()
        time.sleep(0.01)
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=120)
    assert job.returncode != 0
    assert err.count("the state is in run. Continue with the same command and --resume") == 1
    assert "coopsheaf: error" not in err
    assert out.count("batches of clusters (size 2, parts 8): 2 steps per epoch") == 1
    assert read_run_info(tmp_path / "run")["status"] == "interrupted"
    assert not (tmp_path / "results").exists()
    out, err = torchrun(tmp_path, *words, "--resume").communicate(timeout=240)
    assert out.count("split 0: ") == 1, err
    assert "Initializing distributed" not in err
    (record,) = records(tmp_path / "results")
    assert record.epochs == 40
    assert record.config["train"]["processes"] == 2
    assert load_run(tmp_path / "run").info["batches"]["steps"] == 2


def test_errors_name_the_process_and_other_commands_are_refused(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    for name, value in zip(names, ("test", "1", "2", "2"), strict=True):
        monkeypatch.setenv(name, value)
    done = program("models")
    assert done.code == 2
    line = (
        "coopsheaf: error (process 1 of 2): torchrun goes with `train` alone; start other commands"
    )
    assert done.err.startswith(line)
