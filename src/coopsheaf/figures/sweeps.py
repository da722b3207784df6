"""Figures of a sweep: how its trials went, and which settings made the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coopsheaf.figures.influence import COLOURS, _axes, _whole_numbers
from coopsheaf.sweep.queue import TrialRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def history_figure(
    rows: Sequence[TrialRow],
    *,
    metric: str,
    maximise: bool,
    splits: int,
    title: str | None = None,
) -> Figure:
    """The value of every trial in the order in which they ended, and the best one so far.

    Open marks are pruned trials, which are means over fewer splits and cannot be the best. Trials
    without a value stand as crosses at the bottom.

    Args:
        rows: the trials of a sweep.
        metric: what their values are.
        maximise: whether a higher value is better.
        splits: over how many splits a completed trial is averaged.
        title: above the figure.
    """
    ended = sorted(
        (row for row in rows if row.finished),
        key=lambda row: (row.ended is None, row.ended, row.number),
    )
    figure, axes = _axes(dict(enumerate(ended)), "rows", title)  # type: ignore[arg-type]
    places = {row.number: place for place, row in enumerate(ended, start=1)}
    marks: dict[str, Any] = {"color": COLOURS[0], "linestyle": "", "markersize": 5}
    for state, face, label in (
        ("complete", COLOURS[0], "completed"),
        ("pruned", "white", "pruned"),
    ):
        some = [(places[row.number], row.value) for row in ended if row.state == state]
        known = [(place, value) for place, value in some if value is not None]
        if known:
            at, values = zip(*known, strict=True)
            axes.plot(at, values, marker="o", markerfacecolor=face, label=label, **marks)
    best: list[tuple[int, float]] = []
    for row in ended:
        if row.state != "complete" or row.value is None:
            continue
        value = row.value
        if best:
            value = max(value, best[-1][1]) if maximise else min(value, best[-1][1])
        best.append((places[row.number], value))
    if best:
        best.append((len(ended), best[-1][1]))
        at, values = zip(*best, strict=True)
        axes.plot(at, values, drawstyle="steps-post", color=COLOURS[1], label="best so far")
    lost = [places[row.number] for row in ended if row.value is None]
    if lost:
        axes.plot(
            lost,
            [0.02] * len(lost),
            transform=axes.get_xaxis_transform(),
            linestyle="",
            marker="x",
            color="#777777",
            label="came to nothing",
        )
    axes.set_xlim(0.5, len(ended) + 0.5)
    axes.set_xlabel("trial, in the order in which they ended")
    mean = f", mean of {splits} splits" if splits > 1 else ""
    axes.set_ylabel(f"validation {metric}{mean}")
    _whole_numbers(axes)
    axes.legend()
    return figure


def importance_figure(importances: Mapping[str, float], *, title: str | None = None) -> Figure:
    """The share of each setting in being among the best quarter of the trials, largest on top.

    Args:
        importances: by ``section.field``; they sum to 1.
        title: above the figure.
    """
    figure, axes = _axes(importances, "importances", title)
    figure.set_size_inches(5.0, 0.9 + 0.28 * len(importances))
    ordered = sorted(importances.items(), key=lambda item: item[1])
    names, shares = zip(*ordered, strict=True)
    places = range(len(names))
    bars = axes.barh(places, shares, color=COLOURS[0], height=0.65)
    axes.bar_label(bars, [f"{share:.0%}" for share in shares], padding=3, fontsize=8)
    axes.set_yticks(list(places), names)
    axes.set_xlim(0, 1.12 * max(*shares, 1e-9))
    axes.set_xlabel("importance (PED-ANOVA, best quarter of the trials)")
    axes.grid(False, axis="y")
    return figure
