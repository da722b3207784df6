"""The program called in this process, away from the user's cache, the network and the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program
from isolation import cache as cache


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Program:
    """Runs commands in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Program(capfd)
