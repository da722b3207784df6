r"""Spectra of the operators of sheaves and of the layers of a CSNN, in the complex plane.

Needs matplotlib (``pip install coopsheaf[viz]``) to draw. The Laplacian of an undirected sheaf is
symmetric: its eigenvalues are real and, normalised, lie in [0, 2]. Those of directed sheaves are
complex in general and may have negative real parts; so may those of the product
:math:`(\Delta^{in})^\top \Delta^{out}` with which a CSNN diffuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from coopsheaf.analysis.spectra import Spectra
from coopsheaf.figures.influence import COLOURS, chart_figure, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = 600
"""Rows of the matrices of :func:`layer_spectra`: all of them take well below a minute."""


# The operators of a layer, from left to right, and what stands above them.
_COLUMNS = {
    "paper": {"first": "Δₒᵤₜ", "second": "Δᵢₙᵀ", "composed": "Δᵢₙᵀ Δₒᵤₜ"},
    # Its own order, with its own degrees.
    "released": {"first": "Δᵢₙᵀ", "second": "Δₒᵤₜ", "composed": "Δₒᵤₜ Δᵢₙᵀ"},
    "messages": {"first": "edges of Δₒᵤₜ"},
}


def spectra_figure(
    after: Spectra, before: Spectra | None = None, *, title: str | None = None
) -> Figure:
    """The spectra of all layers: a row per layer, a column per operator.

    Args:
        after: of the trained network.
        before: of the same network with the parameters it began with, drawn beneath.
        title: above the figure.
    """
    if before is not None and len(before.layers) != len(after.layers):
        raise ValueError(
            f"`before` must have the {len(after.layers)} layers of `after`; "
            f"got {len(before.layers)}"
        )
    columns = _COLUMNS[after.semantics]
    rows = len(after.layers)
    figure = chart_figure(7.0 if len(columns) > 1 else 3.6, 0.9 + 2.0 * rows)
    grid = figure.subplots(rows, len(columns), squeeze=False)
    for t, line in enumerate(grid):
        for axes, (which, name) in zip(line, columns.items(), strict=True):
            values = {"after training": getattr(after.layers[t], which)}
            if before is not None:
                values = {"before training": getattr(before.layers[t], which), **values}
            _scatter(axes, values)
            if t == 0:
                axes.set_title(name, fontsize=9)
            if t == rows - 1:
                axes.set_xlabel("real part", fontsize=8)
        line[0].set_ylabel(f"layer {t + 1}\nimaginary part", fontsize=8)
    part = len(after.nodes)
    where = (
        f"all {part:,} nodes"
        if part == after.num_nodes
        else (f"{part:,} neighbouring nodes of {after.num_nodes:,}")
    )
    legend_above(figure, grid[0, 0], where if title is None else f"{title}: {where}")
    return figure


def spectrum_figure(spectra: Mapping[str, Tensor], *, title: str | None = None) -> Figure:
    """Eigenvalues in the complex plane, one panel per operator.

    Args:
        spectra: what :func:`coopsheaf.sheaves.spectral.spectrum` found, by name.
        title: above the figure.
    """
    if not spectra:
        raise ValueError("`spectra` must hold at least one spectrum; got none")
    columns = min(len(spectra), 4)
    rows = -(-len(spectra) // columns)
    figure = chart_figure(1.85 * columns, 2.0 * rows + (0.25 if title else 0.1))
    grid = figure.subplots(rows, columns, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(spectra):
            axes.set_visible(False)
    for axes, (name, values) in zip(grid.flat, spectra.items(), strict=False):
        _scatter(axes, {"": values})
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("real part", fontsize=8)
    for line in grid:
        line[0].set_ylabel("imaginary part", fontsize=8)
    if title is not None:
        figure.suptitle(title, fontsize=9)
    return figure


def _scatter(axes: Axes, spectra: Mapping[str, Tensor]) -> None:
    """Points, with the axes of the plane through zero; where real parts are negative it is grey."""
    looks: Sequence[dict[str, Any]] = (
        {"marker": "o", "facecolors": COLOURS[0], "edgecolors": "none", "alpha": 0.6, "s": 9},
    )
    if len(spectra) == 2:
        behind = {"marker": "s", "facecolors": "none", "edgecolors": COLOURS[1], "s": 9}
        looks = ({**behind, "linewidths": 0.6}, *looks)
    for (name, values), look in zip(spectra.items(), looks, strict=True):
        values = values.detach().cpu().to(torch.complex128)
        axes.scatter(values.real.tolist(), values.imag.tolist(), label=name, zorder=3, **look)
    axes.axhline(0, color="#999999", linewidth=0.7, zorder=1)
    axes.axvline(0, color="#999999", linewidth=0.7, zorder=1)
    points = torch.cat([values.detach().cpu().to(torch.complex128) for values in spectra.values()])
    points = points[points.isfinite()]
    left = min(0.0, *points.real.tolist()) if len(points) else 0.0
    right = max(0.0, *points.real.tolist()) if len(points) else 1.0
    width = max(right - left, 1e-3)
    # A spectrum on the real line would be drawn without any height.
    height = max(0.15 * width, *points.imag.abs().tolist()) if len(points) else 1.0
    axes.set_xlim(left - 0.08 * width, right + 0.08 * width)
    axes.set_ylim(-1.16 * height, 1.16 * height)
    if left < -1e-9 * right:  # rounding aside
        axes.axvspan(left - 0.08 * width, 0, color="#f1f1f1", zorder=0, linewidth=0)
    axes.grid(color="#e3e3e3", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
