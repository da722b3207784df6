"""The explanatory figures: they show what the library computes, and every word is readable."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.analysis import route, route_jacobian
from coopsheaf.figures import influence as figures
from lab.concepts import figures as concept_figures
from lab.concepts.drawing import BLUE, ORANGE, PALE, block_norms

pytest.importorskip("matplotlib")

WORDS = {
    "sheaf_figure": ["F(e)", "F(ij)", "F(ji)", "Sᵢ", "Tⱼ", "(δx)ₑ = Fⱼxⱼ − Fᵢxᵢ"],
    "actions_figure": ["STANDARD", "LISTEN", "PROPAGATE", "ISOLATE", "S = 0,  T ≠ 0", "O = 0"],
    "silence_figure": ["undirected sheaf, O₃ = 0", "CSNN, T₃ = 0", "3 still speaks", "Δᵢₙᵀ Δₒᵤₜ"],
    "path_figure": ["layer 1", "layer 3", "all three", "T₃", "S₄"],
}
EACH = pytest.mark.parametrize("name", list(WORDS))


def draw(name: str) -> Any:
    make: Callable[[], Any] = getattr(concept_figures, name)
    return make()


def matrices(figure: Any) -> list[Tensor]:
    return [torch.as_tensor(axes.images[0].get_array().data) for axes in figure.axes if axes.images]


def shades(axes: Any) -> list[str]:
    """The colours of all arrows."""
    from matplotlib.colors import to_hex
    from matplotlib.patches import FancyArrowPatch

    found = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    return [to_hex(arrow.get_edgecolor()) for arrow in found]


def arrows(axes: Any) -> tuple[int, int]:
    """Live and dead ones."""
    dead = shades(axes).count(PALE)
    return len(shades(axes)) - dead, dead


@EACH
def test_svg_opens_and_has_its_words(name: str, tmp_path: Path) -> None:
    file = figures.save(draw(name), tmp_path / f"{name}.svg")
    root = ElementTree.parse(file).getroot()
    text = " ".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))
    for word in WORDS[name]:
        assert all(piece in text for piece in word.split("\n")), word


@EACH
def test_the_same_figure_is_the_same_file(name: str, tmp_path: Path) -> None:
    once, again = (figures.save(draw(name), tmp_path / f"{k}.svg") for k in range(2))
    assert once.read_bytes() == again.read_bytes()


@EACH
def test_no_words_lie_on_top_of_each_other(name: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = draw(name)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = list(figure.texts)
    for axes in figure.axes:
        texts += [*axes.texts, axes.title]
        if axes.axison:
            texts += [axes.xaxis.label, axes.yaxis.label]
            texts += [*axes.get_xticklabels(), *axes.get_yticklabels()]
    texts = [text for text in texts if text.get_text().strip()]
    assert len(texts) > 10
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts]
    edge = figure.bbox
    for k, (text, box) in enumerate(boxes):
        inside = (box.x0 - edge.x0, edge.x1 - box.x1, box.y0 - edge.y0, edge.y1 - box.y1)
        assert min(inside) >= 0, text
        for other, beside in boxes[:k]:
            wide = min(box.x1, beside.x1) - max(box.x0, beside.x0)
            high = min(box.y1, beside.y1) - max(box.y0, beside.y0)
            assert min(wide, high) < 2, (text, other)


def test_one_map_per_node_silences_both_ways_and_two_maps_one_way() -> None:
    figure = concept_figures.silence_figure()
    free, undirected, deaf = (block_norms(matrix, 2) for matrix in matrices(figure))
    others = [0, 1, 3]
    assert bool((free[2] > 0).all())
    assert not undirected[2].any()
    assert not undirected[:, 2].any()
    assert torch.equal(undirected > 0, undirected.T > 0)
    assert not deaf[2].any()
    assert bool((deaf[others, 2] > 0).all())
    drawn = {axes.get_title(): arrows(axes) for axes in figure.axes if not axes.images}
    assert drawn == {
        "CSNN, no map is zero": (8, 0),
        "undirected sheaf, O₃ = 0": (2, 6),
        "CSNN, T₃ = 0": (5, 3),
    }


def test_the_path_delivers_what_its_caption_says() -> None:
    figure = concept_figures.path_figure()
    *steps, total = matrices(figure)
    torch.testing.assert_close(steps[2] @ steps[1] @ steps[0], total)
    line = torch.tensor([[0, 1, 2], [1, 2, 3]])
    graph = Graph(torch.cat([line, line.flip(0)], dim=1), 4)
    jacobian = route_jacobian(route(graph, 3, 0, scale=2.0), graph)  # (4, 2, 2)
    torch.testing.assert_close(total[:2], jacobian.transpose(0, 1).reshape(2, 8))
    assert [int((block_norms(step, 2) > 0).sum()) for step in (*steps, total)] == [1, 1, 1, 1]
    captions = [axes.get_xlabel() for axes in figure.axes if axes.images]
    factors = [float(re.search(r"= ([\d.]+) x", text)[1]) for text in captions]
    assert factors == [round(float(m.max()), 2) for m in (*steps, total)]
    assert captions[-1].startswith("x₁⁽³⁾ =")
    assert captions[-1].endswith("x₄⁽⁰⁾")


def test_the_four_actions() -> None:
    grid = concept_figures.actions_figure().axes
    assert [arrows(axes) for axes in grid[:4]] == [(6, 0), (3, 3), (3, 3), (0, 6)]
    received, sent = BLUE.lower(), ORANGE.lower()
    assert set(shades(grid[0])) == {received, sent}
    assert set(shades(grid[1])) == {received, PALE}
    assert set(shades(grid[2])) == {sent, PALE}
    assert [arrows(axes) for axes in grid[4:]] == [(6, 0), (0, 0), (0, 0), (0, 6)]


def test_the_energy_is_that_of_the_difference() -> None:
    figure = concept_figures.sheaf_figure()
    left = figure.axes[0]
    (said,) = [t.get_text() for t in left.texts if t.get_text().startswith("‖δx‖²")]
    # The green arrow: from one image to the other, in the plane's oblique coordinates.
    from matplotlib.colors import to_hex
    from matplotlib.patches import FancyArrowPatch

    green = [
        patch
        for patch in left.patches
        if isinstance(patch, FancyArrowPatch) and to_hex(patch.get_edgecolor()) == "#009e73"
    ]
    (start, end) = green[0]._posA_posB
    across, up = end[0] - start[0], end[1] - start[1]
    second = up / 0.5
    first = (across - 0.36 * second) / 0.86
    assert float(said.split("= ")[-1]) == pytest.approx(first**2 + second**2, abs=0.006)


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in WORDS:
        with pytest.raises(ImportError, match=r"pip install 'coopsheaf\[viz\]'"):
            draw(name)
