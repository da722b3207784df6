"""The program called in this process, away from the user's cache, the network and the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Program


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, which is where downloads would go if they were allowed."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setenv("COOPSHEAF_OFFLINE", "1")
    monkeypatch.delenv("COOPSHEAF_DATA", raising=False)
    return base / "coopsheaf"


@pytest.fixture
def program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Program:
    """Runs commands in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Program(capfd)
