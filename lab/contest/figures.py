"""The figure of contests: scores by the share of arcs whose direction tells the class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from coopsheaf.figures.influence import chart_figure, line_style
from lab.contest.directions import LEAGUE, curves
from lab.contest.entries import Entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS: dict[str, Any] = {"linewidth": 1.2, "elinewidth": 0.8, "capsize": 2}


def direction_figure(entries: Iterable[Entry]) -> Figure:
    """Mean test accuracy of what validation chose, bars of a deviation over splits each way."""
    found = curves(entries)
    if not found:
        raise ValueError(
            "--figure needs a contestant of the league directions that has finished; "
            "run `python -m lab contest --league directions` first"
        )
    figure = chart_figure(7.2, 3.6)
    axes = figure.add_subplot()
    for k, name in enumerate(LEAGUE.contestants):
        if name in found:
            shares, means, spreads = zip(*found[name], strict=True)
            heights, bars = ([100 * value for value in some] for some in (means, spreads))
            axes.errorbar(shares, heights, yerr=bars, label=name, **line_style(k), **BARS)
    axes.axhline(50, color="#777777", linestyle=":", linewidth=1)  # chance: two classes
    axes.set(xlabel="arcs that tell the class by direction, per cent", ylabel="test accuracy")
    axes.set_xticks([0, 25, 50, 75, 100])
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure
