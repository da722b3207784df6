"""What the documents say of training steps is what the records say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import headlines
from shared import read_json_lines


def record(kernel: str, ms: float, allocator: str = "kept", **more: object) -> dict:
    base = {"graph": "tolokers", "threads": 1, "floor_ms": 40.0, "peak_mb": 10 * ms}
    return {**base, "kernel": kernel, "step_ms": ms, "allocator": allocator, **more}


RECORDS = [
    record("baseline", 9000.0),
    record("factored", 200.0),
    record("gcn", 400.0),
    record("gcn-cached", 250.0),
    record("baseline", 27000.0, "plain"),
    record("factored", 300.0, "plain"),
    record("gcn", 1600.0, "plain"),
    record("factored", 1.0, threads=2),
]


def test_both_sides_of_a_ratio_keep_memory() -> None:
    text = headlines.sentence(headlines.find_steps(RECORDS))
    for said in ("0.2 s on one core", "takes 45 times as long, and 90 times the memory", "0.50 of its time (0.80 on", "3.0, 4.0 and 1.5 times faster"):  # fmt: skip
        assert said in text


def test_native_code_is_ours_where_it_was_measured() -> None:
    text = headlines.table(headlines.find_steps([*RECORDS, record("native", 100.0)]))
    assert "| tolokers | 1,038,000 | 0.1 s | 2.50 × | 90 × | – | 0.25 × | 0.40 × |" in text
    assert "minesweeper" not in text


def test_what_was_not_measured_is_not_said() -> None:
    steps = headlines.find_steps([record("baseline", 90.0), record("factored", 2.0), record("gcn", 4.0)])  # fmt: skip
    assert "cached" not in headlines.sentence(steps)
    assert "alone" not in headlines.sentence(steps)
    assert headlines.table(steps).endswith("| 0.50 × | – |")


def test_only_what_is_between_the_marks_is_replaced() -> None:
    text = f"a\n{headlines.BEGIN}\nold\n{headlines.END}\nb"
    assert headlines.replaced(text, "new") == text.replace("old", "new")
    with pytest.raises(ValueError, match="must have"):
        headlines.replaced("a", "new")


def test_the_documents_are_up_to_date() -> None:
    for path, block in headlines.blocks(read_json_lines(headlines.RECORDS)).items():
        text = path.read_text(encoding="utf-8")
        assert headlines.replaced(text, block) == text, "run: python benchmarks/headlines.py"
