"""A picture of an explanation: the node, those that moved its prediction, and what flowed.

Needs matplotlib (``pip install coopsheaf[viz]``), which is loaded when a figure is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from coopsheaf.analysis.explain import Explanation
from coopsheaf.checks import check_int
from coopsheaf.figures.influence import _STYLE, COLOURS, _matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _PALE = "#333333", "#b5b5b5"
# Widths of edges in points, for nothing and for the strongest flow.
_THIN, _THICK = 0.4, 3.6
# How far from the middle of a node its edges end, in points.
_GAP = 9.0


def explanation_figure(
    explanation: Explanation,
    *,
    num_nodes: int = 24,
    names: Sequence[str] | None = None,
    class_names: Sequence[str] = (),
    title: str | None = None,
) -> Figure:
    """The neighbourhood of a node that is explained, as a small graph.

    The node is in the middle, the others on rings by their distance, those that information
    cannot reach it from outside of all. Nodes are coloured by their attribution, up to the
    largest of the others. Arrows point along the flow of information and are as wide as it is
    strong (its sum over layers); those of the paths of the explanation are dark.

    Args:
        explanation: what :func:`~coopsheaf.analysis.explain_node` found.
        num_nodes: how many nodes to draw at most: the node, then those on its paths and those with
            the largest attribution in turn.
        names: of the nodes; their numbers if not given.
        class_names: of the outputs, in their order; their numbers if not given.
        title: above the figure.
    """
    check_int("num_nodes", num_nodes, minimum=1)
    nodes = _choose(explanation, num_nodes)
    edges, flow = _links(explanation, nodes)
    places = _places(explanation, nodes, edges)
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(5.6, 4.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_aspect("equal")
        axes.set_axis_off()
        reach = 0.4 + max(math.hypot(*at) for at in places.values())
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-reach, reach)
        _draw_edges(axes, explanation, places, edges, flow)
        dots = _draw_nodes(axes, explanation, places, names)
        what = f"attribution to {explanation.score.text(class_names)}"
        figure.colorbar(dots, ax=axes, shrink=0.7, label=what, extend="both")
        if title is not None:
            axes.set_title(title)
    return figure


def _choose(explanation: Explanation, num_nodes: int) -> list[int]:
    """The node itself, then in turn the next one of the top and all nodes of its path."""
    paths = {path.nodes[0]: path.nodes for path in explanation.paths}
    chosen = [explanation.node]
    for j in explanation.top(num_nodes):
        for k in reversed(paths.get(j, (j,))):  # near ones first: no node hangs in the air
            if k not in chosen:
                chosen.append(k)
    return chosen[:num_nodes]


def _links(explanation: Explanation, nodes: list[int]) -> tuple[list[tuple[int, int]], Tensor]:
    """The edges between the nodes drawn, parallel ones joined, and how strong they are."""
    inside = torch.zeros(len(explanation.attribution), dtype=torch.bool)
    inside[nodes] = True
    source, target = explanation.edges
    keep = (inside[source] & inside[target] & (source != target)).nonzero().flatten()
    strength = torch.ones(len(keep), dtype=torch.float64)
    if explanation.flow is not None:
        strength = explanation.flow.sum(0)[keep]
    elif explanation.edge_attribution is not None:
        strength = explanation.edge_attribution.abs()[keep]
    total: dict[tuple[int, int], float] = {}
    pairs = zip(source[keep].tolist(), target[keep].tolist(), strength.tolist(), strict=True)
    for j, i, value in pairs:
        total[j, i] = total.get((j, i), 0.0) + value
    return list(total), torch.tensor(list(total.values()), dtype=torch.float64)


def _places(
    explanation: Explanation, nodes: list[int], edges: list[tuple[int, int]]
) -> dict[int, tuple[float, float]]:
    """Rings by distance; on each, nodes come in the order of their neighbours further inside."""
    far = 1 + max(int(explanation.distance[j]) for j in nodes)
    rings: dict[int, list[int]] = {}
    for j in nodes:
        hops = int(explanation.distance[j])
        rings.setdefault(hops if hops >= 0 else far, []).append(j)
    angle = {explanation.node: 0.0}
    places = {explanation.node: (0.0, 0.0)}
    links: dict[int, list[int]] = {}
    for j, i in edges:
        links.setdefault(j, []).append(i)
        links.setdefault(i, []).append(j)
    for radius, hops in enumerate(sorted(ring for ring in rings if ring > 0), start=1):
        wish = {}
        for j in rings[hops]:
            inner = [angle[k] for k in links.get(j, ()) if k in angle and k != explanation.node]
            across, up = sum(map(math.cos, inner)), sum(map(math.sin, inner))
            wish[j] = math.atan2(up, across) % (2 * math.pi) if inner else 0.0
        ordered = sorted(rings[hops], key=lambda j: (wish[j], j))
        step = 2 * math.pi / len(ordered)
        # Turn the ring so that its nodes are near to where they wish to be.
        turns = [wish[j] - k * step for k, j in enumerate(ordered)]
        turn = math.atan2(sum(map(math.sin, turns)), sum(map(math.cos, turns)))
        for k, j in enumerate(ordered):
            angle[j] = turn + k * step
            places[j] = (radius * math.cos(angle[j]), radius * math.sin(angle[j]))
    return places


def _draw_edges(
    axes: Axes,
    explanation: Explanation,
    places: dict[int, tuple[float, float]],
    edges: list[tuple[int, int]],
    flow: Tensor,
) -> None:
    from matplotlib.patches import FancyArrowPatch

    steps = {pair for path in explanation.paths for pair in pairwise(path.nodes)}
    largest = float(flow.max()) if len(flow) else 0.0
    for pair, value in zip(edges, flow.tolist(), strict=True):
        width = _THIN + (_THICK - _THIN) * (value / largest if largest > 0 else 0.0)
        options: dict[str, Any] = {
            "arrowstyle": "-|>",
            "connectionstyle": "arc3,rad=0.12",  # room for the edge back
            "mutation_scale": 5 + 2 * width,
            "linewidth": width,
            "color": _INK if pair in steps else _PALE,
            "shrinkA": _GAP,
            "shrinkB": _GAP,
            "zorder": 2 if pair in steps else 1,
        }
        axes.add_patch(FancyArrowPatch(places[pair[0]], places[pair[1]], **options))


def _draw_nodes(
    axes: Axes,
    explanation: Explanation,
    places: dict[int, tuple[float, float]],
    names: Sequence[str] | None,
) -> Any:
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    colours = LinearSegmentedColormap.from_list("attribution", [COLOURS[0], "white", COLOURS[1]])
    values = [float(explanation.attribution[j]) for j in places]
    # A node often matters most to itself, and would leave no colour to the others.
    others = [abs(float(explanation.attribution[j])) for j in places if j != explanation.node]
    largest = max(others, default=0.0) or max(map(abs, values)) or 1.0
    dots = axes.scatter(
        [at[0] for at in places.values()],
        [at[1] for at in places.values()],
        s=[260 if j == explanation.node else 190 for j in places],
        c=values,
        cmap=colours,
        norm=Normalize(-largest, largest),
        edgecolors=_INK,
        linewidths=[2.0 if j == explanation.node else 0.8 for j in places],
        zorder=3,
    )
    for j, at in places.items():
        dark = abs(float(explanation.attribution[j])) > 0.6 * largest
        text = str(j) if names is None else names[j]
        axes.annotate(
            text,
            at,
            ha="center",
            va="center",
            fontsize=6,
            color="white" if dark else "black",
            zorder=4,
        )
    return dots
