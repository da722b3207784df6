"""No test reads the user's cache or touches the network: for the conftests of the rooms that could."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, which is where downloads would go if they were allowed."""
    base = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    monkeypatch.setenv("COOPSHEAF_OFFLINE", "1")
    monkeypatch.delenv("COOPSHEAF_DATA", raising=False)
    return base / "coopsheaf"
