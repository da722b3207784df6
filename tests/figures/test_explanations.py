"""The picture of an explanation: it opens, and shows the node, its paths and their flows."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
from analysis.networks import build, csnn, ring
from graphs import randn
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from models.test_all import EDGES, F_IN, GRAPHS, N

from coopsheaf.analysis import explain_node
from coopsheaf.figures import influence as figures
from coopsheaf.figures.explanations import explanation_figure

X = randn(N, F_IN, seed=2)


def arrows(figure: Figure) -> list[FancyArrowPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]


def words(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.axes[0].texts}


def test_it_opens_and_has_its_words(tmp_path: Path) -> None:
    explanation = explain_node(csnn(), X, EDGES, 4, output=0, against=2)
    names = [f"page {k}" for k in range(N)]
    figure = explanation_figure(
        explanation, names=names, class_names=("cat", "dog", "bird"), title="Why 4?"
    )
    file = figures.save(figure, tmp_path / "why.svg")
    root = ElementTree.parse(file).getroot()
    text = " ".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))
    for word in ("page 4", "Why 4?", "attribution to cat over bird"):
        assert word in text


def test_the_same_explanation_gives_the_same_file(tmp_path: Path) -> None:
    explanation = explain_node(csnn(), X, EDGES, 4)
    one, two = (
        figures.save(explanation_figure(explanation), tmp_path / name).read_bytes()
        for name in ("one.svg", "two.svg")
    )
    assert one == two


def test_the_node_is_in_the_middle_and_rings_are_distances() -> None:
    edges = torch.cat([ring(12), torch.tensor([[3, 5, 5], [0, 0, 3]])], dim=1)
    explanation = explain_node(csnn(), randn(12, F_IN), edges, 0)
    axes = explanation_figure(explanation).axes[0]
    assert len(axes.texts) > 8
    for text in axes.texts:
        node = int(text.get_text())
        radius = math.hypot(*text.xy)
        assert radius == pytest.approx(int(explanation.distance[node]), abs=1e-9)


def test_arrows_are_as_wide_as_flows_and_dark_on_paths() -> None:
    explanation = explain_node(csnn(), randn(12, F_IN), ring(12), 0)
    drawn = arrows(explanation_figure(explanation))
    assert len({patch.get_linewidth() for patch in drawn}) > 2
    hops = {pair for p in explanation.paths for pair in zip(p.nodes, p.nodes[1:], strict=False)}
    dark = [patch for patch in drawn if patch.get_zorder() == 2]
    assert len(dark) == len(hops)
    flow = explanation.flow.sum(0)
    inside = set(map(int, words(explanation_figure(explanation))))
    ends = explanation.edges.T.tolist()
    shown = [float(flow[e]) for e, (j, i) in enumerate(ends) if {j, i} <= inside]
    assert len(drawn) == len(shown)
    widest = max(patch.get_linewidth() for patch in drawn)
    share = [(patch.get_linewidth() - 0.4) / (widest - 0.4) for patch in drawn]
    assert sorted(share) == pytest.approx(sorted(value / max(shown) for value in shown), abs=1e-9)


def test_no_more_nodes_than_asked_for() -> None:
    explanation = explain_node(csnn(), randn(30, F_IN), ring(30), 0, top=20)
    assert len(words(explanation_figure(explanation, num_nodes=5))) == 5
    assert words(explanation_figure(explanation, num_nodes=1)) == {"0"}
    with pytest.raises(ValueError, match="`num_nodes` must be an integer of at least 1; got 0"):
        explanation_figure(explanation, num_nodes=0)


@pytest.mark.parametrize("name", ["gat", "nsd-diag", "mlp", "cognn"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_other_networks_and_odd_graphs_are_drawn(name: str, graph: str, tmp_path: Path) -> None:
    n, edges = GRAPHS[graph]
    figure = explanation_figure(explain_node(build(name), randn(n, F_IN), edges, 0))
    assert "0" in words(figure)
    assert figures.save(figure, tmp_path / "it.png").stat().st_size > 1000


def test_loops_and_parallel_edges_are_drawn_once() -> None:
    edges = torch.tensor([[1, 1, 1, 0], [0, 0, 1, 0]])
    assert len(arrows(explanation_figure(explain_node(csnn(), X[:2], edges, 0)))) == 1
