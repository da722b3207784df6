"""Figures of what nodes do: actions by layer, the scales behind them, and how sure that is.

Needs matplotlib (``pip install coopsheaf[viz]``). Everything is drawn from an
:class:`~coopsheaf.analysis.actions.ActionReport`; nothing is computed with the network again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from coopsheaf.analysis.actions import ACTIONS, ActionReport, LayerActions, sensitivity
from coopsheaf.figures.influence import COLOURS, chart_figure, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACTION_COLOURS = ("#009E73", "#0072B2", "#E69F00", "#CC79A7")
"""One colour per action; hatches and dashes tell them apart without colour."""

ACTION_HATCHES = ("", "////", "....", "xxxx")
_DASHES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)))
_BINS = 40
_WIDE = 30.0  # scales that differ by more than this are shown by their logarithms
_LABELLED = 0.07  # a smaller piece of a bar has no room for its number


def composition_figure(report: ActionReport, *, title: str | None = None) -> Figure:
    """The share of nodes that do each of the four things, one bar per layer."""
    layers = _layers(report)
    shares = report.counts.double()
    shares = shares / shares.sum(1, keepdim=True).clamp(min=1)
    figure = chart_figure(5.0, 1.1 + 0.36 * len(layers))
    axes = figure.add_subplot()
    places = range(len(layers))
    start = torch.zeros(len(layers), dtype=torch.float64)
    for k, action in enumerate(ACTIONS):
        share = shares[:, k]
        axes.barh(
            places,
            share.tolist(),
            left=start.tolist(),
            height=0.72,
            color=ACTION_COLOURS[k],
            hatch=ACTION_HATCHES[k],
            edgecolor="white",
            linewidth=0.8,
            label=action.upper(),
        )
        for place, (size, left) in enumerate(zip(share.tolist(), start.tolist(), strict=True)):
            if size >= _LABELLED:
                axes.text(
                    left + size / 2,
                    place,
                    f"{100 * size:.0f} %",
                    ha="center",
                    va="center",
                    fontsize=8,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "linewidth": 0},
                )
        start = start + share
    axes.set_yticks(list(places), [f"layer {place + 1}" for place in places])
    axes.set_ylim(len(layers) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"share of the {len(layers[0].action):,} nodes")
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    legend_above(figure, axes, title)
    return figure


def scales_figure(report: ActionReport, *, title: str | None = None) -> Figure:
    """How the scales of source and target maps are distributed, and the strengths they result in.

    One row per layer. On the left the scales as they were learned, on the right the effective
    strengths, with the threshold below which a node counts as silent. For a CO-GNN the scales are
    shares of draws, and there is one column.
    """
    layers = _layers(report)
    drawn = report.family == "cognn"
    columns = [("source_scale", "target_scale")]
    if not drawn:
        columns.append(("broadcasting", "listening"))
    figure = chart_figure(3.6 if drawn else 7.0, 0.9 + 1.25 * len(layers))
    grid = figure.subplots(len(layers), len(columns), squeeze=False, sharex="col")
    names = ("source, broadcast", "target, listen")
    for column, pair in enumerate(columns):
        values = [[getattr(layer, name) for name in pair] for layer in layers]
        edges = _edges([value for row in values for value in row], shares=drawn)
        for row, axes in enumerate(grid[:, column]):
            for k, value in enumerate(values[row]):
                _histogram(axes, value, edges, k, names[k])
            if column == 1:
                axes.axvline(report.threshold, color="#222222", linestyle="--", linewidth=1.0)
            if _logarithmic(edges):
                axes.set_xscale("log")
            axes.set_ylim(bottom=0)
            _plain(axes)
            if column == 0:
                axes.set_ylabel(f"layer {row + 1}\nnodes", fontsize=8)
    first = "share of draws" if drawn else "scale of the map"
    for axes, text in zip(
        grid[-1],
        (first, "effective strength, layer's r.m.s. = 1 (dashed: threshold)"),
        strict=False,
    ):
        axes.set_xlabel(text, fontsize=9)
    legend_above(figure, grid[0, 0], title)
    return figure


def sensitivity_figure(report: ActionReport, *, title: str | None = None) -> Figure:
    """The shares of the actions for other thresholds than the one that was used (dotted)."""
    layers = _layers(report)
    found = sensitivity(report)
    columns = 2 if len(layers) == 4 else min(len(layers), 3)
    rows = -(-len(layers) // columns)
    figure = chart_figure(max(2.3 * columns, 4.2), 0.7 + 1.9 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for place, axes in enumerate(grid.flat):
        if place >= len(layers):
            axes.set_visible(False)
            continue
        for k, action in enumerate(ACTIONS):
            axes.plot(
                found.thresholds.tolist(),
                found.shares[place, :, k].tolist(),
                color=ACTION_COLOURS[k],
                linestyle=_DASHES[k],
                linewidth=1.6,
                label=action.upper(),
            )
        axes.axvline(report.threshold, color="#222222", linestyle=":", linewidth=1.2)
        if report.family == "csnn":
            axes.set_xscale("log")
        axes.set_ylim(-0.02, 1.02)
        axes.set_title(f"layer {place + 1}", fontsize=9)
        _plain(axes)
        if place % columns == 0:
            axes.set_ylabel("share of nodes", fontsize=9)
        if place + columns >= len(layers):
            # The lowest one of its column, above which the others hide their numbers.
            axes.set_xlabel("threshold", fontsize=9)
            axes.tick_params(labelbottom=True)
    legend_above(figure, grid[0, 0], title)
    return figure


def _layers(report: ActionReport) -> tuple[LayerActions, ...]:
    if not isinstance(report, ActionReport):
        raise ValueError(f"`report` must be an ActionReport; got {type(report).__name__}")
    if not report.layers:
        raise ValueError("`report` must hold at least one layer; got none")
    return report.layers


def _plain(axes: Axes) -> None:
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _edges(values: list[Tensor], *, shares: bool) -> Tensor:
    """The edges of the bins, the same for all layers; logarithmic if the scales span decades."""
    if shares:
        return torch.linspace(0, 1, _BINS // 2 + 1, dtype=torch.float64)
    known = torch.cat([value[value.isfinite()].double() for value in values])
    positive = known[known > 0]
    if not positive.numel():
        return torch.linspace(0, 1, _BINS + 1, dtype=torch.float64)
    low, high = float(positive.min()), float(positive.max())
    if high > _WIDE * low:
        return torch.logspace(
            float(positive.min().log10()) - 0.01,
            float(positive.max().log10()) + 0.01,
            _BINS + 1,
            dtype=torch.float64,
        )
    return torch.linspace(0, 1.02 * high, _BINS + 1, dtype=torch.float64)


def _logarithmic(edges: Tensor) -> bool:
    return bool(edges[0] > 0)


def _histogram(axes: Axes, value: Tensor, edges: Tensor, k: int, label: str) -> None:
    """Source filled, target as an outline on top of it; zeros of a logarithmic axis are counted."""
    colour = (COLOURS[1], COLOURS[0])[k]
    known = value[value.isfinite()].double()
    counts = torch.histogram(known.clamp(max=float(edges[-1])), edges).hist
    axes.stairs(
        counts.tolist(),
        edges.tolist(),
        fill=k == 0,
        color=colour,
        alpha=0.55 if k == 0 else 1.0,
        linewidth=1.4,
        label=label,
    )
    lost = int((known < edges[0]).sum())
    if lost:
        axes.text(
            0.02,
            0.95 - 0.16 * k,
            f"{lost:,} at 0",
            transform=axes.transAxes,
            color=colour,
            fontsize=7.5,
            va="top",
        )
