"""Figures of sweeps."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from coopsheaf.figures.influence import save
from coopsheaf.figures.sweeps import history_figure, importance_figure
from coopsheaf.sweep.queue import TrialRow

START = datetime(2026, 1, 1)


def row(number: int, state: str, value: float | None, ended: int, **more: Any) -> TrialRow:
    return TrialRow(number, number, state, value, ended=START + timedelta(seconds=ended), **more)


ROWS = [
    row(0, "complete", 0.5, 30),
    row(1, "complete", 0.7, 10),  # ended first
    row(2, "pruned", 0.9, 20),  # over one split; not the best
    row(3, "fail", None, 25),
    row(4, "pruned", None, 40, error="diverged"),
    row(5, "complete", 0.6, 50),
    TrialRow(6, 6, "running"),
]


def lines(figure: Any) -> dict[str, list[tuple[float, float]]]:
    (axes,) = figure.axes
    return {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.lines}


def test_history_is_in_the_order_of_the_ends() -> None:
    figure = history_figure(ROWS, metric="accuracy", maximise=True, splits=3)
    drawn = lines(figure)
    assert drawn["completed"] == [(1, 0.7), (3, 0.5), (5, 0.6)]
    assert drawn["pruned"] == [(2, 0.9)]
    assert drawn["best so far"] == [(1, 0.7), (3, 0.7), (5, 0.7), (5, 0.7)]
    assert drawn["came to nothing"] == [(4, 0.02)]
    (axes,) = figure.axes
    assert axes.get_ylabel() == "validation accuracy, mean of 3 splits"


def test_lower_may_be_better() -> None:
    figure = history_figure(ROWS, metric="mae", maximise=False, splits=1)
    assert lines(figure)["best so far"] == [(1, 0.7), (3, 0.5), (5, 0.5), (5, 0.5)]
    assert figure.axes[0].get_ylabel() == "validation mae"


def test_a_history_without_values() -> None:
    drawn = lines(history_figure(ROWS[4:5], metric="ap", maximise=True, splits=1, title="none"))
    assert drawn == {"came to nothing": [(1, 0.02)]}
    with pytest.raises(ValueError, match="`rows` must hold at least one"):
        history_figure(ROWS[6:], metric="ap", maximise=True, splits=1)


def test_importances_are_sorted() -> None:
    figure = importance_figure({"train.lr": 0.25, "model.stalk_dim": 0.75, "model.act": 0.0})
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["model.act", "train.lr", "model.stalk_dim"]  # fmt: skip
    assert [bar.get_width() for bar in axes.patches] == [0.0, 0.25, 0.75]
    assert [text.get_text() for text in axes.texts] == ["0%", "25%", "75%"]
    with pytest.raises(ValueError, match="`importances` must hold at least one"):
        importance_figure({})


def test_figures_are_written_the_same_twice(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save(history_figure(ROWS, metric="accuracy", maximise=True, splits=3), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert "best so far" in (tmp_path / "one.svg").read_text()
