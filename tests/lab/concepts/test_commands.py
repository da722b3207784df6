"""``python -m lab figures``."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from cli.program import Program

pytest.importorskip("matplotlib")

CONCEPTS = ["four-actions", "four-node-path", "sheaf-on-an-edge", "small-spectra", "who-listens"]


def test_the_ideas_are_drawn(laboratory: Program) -> None:
    out = laboratory.ok("figures", "new/folder")
    assert sorted(path.stem for path in Path("new/folder").iterdir()) == CONCEPTS
    assert sorted(out.splitlines()) == [f"figure: new/folder/{name}.svg" for name in CONCEPTS]
    for file in Path("new/folder").iterdir():
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert "exists already; use --force" in laboratory("figures", "new/folder").error
    assert "`--format` must be one of" in laboratory("figures", "a", "--format", "gif").error
