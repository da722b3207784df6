"""Figures of influence, range, receptive fields and energy, as vector graphics.

Needs matplotlib (``pip install coopsheaf[viz]``), which is loaded when a figure is drawn.
Figures are plain ``matplotlib.figure.Figure`` objects: no window, no global state.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from coopsheaf.analysis.energy import EnergyProfile
from coopsheaf.analysis.jacobians import Z95, HopProfile
from coopsheaf.analysis.receptive import ReceptiveGrowth
from coopsheaf.extras import load_extra
from coopsheaf.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which remain distinct with any kind of colour vision; markers and
# dashes tell the lines apart without colour too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")

_STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",  # words stay words
    "svg.hashsalt": "coopsheaf",  # the same figure gives the same file
}

# What each format writes about the time of its making, left out for the same reason.
_UNDATED: dict[str, dict[str, Any]] = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}


def influence_figure(
    profiles: Mapping[str, HopProfile], *, bound: Tensor | None = None, title: str | None = None
) -> Figure:
    """Root mean square influence by distance, one line per model, with 95 % intervals.

    Args:
        profiles: what :func:`~coopsheaf.analysis.influence_by_hop` found, by name.
        bound: ``(K + 1,)``, drawn beside them, for example
            ``average_by_hop(adjacency_bound(...), distances)``.
        title: above the figure.
    """
    figure, axes = _axes(profiles, "profiles", title)
    for k, (name, profile) in enumerate(profiles.items()):
        hops, rms = torch.arange(len(profile.rms)), profile.rms
        seen = rms > 0  # a logarithm has no place for zero
        axes.plot(hops[seen], rms[seen], label=name, **line_style(k))
        low, high = (side.sqrt() for side in profile.interval())
        if bool((profile.error > 0).any()):
            sure = seen & high.isfinite()
            floor = torch.maximum(low, rms / 100)  # an interval down to 0 ends somewhere
            axes.fill_between(
                hops[sure],
                floor[sure],
                high[sure],
                color=line_style(k)["color"],
                alpha=0.2,
                linewidth=0,
            )
    if bound is not None:
        axes.plot(
            torch.arange(len(bound)),
            bound.where(bound > 0, torch.nan),
            color="#777777",
            linestyle=":",
            label="bound by powers of Â",
        )
    axes.set_yscale("log")
    axes.set_xlabel("distance (hops)")
    axes.set_ylabel("influence (r.m.s. Frobenius norm\nof the Jacobian)")
    _whole_numbers(axes)
    axes.legend()
    return figure


def range_figure(profiles: Mapping[str, HopProfile], *, title: str | None = None) -> Figure:
    """The effective range of every model, with 95 % intervals."""
    figure, axes = _axes(profiles, "profiles", title)
    places = list(range(len(profiles)))
    for place, profile in zip(places, profiles.values(), strict=True):
        error = Z95 * profile.range_error
        axes.errorbar(
            [profile.effective_range],
            [place],
            xerr=[error] if error > 0 and error < float("inf") else None,
            color=line_style(place)["color"],
            marker=line_style(place)["marker"],
            capsize=3,
        )
    axes.set_yticks(places, list(profiles))
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("effective range (hops, weighted by squared influence)")
    axes.grid(False, axis="y")
    return figure


def energy_figure(profiles: Mapping[str, EnergyProfile], *, title: str | None = None) -> Figure:
    """Dirichlet energy over squared norm, by depth, one line per model."""
    figure, axes = _axes(profiles, "profiles", title)
    for k, (name, profile) in enumerate(profiles.items()):
        relative = profile.relative
        axes.plot(
            torch.arange(len(relative)),
            relative.where(relative > 0, torch.nan),
            label=name,
            **line_style(k),
        )
    axes.set_yscale("log")
    axes.set_xlabel("depth (layers)")
    axes.set_ylabel("relative Dirichlet energy E(X) / ‖X‖²")
    _whole_numbers(axes)
    axes.legend()
    return figure


def receptive_figure(growths: Mapping[str, ReceptiveGrowth], *, title: str | None = None) -> Figure:
    """Nodes in the receptive field by depth: the mean over targets, one line per model."""
    figure, axes = _axes(growths, "growths", title)
    for k, (name, growth) in enumerate(growths.items()):
        sizes = growth.sizes.double().mean(1)
        axes.plot(torch.arange(len(sizes)), sizes, label=name, **line_style(k))
    axes.set_xlabel("depth (layers)")
    axes.set_ylabel("receptive field (nodes, mean over targets)")
    axes.set_ylim(bottom=0)
    _whole_numbers(axes)
    axes.legend()
    return figure


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure, whole or not at all, in the format of its suffix: .svg, .pdf or .png."""
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in _UNDATED:
        raise ValueError(f"`path` must end in .svg, .pdf or .png; got {path.name!r}")
    buffer = io.BytesIO()
    with _matplotlib().rc_context(_STYLE):
        figure.savefig(buffer, format=kind, metadata=_UNDATED[kind], dpi=200)
    write_atomically(path, buffer.getvalue())
    return path


def _matplotlib() -> Any:
    return load_extra("matplotlib", "figures need")


def chart_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, whose parts make room for each other."""
    _matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def legend_above(figure: Figure, axes: Axes, title: str | None) -> None:
    """What the axes show, in one line above all of them, under the title."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=len(labels),
        frameon=False,
        fontsize=8,
        title=title,
        title_fontsize=9,
    )


def _axes(lines: Mapping[str, object], argument: str, title: str | None) -> tuple[Figure, Axes]:
    if not lines:
        raise ValueError(f"`{argument}` must hold at least one model; got none")
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(5.0, 3.2), layout="constrained")
        axes = figure.add_subplot()
    if title is not None:
        axes.set_title(title)
    return figure, axes


def line_style(k: int) -> dict[str, Any]:
    """How the k-th of many lines is told from the others, also without colours."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "linestyle": DASHES[k // len(COLOURS) % len(DASHES)],
        "markersize": 4,
    }


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
