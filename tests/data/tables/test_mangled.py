"""A few hundred mangled tables; ``benchmarks/mangle.py`` tries as many thousands as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import load_tables

pytest.importorskip("pyarrow")

ROOT = Path(__file__).parents[3]


def mangle(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    words = (*words, "--failures", str(folder / "failures"))
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "mangle.py"), *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_a_sound_dataset_or_one_line(tmp_path: Path) -> None:
    done = mangle(tmp_path, "--cases", "300", "--commands", "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "case: dataset: " in done.stdout  # not everything is refused
    assert "0 failures" in done.stdout


def test_a_feather_file_that_ended_the_process(tmp_path: Path) -> None:
    done = mangle(tmp_path, "--seed", "9", "--only", "998")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "error"


def test_long_options_are_cut() -> None:
    nodes, edges = {"id": ["a", "b"]}, {"source": ["a"], "target": ["b"]}
    with pytest.raises(DataError, match=r"^--unlabelled must be left out .{1,150}$"):
        load_tables(nodes, edges, task="link", unlabelled=["x" * 2000])
    with pytest.raises(DataError, match=r"^--split must be left out .*; got 'part'$"):
        load_tables(nodes, edges, task="link", split="part")
