"""Examples run; the code of README and documentation is in ``test_docs.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(*command: str, cwd: Path) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:coopsheaf", *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# What makes a long example short.
ARGUMENTS = {"02_minesweeper.py": ["runs/demo", "4"], "06_fraud.py": ["4"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(path: Path, tmp_path: Path) -> None:
    assert run(str(path), *ARGUMENTS.get(path.name, []), cwd=tmp_path).strip()


def test_there_are_examples() -> None:
    assert EXAMPLES
