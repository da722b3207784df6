"""The table of rare positives: what the documentation shows is what was measured, and is enough."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
decisions = SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks" / "decisions.py")))
ROWS = list(decisions.ROWS)


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = json.loads(decisions.RESULTS.read_text("utf-8"))
    assert list(found) == [str(seed) for seed in range(10)]
    return found


def test_the_documentation_shows_what_was_measured(
    measured: dict[str, dict[str, dict[str, float]]],
) -> None:
    text = (ROOT / "docs" / "decisions.md").read_text("utf-8")
    assert decisions.table(measured) in text


def test_weights_calibration_and_threshold_together(
    measured: dict[str, dict[str, dict[str, float]]],
) -> None:
    """Probabilities can be trusted with class weights, and decisions are no worse than before."""
    first, last = ROWS[0], ROWS[-1]
    assert all(found[last]["ece"] <= 0.05 for found in measured.values())
    assert fmean(found[last]["f1"] for found in measured.values()) >= fmean(
        found[first]["f1"] for found in measured.values()
    )
