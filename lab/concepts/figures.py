"""The ideas behind cooperative sheaves, drawn: every number and arrow is computed by the library.

Needs matplotlib (``pip install coopsheaf[viz]``). One function per figure; each returns a
``matplotlib.figure.Figure`` for :func:`coopsheaf.figures.influence.save`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coopsheaf.analysis.routing import route, verify_route
from coopsheaf.sheaves.coboundaries import coboundary
from coopsheaf.sheaves.diffusion import paper_diffusion
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.laplacian import sheaf_laplacian
from coopsheaf.sheaves.maps import ConformalMaps
from coopsheaf.sheaves.sheaf import Sheaf
from lab.concepts.drawing import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PALE,
    Point,
    block_norms,
    draw_arrow,
    draw_blocks,
    draw_link,
    draw_node,
    draw_stalk,
    in_stalk,
    new_figure,
    picture,
    write,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Node 3 in the middle of things: its neighbours are 1, 2 and 4, and 1 and 2 know each other.
_NAMES = ("1", "2", "3", "4")
_PLACES: tuple[Point, ...] = ((0.0, 1.1), (0.0, -1.1), (1.5, 0.0), (3.2, 0.0))
_EDGES = torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]])
_SILENT = 2  # node 3


def sheaf_figure() -> Figure:
    """A sheaf on one edge: with one stalk for both ends, and with one for each direction.

    On the left an undirected edge: both ends map what they have into the same stalk, where they
    differ by (δx)_e. On the right a pair of directed edges: each end broadcasts into one stalk
    with its source map and listens in the other with its target map.
    """
    x = torch.tensor([[[0.85], [0.1]], [[-0.75], [0.3]]], dtype=torch.float64)  # (2, 2, 1)
    maps = torch.stack([_turn(1.2, 1.1), _turn(-2.7, 1.2)])
    sheaf = Sheaf(torch.tensor([[0], [1]]), maps.unsqueeze(0))
    energy = float((x * sheaf_laplacian(sheaf).mv(x)).sum())

    figure = new_figure(7.0, 3.05)
    left, right = figure.subplots(1, 2)
    figure.subplots_adjust(0.0, 0.0, 1.0, 0.92, wspace=0.0)
    at_i, at_j = _edge_of_stalks(left, x, "undirected: one stalk for the edge", directed=False)
    above = (3.0, 3.35)
    images = (maps @ x).squeeze(-1)
    _edge_stalk(left, above, "F(e)", [(images[0], BLUE), (images[1], ORANGE)])
    difference = coboundary(sheaf).mv(x)[0, :, 0]
    draw_arrow(
        left,
        in_stalk(above, images[0]),
        in_stalk(above, images[0] + difference),
        color=GREEN,
        linestyle=(0, (2, 1.2)),
    )
    _restrict(left, at_i, above, "Fᵢ", BLUE)
    _restrict(left, at_j, above, "Fⱼ", ORANGE)
    write(left, (3.0, -0.45), "(δx)ₑ = Fⱼxⱼ − Fᵢxᵢ", color=GREEN)
    write(left, (3.0, -1.05), f"‖δx‖² = ⟨x, Lx⟩ = {energy:.2f}", color=GREEN)

    at_i, at_j = _edge_of_stalks(right, x, "directed: a stalk for each direction", directed=True)
    source = torch.stack([_turn(1.2, 1.1), _turn(1.1, 1.25)])
    target = torch.stack([_turn(-0.9, 0.9), _turn(-2.7, 1.2)])
    said, heard = (source @ x).squeeze(-1), (target @ x).squeeze(-1)
    below = (3.0, -0.75)
    _edge_stalk(right, above, "F(ij)", [(said[0], BLUE), (heard[1], ORANGE)])
    _edge_stalk(right, below, "F(ji)", [(heard[0], BLUE), (said[1], ORANGE)])
    _restrict(right, at_i, above, "Sᵢ", BLUE)
    _restrict(right, at_j, above, "Tⱼ", ORANGE, dashed=True)
    _restrict(right, at_i, below, "Tᵢ", BLUE, dashed=True)
    _restrict(right, at_j, below, "Sⱼ", ORANGE)
    write(right, (3.0, 1.5), "solid: broadcast", color=FAINT)
    write(right, (3.0, 1.1), "dashed: listen", color=FAINT)
    return figure


def _edge_of_stalks(axes: Axes, x: Tensor, title: str, *, directed: bool) -> tuple[Point, Point]:
    """Two nodes, their edge below and their stalks above; returns where the stalks are."""
    picture(axes, (-1.9, 7.9), (-3.25, 4.6), title)
    stalks: tuple[Point, Point] = ((0.0, 1.3), (6.0, 1.3))
    low = -2.55
    for centre, vector, name, colour in zip(stalks, x, "ij", (BLUE, ORANGE), strict=True):
        axes.plot([centre[0]] * 2, [low, 0.6], color=PALE, linewidth=0.9, linestyle=":", zorder=0)
        draw_stalk(axes, centre, [(vector[:, 0], colour)])
        sub = "ᵢ" if name == "i" else "ⱼ"
        tip = in_stalk(centre, vector[:, 0])
        write(axes, (tip[0] - 0.1, tip[1] + 0.27), f"x{sub}", color=colour)
        write(axes, (centre[0], centre[1] + 0.92), f"F({name})", color=FAINT)
        draw_node(axes, (centre[0], low), name, colour=colour, radius=0.36)
    if not directed:
        axes.plot([0.36, 5.64], [low, low], color=INK, linewidth=1.3)
        write(axes, (3.0, low + 0.32), "e")
        return stalks
    for start, end, name, side in ((0.0, 6.0, "ij", 0.42), (6.0, 0.0, "ji", -0.45)):
        draw_link(axes, (start, low), (end, low), live=True, gap=0.44, aside=-0.14)
        write(axes, (3.0, low + side), name)
    return stalks


def _edge_stalk(axes: Axes, centre: Point, name: str, vectors: list[tuple[Tensor, str]]) -> None:
    draw_stalk(axes, centre, vectors)
    write(axes, (centre[0], centre[1] + 0.92), name, color=FAINT)


def _restrict(
    axes: Axes, start: Point, end: Point, label: str, colour: str, *, dashed: bool = False
) -> None:
    """A restriction map: an arrow from the stalk of a node to that of an edge."""
    right, up = (1 if end[0] > start[0] else -1), (1 if end[1] > start[1] else -1)
    begin = (start[0] + 0.55 * right, start[1] + (1.05 if up > 0 else -0.75))
    stop = (end[0] - 1.6 * right, end[1] + (0.05 if up > 0 else 0.0))
    look = {"linestyle": (0, (3, 1.5))} if dashed else {}
    draw_arrow(axes, begin, stop, bend=-0.28 * right * up, color=colour, **look)
    middle = ((begin[0] + stop[0]) / 2, (begin[1] + stop[1]) / 2)
    write(axes, (middle[0] - 0.5 * right, middle[1] + 0.42 * up), label, color=colour, fontsize=9)


def silence_figure() -> Figure:
    """What it takes to make node 3 stop listening, with one map per node and with two.

    Above, who hears whom: an edge is drawn live where its block of the operator below is not zero.
    Below, the operators: the Laplacian of an undirected sheaf, in which O₃ = 0 empties row and
    column, for it is symmetric; and CSNN's (Δ_in)ᵀ Δ_out, in which T₃ = 0 empties the row alone.
    """
    angles = torch.tensor([0.4, -0.7, 1.1, 2.0], dtype=torch.float64)
    one = _turns(angles)
    both = Graph(torch.cat([_EDGES, _EDGES.flip(0)], dim=1), 4)
    source, target = ConformalMaps(torch.ones(4).double(), one), _turns(angles.flip(0) - 0.3)
    heard, muted = torch.ones(4).double(), torch.ones(4).double()
    muted[_SILENT] = 0
    free = paper_diffusion(both, source, ConformalMaps(heard, target)).to_dense()
    deaf = paper_diffusion(both, source, ConformalMaps(muted, target)).to_dense()
    flat = one * muted[:, None, None]
    sheaf = Sheaf(_EDGES, torch.stack([flat[_EDGES[0]], flat[_EDGES[1]]], dim=1), 4)
    undirected = sheaf_laplacian(sheaf, "augmented").to_dense()

    figure = new_figure(7.0, 4.4)
    grid = figure.subplots(2, 3, height_ratios=[1.0, 1.25])
    figure.subplots_adjust(0.04, 0.1, 0.98, 0.94, wspace=0.14, hspace=0.34)
    columns = (
        ("CSNN, no map is zero", free, "Δᵢₙᵀ Δₒᵤₜ", ""),
        (
            "undirected sheaf, O₃ = 0",
            undirected,
            "Δ",
            "row 3 and column 3 vanish:\n3 is cut off",
        ),
        ("CSNN, T₃ = 0", deaf, "Δᵢₙᵀ Δₒᵤₜ", "row 3 vanishes, column 3 does not:\n3 still speaks"),
    )
    largest = max(float(matrix.abs().max()) for _, matrix, _, _ in columns)
    for (above, below), (title, matrix, name, verdict) in zip(grid.T, columns, strict=True):
        picture(above, (-0.6, 3.8), (-1.6, 1.6), title)
        _who_hears_whom(above, both, matrix)
        row, column = (_mark(matrix, 2, _SILENT, way) for way in ("row", "column"))
        draw_blocks(
            below,
            matrix,
            2,
            largest=largest,
            names=_NAMES,
            marks={_SILENT: (row, column)} if verdict else None,
        )
        explained = "rows listen, columns speak\n(blue > 0, orange < 0)"
        below.set_xlabel(verdict or explained, fontsize=8, color=INK)
        below.set_title(name, fontsize=8.5, color=INK, pad=3)
    return figure


def _who_hears_whom(axes: Axes, graph: Graph, matrix: Tensor) -> None:
    norms = block_norms(matrix, 2)
    for j, i in graph.edge_index.T.tolist():
        live = bool(norms[i, j] > 0)
        colour = ORANGE if j == _SILENT else (BLUE if i == _SILENT else INK)
        draw_link(axes, _PLACES[j], _PLACES[i], live=live, gap=0.42, aside=-0.1, color=colour)
    for k, (name, place) in enumerate(zip(_NAMES, _PLACES, strict=True)):
        draw_node(axes, place, name, filled=k == _SILENT, radius=0.31)


def _mark(matrix: Tensor, d: int, node: int, way: str) -> str:
    """Orange for a row or column with something of other nodes in it, grey for one without."""
    norms = block_norms(matrix, d)
    others = (norms[node] if way == "row" else norms[:, node]).clone()
    others[node] = 0
    return ORANGE if bool(others.any()) else FAINT


def path_figure() -> Figure:
    """Four nodes in a row: three layers hand the feature of node 4 to node 1, and no other.

    In every layer all maps are zero but one source and one target map, and nothing is kept of the
    layer before (ε = -1), so that X' = -(Δ_in)ᵀ Δ_out X. The last column is the Jacobian of the
    three together: of all its blocks in the row of node 1 only that of node 4 is not zero.
    """
    line = torch.tensor([[0, 1, 2], [1, 2, 3]])
    graph = Graph(torch.cat([line, line.flip(0)], dim=1), 4)
    way = route(graph, 3, 0, scale=2.0)
    steps = [-paper_diffusion(graph, layer.source, layer.target).to_dense() for layer in way.layers]
    total = steps[2] @ steps[1] @ steps[0]
    found = verify_route(way, graph)
    assert found.exact
    assert math.isclose(found.delivered, float(total[:2, 6:].norm()), rel_tol=1e-12)

    figure = new_figure(7.0, 2.9)
    grid = figure.subplots(2, 4, height_ratios=[0.62, 1.0])
    figure.subplots_adjust(0.04, 0.09, 0.98, 0.91, wspace=0.22, hspace=0.2)
    for t, (above, below) in enumerate(grid.T):
        last = t == 3
        picture(above, (-0.55, 3.55), (-0.85, 0.75), "all three" if last else f"layer {t + 1}")
        matrix = total if last else steps[t]
        for k, name in enumerate(_NAMES):
            draw_node(above, (float(k), 0.0), name, filled=last and k in (0, 3), radius=0.26)
        if last:
            draw_arrow(above, (2.9, 0.32), (0.1, 0.32), bend=0.28, color=ORANGE)
        else:
            _layer_of_path(above, graph, matrix)
        draw_blocks(below, matrix, 2, largest=float(matrix.abs().max()), names=_NAMES)
        s, i = (3, 0) if last else (3 - t, 2 - t)
        factor = float(matrix[2 * i, 2 * s])
        before = 0 if last else t
        after = 3 if last else t + 1
        below.set_xlabel(
            f"x{_low(i)}{_high(after)} = {factor:.2f} x{_low(s)}{_high(before)}",
            fontsize=8,
            color=INK,
        )
    return figure


def _layer_of_path(axes: Axes, graph: Graph, matrix: Tensor) -> None:
    norms = block_norms(matrix, 2)
    for j, i in graph.edge_index.T.tolist():
        live = bool(norms[i, j] > 0)
        draw_link(
            axes,
            (float(j), 0.0),
            (float(i), 0.0),
            live=live,
            gap=0.32,
            aside=-0.1,
            color=ORANGE,
            mutation_scale=7,
        )
        if live:
            write(axes, (j, -0.6), f"S{_low(j)}", color=ORANGE)
            write(axes, (i, -0.6), f"T{_low(i)}", color=BLUE)


def actions_figure() -> Figure:
    """The four things a node can do, with two maps per node, and the two that one map leaves.

    The node in the middle has all of its maps, or lacks one or both. Edges are live where the
    block of the operator is not zero.
    """
    star = torch.tensor([[0, 0, 0], [1, 2, 3]])
    graph = Graph(torch.cat([star, star.flip(0)], dim=1), 4)
    ones = torch.ones(4, dtype=torch.float64)
    angles = torch.tensor([0.3, 1.2, -0.8, 2.1], dtype=torch.float64)
    frames = _turns(angles)
    figure = new_figure(7.0, 3.5)
    grid = figure.subplots(2, 4)
    figure.subplots_adjust(0.07, 0.02, 0.99, 0.93, wspace=0.05, hspace=0.12)
    names = ("STANDARD", "LISTEN", "PROPAGATE", "ISOLATE")
    for column, (name, speaks, listens) in enumerate(
        zip(names, (1, 0, 1, 0), (1, 1, 0, 0), strict=True)
    ):
        above, below = grid[:, column]
        said, heard = ones.clone(), ones.clone()
        said[0], heard[0] = speaks, listens
        matrix = paper_diffusion(
            graph, ConformalMaps(said, frames), ConformalMaps(heard, frames)
        ).to_dense()
        sign = "≠" if speaks else "=", "≠" if listens else "="
        picture(above, (-1.75, 1.75), (-1.5, 1.6), name)
        _star(above, graph, block_norms(matrix, 2), f"S {sign[0]} 0,  T {sign[1]} 0")
        picture(below, (-1.75, 1.75), (-1.5, 1.6))
        if speaks != listens:
            continue
        flat = frames * said[:, None, None]
        sheaf = Sheaf(star, torch.stack([flat[star[0]], flat[star[1]]], dim=1), 4)
        matrix = sheaf_laplacian(sheaf, "augmented").to_dense()
        _star(below, graph, block_norms(matrix, 2), f"O {sign[0]} 0")
    middle = (grid[1, 1].get_position().x0 + grid[1, 2].get_position().x1) / 2
    for height, text, colour in (
        (0.33, "not possible with one map:", INK),
        (0.28, "Lⱼᵢ = Lᵢⱼᵀ, so who does not listen is not heard", INK),
        (0.17, "what i sends", ORANGE),
        (0.12, "what i receives", BLUE),
        (0.07, "nothing flows (dashed)", FAINT),
    ):
        figure.text(middle, height, text, ha="center", va="center", fontsize=8, color=colour)
    for height, text in ((0.71, "directed: two maps"), (0.25, "undirected: one map")):
        figure.text(0.03, height, text, rotation=90, ha="center", va="center", fontsize=8.5)
    return figure


def _star(axes: Axes, graph: Graph, norms: Tensor, maps: str) -> None:
    rim = [(1.25 * math.cos(a), 1.25 * math.sin(a)) for a in (math.pi / 2, 3.665, 5.76)]
    places: list[Point] = [(0.0, 0.0), *rim]
    for j, i in graph.edge_index.T.tolist():
        live = bool(norms[i, j] > 0)
        colour = ORANGE if j == 0 else BLUE
        draw_link(axes, places[j], places[i], live=live, gap=0.32, aside=-0.1, color=colour)
    for k, place in enumerate(places):
        draw_node(axes, place, "i" if k == 0 else "", filled=k == 0, radius=0.24)
    write(axes, (0, -1.25), maps)


def _turn(angle: float, scale: float = 1.0) -> Tensor:
    """scale × rotation by angle, ``(2, 2)``."""
    return scale * _turns(torch.tensor([angle], dtype=torch.float64))[0]


def _turns(angles: Tensor) -> Tensor:
    """Rotations ``(n, 2, 2)`` by angles ``(n,)``."""
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([cos, -sin, sin, cos], dim=-1).unflatten(-1, (2, 2))


def _low(node: int) -> str:
    return "₁₂₃₄"[node]


def _high(layer: int) -> str:
    return "⁽" + "⁰¹²³"[layer] + "⁾"
