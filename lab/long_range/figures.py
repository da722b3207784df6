"""Figures of the long-range tasks: who carries a label how far, and influence by distance."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from coopsheaf.figures.influence import chart_figure, line_style
from lab.long_range.inside import Inside
from lab.long_range.plan import CONTESTANTS, TASKS
from lab.long_range.records import Found
from lab.long_range.tables import value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = "ring-transfer-10"


def long_range_figure(found: Found, looked: Sequence[Inside]) -> Figure:
    """Left: test accuracy of transfer over rings by distance; right: influence in one of them."""
    figure = chart_figure(9.4, 3.8)
    left, right = figure.subplots(1, 2)
    for name in CONTESTANTS:
        points = _curve(found, name)
        if points:
            left.plot([p[0] for p in points], [p[1] for p in points], label=name, **_style(name))
    left.axhline(20, color="#777777", linestyle=":", linewidth=1)
    left.set(xlabel="hops from source to target", ylabel="labels that arrive, per cent")
    left.set_title("transfer over rings", fontsize=9)
    for row in looked:
        if row.task == SHOWN:
            top = max(row.influence) or 1.0
            heights = [height / top for height in row.influence]
            right.plot(range(len(heights)), heights, label=row.contestant, **_style(row.contestant))
    right.set_yscale("log")
    right.set(xlabel="hops from the target", ylabel="influence, the largest = 1")
    right.set_title(f"{SHOWN}, trained, exact", fontsize=9)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right center", fontsize=7)
    return figure


def _curve(found: Found, name: str) -> list[tuple[int, float]]:
    points = []
    for task, what in TASKS.items():
        if task.startswith("ring-transfer-") and (name, task) in found:
            values = [v for v in map(value, found[name, task]) if v is not None]
            points.append((what.hops, fmean(values)))
    return sorted(points)


def _style(name: str) -> dict[str, Any]:
    return line_style(list(CONTESTANTS).index(name)) | {"linewidth": 1.2}
