"""The laboratory's program, called in this process and in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program
from isolation import cache as cache

from lab.__main__ import main


@pytest.fixture
def laboratory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Program:
    """Runs commands of ``python -m lab`` in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Program(capfd, main)
