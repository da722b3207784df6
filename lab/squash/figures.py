"""Figures of the over-squashing experiments: accuracy by depth, and runs on the noisy path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from coopsheaf.figures.influence import COLOURS, MARKERS, _matplotlib
from lab.noisy_path import LENGTH, PathResult
from lab.squash.published import PUBLISHED_CURVES
from lab.squash.records import SquashRecord, latest
from lab.squash.settings import TREE_MODELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES = ("-", "--", "-.", ":")


def depth_figure(records: Iterable[SquashRecord], *, title: str | None = None) -> Figure:
    """Best training accuracy by depth beside the published curves.

    On the left what was measured, on the right what was published; one colour per model. Open
    marks are points that a cap ended before they were fitted: they are lower bounds. The dotted
    line is chance.
    """
    kept = latest(records)
    _matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    depths = sorted({record.depth for record in kept} | set(range(2, 9)))
    for axes in (left, right):
        axes.plot(depths, [2.0**-r for r in depths], color="#777777", linestyle=":", label="chance")
    curves: dict[str, dict[int, SquashRecord]] = {}
    for record in kept:  # of several budgets or seeds the best one
        curve = curves.setdefault(record.tree_model.label, {})
        other = curve.get(record.depth)
        if other is None or other.train_best < record.train_best:
            curve[record.depth] = record
    used: dict[str, int] = {}
    for label, curve in curves.items():
        name = next(iter(curve.values())).model
        style = _style(name, used.setdefault(name, 0))
        used[name] += 1
        points = sorted(curve.items())
        left.plot([r for r, _ in points], [p.train_best for _, p in points], label=label, **style)
        open_ones = [(r, p.train_best) for r, p in points if p.stopped in ("minutes", "blocks")]
        if open_ones:
            at, height = zip(*open_ones, strict=True)
            left.plot(
                at,
                height,
                linestyle="",
                marker=style["marker"],
                color=style["color"],
                markerfacecolor="white",
                markersize=5,
            )
    for name, printed in PUBLISHED_CURVES.items():
        items = sorted(printed.accuracy.items())
        right.plot(
            [r for r, _ in items],
            [share for _, share in items],
            label=TREE_MODELS[name] + ("" if printed.exact else " (read off)"),
            **_style(name, 0),
        )
    left.set_title("measured" if title is None else title)
    right.set_title("published")
    for axes in (left, right):
        axes.set_xlabel("depth r")
        axes.set_xticks(depths)
        axes.set_ylim(-0.03, 1.05)
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.legend(fontsize=6, frameon=False)
    left.set_ylabel("training accuracy")
    return figure


def path_figure(result: PathResult) -> Figure:
    """One run on the noisy path, a row per layer; the number of an arrow is its significance."""
    _matplotlib()
    from matplotlib.figure import Figure

    layers = len(result.arrows)
    figure = Figure(figsize=(5.2, 1.3 * layers), layout="constrained")
    for t, axes in enumerate(figure.subplots(layers, 1, squeeze=False)[:, 0]):
        for node in range(LENGTH):
            axes.annotate(
                str(node),
                (node, 0),
                ha="center",
                va="center",
                bbox={"boxstyle": "circle", "facecolor": "white", "edgecolor": "black"},
            )
        for j, i in result.arrows[t]:
            up = 0.12 if j > i else -0.12
            axes.annotate(
                "",
                (i + (0.16 if j > i else -0.16), up),
                (j - (0.16 if j > i else -0.16), up),
                arrowprops={"arrowstyle": "->"},
            )
            axes.text(
                (i + j) / 2, 2.2 * up, f"{result.in_layer[t][i][j]:.2g}", ha="center", va="center"
            )
        axes.set_xlim(-0.5, LENGTH - 0.5)
        axes.set_ylim(-0.5, 0.5)
        axes.set_axis_off()
        axes.set_title(f"layer {t + 1}", fontsize=8, loc="left")
    return figure


def _style(name: str, number: int) -> dict[str, Any]:
    k = list(TREE_MODELS).index(name)
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[(k + number) % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
        "markersize": 4,
    }
