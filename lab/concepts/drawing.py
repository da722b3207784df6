"""Pieces that explanatory figures are put together from: nodes, arrows, stalks, block matrices.

All positions are data units of axes made by :func:`picture`, where one unit is as long upwards as
it is sideways.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from coopsheaf.figures.influence import COLOURS, _matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]

INK, FAINT, PALE = "#222222", "#707070", "#cfcfcf"
BLUE, ORANGE, GREEN = COLOURS[0], COLOURS[1], COLOURS[2]

# A stalk is a plane seen at an angle: its first axis goes right, its second one up and back.
_ACROSS, _BACK = (0.86, 0.0), (0.36, 0.5)
_REACH = 1.3  # half the side of the plane, in coordinates of the stalk


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    _matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def picture(axes: Axes, x: Point, y: Point, title: str = "") -> Axes:
    """Axes to draw on, from x[0] to x[1] and from y[0] to y[1], without a frame."""
    axes.set_xlim(*x)
    axes.set_ylim(*y)
    axes.set_aspect("equal")
    axes.set_axis_off()
    if title:
        axes.set_title(title, fontsize=9, color=INK, pad=4)
    return axes


def write(axes: Axes, at: Point, text: str, **options: Any) -> None:
    """A few words, centred at a point."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "color": INK}
    axes.text(*at, text, **(look | options))


def draw_node(
    axes: Axes, at: Point, label: str, *, colour: str = INK, filled: bool = False, radius: float
) -> None:
    """A circle with a name in it."""
    from matplotlib.patches import Circle

    face = colour if filled else "white"
    axes.add_patch(Circle(at, radius, facecolor=face, edgecolor=colour, linewidth=1.2, zorder=3))
    write(axes, at, label, color="white" if filled else colour, zorder=4)


def draw_arrow(axes: Axes, start: Point, end: Point, *, bend: float = 0.0, **options: Any) -> None:
    """An arrow; a positive ``bend`` curves it to the right of its way."""
    from matplotlib.patches import FancyArrowPatch

    look: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 9,
        "linewidth": 1.3,
        "color": INK,
        "shrinkA": 0,
        "shrinkB": 0,
        "zorder": 2,
    }
    path = f"arc3,rad={bend}"
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=path, **(look | options)))


def draw_link(
    axes: Axes, start: Point, end: Point, *, live: bool, gap: float, aside: float, **options: Any
) -> None:
    """The edge from one node to another, moved to the right by ``aside``; pale if nothing flows.

    Args:
        axes: where to draw.
        start, end: centres of the two nodes.
        live: whether anything flows along it.
        gap: room to leave at either end.
        aside: how far to move it, so that the edge back has room on the other side.
        options: of the arrow.
    """
    across, up = end[0] - start[0], end[1] - start[1]
    length = (across**2 + up**2) ** 0.5
    across, up = across / length, up / length
    x, y = start[0] + aside * up, start[1] - aside * across
    begin = (x + gap * across, y + gap * up)
    stop = (x + (length - gap) * across, y + (length - gap) * up)
    pale = {"color": PALE, "linestyle": (0, (2, 2)), "linewidth": 1.0}
    draw_arrow(axes, begin, stop, **(options if live else options | pale))


def in_stalk(centre: Point, vector: Sequence[float] | Tensor) -> Point:
    """Where a vector of a two-dimensional stalk ends, if the stalk is drawn at ``centre``."""
    first, second = (float(value) for value in vector)
    return (
        centre[0] + first * _ACROSS[0] + second * _BACK[0],
        centre[1] + first * _ACROSS[1] + second * _BACK[1],
    )


def draw_stalk(
    axes: Axes, centre: Point, vectors: Iterable[tuple[Tensor, str]], *, colour: str = FAINT
) -> None:
    """A two-dimensional stalk as a plane with its coordinate frame, and vectors in it.

    Args:
        axes: where to draw.
        centre: where its origin is.
        vectors: each ``(2,)`` with its colour.
        colour: of its rim.
    """
    from matplotlib.patches import Polygon

    r = _REACH
    corners = [in_stalk(centre, corner) for corner in ((-r, -r), (r, -r), (r, r), (-r, r))]
    axes.add_patch(
        Polygon(corners, closed=True, facecolor="#f6f6f6", edgecolor=colour, linewidth=0.9)
    )
    for a, b in (((-r, 0), (r, 0)), ((0, -r), (0, r))):
        (x0, y0), (x1, y1) = in_stalk(centre, a), in_stalk(centre, b)
        axes.plot([x0, x1], [y0, y1], color=PALE, linewidth=0.8, zorder=1)
    for vector, shade in vectors:
        draw_arrow(axes, centre, in_stalk(centre, vector), color=shade, linewidth=1.8)


def draw_blocks(
    axes: Axes,
    matrix: Tensor,
    stalk_dim: int,
    *,
    largest: float,
    names: Sequence[str],
    marks: Mapping[int, tuple[str, str]] | None = None,
) -> None:
    """A matrix of d×d blocks: entries by colour, zero blocks white, rows listen, columns speak.

    Args:
        axes: where to draw.
        matrix: ``(n·d, n·d)``.
        stalk_dim: d.
        largest: what full colour stands for, the same for matrices to be compared.
        names: of the n nodes.
        marks: rows and columns to frame: the node with the colours of its row and its column.
    """
    from matplotlib.patches import Rectangle

    n, d = len(names), stalk_dim
    axes.imshow(
        matrix.tolist(),
        cmap=_diverging(),
        vmin=-largest,
        vmax=largest,
        extent=(0, n, n, 0),
        interpolation="nearest",
    )
    for k in range(n + 1):
        axes.axhline(k, color="#bbbbbb", linewidth=0.7)
        axes.axvline(k, color="#bbbbbb", linewidth=0.7)
    for i in range(n):
        for j in range(n):
            block = matrix[i * d : (i + 1) * d, j * d : (j + 1) * d]
            if not bool(block.any()):
                write(axes, (j + 0.5, i + 0.5), "0", fontsize=7, color=FAINT)
    for node, (row, column) in (marks or {}).items():
        for corner, across, down, colour in (
            ((0, node), n, 1, row),
            ((node, 0), 1, n, column),
        ):
            frame = Rectangle(corner, across, down, fill=False, edgecolor=colour, linewidth=2.0)
            frame.set_clip_on(False)
            frame.set_zorder(5)
            axes.add_patch(frame)
    middle = [k + 0.5 for k in range(n)]
    axes.set_xticks(middle, list(names))
    axes.set_yticks(middle, list(names))
    axes.tick_params(length=0, labelsize=8, colors=INK, pad=2)
    axes.xaxis.tick_top()
    axes.set_aspect("equal")
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)


def block_norms(matrix: Tensor, stalk_dim: int) -> Tensor:
    """Frobenius norms ``(n, n)`` of the d×d blocks of a matrix ``(n·d, n·d)``."""
    n = matrix.shape[0] // stalk_dim
    blocks = matrix.reshape(n, stalk_dim, n, stalk_dim)
    return torch.linalg.matrix_norm(blocks.transpose(1, 2))


def _diverging() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("coopsheaf", [ORANGE, "#ffffff", BLUE])
