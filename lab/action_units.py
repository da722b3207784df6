r"""Actions in one unit for all layers, as they were first read, beside those in the layer's own.

The first reading took lengths for strengths, :math:`\|\hat u_i\|` and :math:`\|\hat v_j\|` of
:mod:`coopsheaf.analysis.strengths`, chose one factor c such that :math:`c \|\hat u\|` and
:math:`c^{-1} \|\hat v\|` have the same root mean square over all nodes and layers, and called
silent what is below a quarter of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from coopsheaf.analysis.actions import ACTIONS, SHARE, choose_actions
from coopsheaf.analysis.passes import LayerPasses
from coopsheaf.analysis.strengths import sum_at
from coopsheaf.figures.actions import ACTION_COLOURS, ACTION_HATCHES
from coopsheaf.figures.influence import chart_figure, legend_above

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def common_unit(passes: Sequence[LayerPasses]) -> Tensor:
    """Nodes per layer and action, ``(layers, 4)``, with lengths and one unit for all layers."""
    graph = passes[0].graph
    weight = passes[0].weight * (graph.source != graph.target)
    come = sum_at(graph.target, weight, graph.num_nodes)
    go = sum_at(graph.source, weight, graph.num_nodes)
    listening = torch.stack([come.sqrt() * layer.listener.norm(dim=0) for layer in passes])
    broadcasting = torch.stack([go.sqrt() * layer.broadcaster.norm(dim=0) for layer in passes])
    # Each over its own root mean square is the same as both over a common one.
    listening = listening / listening[:, come > 0].square().mean().sqrt()
    broadcasting = broadcasting / broadcasting[:, go > 0].square().mean().sqrt()
    actions = [choose_actions(*both, SHARE) for both in zip(listening, broadcasting, strict=True)]
    return torch.stack([torch.bincount(each, minlength=len(ACTIONS)) for each in actions])


def units_figure(before: Tensor, after: Tensor, flows: Tensor, title: str) -> Figure:
    """Bars of the actions by layer, before and after, and beside them the flows of the edges.

    Args:
        before, after: ``(layers, 4)``, nodes.
        flows: ``(layers, m)``.
        title: what stands above.
    """
    depth = len(before)
    figure = chart_figure(9.0, 1.5 + 0.42 * depth)
    left, middle, right = figure.subplots(1, 3, width_ratios=[2, 2, 1.3], sharey=True)
    for axes, counts, name in (
        (left, before, "before: one unit for all layers"),
        (middle, after, "now: the unit of the layer"),
    ):
        part = counts.double() / counts.sum(1, keepdim=True).clamp(min=1)
        start = torch.zeros(depth, dtype=torch.float64)
        for k, action in enumerate(ACTIONS):
            axes.barh(
                range(depth),
                part[:, k].tolist(),
                left=start.tolist(),
                height=0.72,
                color=ACTION_COLOURS[k],
                hatch=ACTION_HATCHES[k],
                edgecolor="white",
                linewidth=0.8,
                label=action.upper(),
            )
            start = start + part[:, k]
        axes.set_xlim(0, 1)
        axes.set_xlabel(f"share of nodes\n{name}", fontsize=9)
    shares = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95], dtype=torch.float64)
    spread = [torch.quantile(flow, shares).tolist() for flow in flows]
    boxes = [
        {"whislo": a, "q1": b, "med": c, "q3": d, "whishi": e, "fliers": []}
        for a, b, c, d, e in spread
    ]
    right.bxp(boxes, positions=range(depth), orientation="horizontal", widths=0.5, showfliers=False)
    right.set_xscale("log")
    right.set_xlabel("flow of an edge\n(5, 25, 50, 75, 95 %)", fontsize=9)
    left.set_yticks(range(depth), [f"layer {k + 1}" for k in range(depth)])
    left.set_ylim(depth - 0.5, -0.5)
    for axes in (left, middle, right):
        axes.tick_params(labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    legend_above(figure, left, title)
    return figure
