"""Figures of actions: the bars, steps and lines are the numbers of the report."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from analysis.networks import csnn, ring
from graphs import generator, randn
from hypothesis import given, settings
from hypothesis import strategies as st
from models.test_all import build
from torch import Tensor

from coopsheaf.analysis.actions import (
    ACTIONS,
    ActionReport,
    LayerActions,
    choose_actions,
    read_actions,
    sensitivity,
)
from coopsheaf.figures import actions as action_figures
from coopsheaf.figures.influence import save

pytest.importorskip("matplotlib")

N = 400
DRAW = (
    action_figures.composition_figure,
    action_figures.scales_figure,
    action_figures.sensitivity_figure,
)


def layer(source: Tensor, target: Tensor, threshold: float) -> LayerActions:
    says, hears = source / (1 + source), target / (1 + target)
    action = choose_actions(hears, says, threshold)
    return LayerActions(source, target, says, hears, action, torch.rand(3), torch.rand(3))


def made_up(depth: int = 3, n: int = N, *, spread: float = 1.5) -> ActionReport:
    layers = []
    for t in range(depth):
        source = (spread * torch.randn(n, generator=generator(t), dtype=torch.float64)).exp()
        target = (0.3 * torch.randn(n, generator=generator(9 + t), dtype=torch.float64)).exp()
        source[: 10 * t] = 0
        layers.append(layer(source, target, 0.3))
    return ActionReport("csnn", 0.3, tuple(layers))


def words(figure: Any, tmp_path: Path) -> str:
    root = ElementTree.parse(save(figure, tmp_path / "figure.svg")).getroot()
    return " ".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))


@pytest.mark.parametrize("draw", DRAW)
def test_svg_opens_and_has_its_words(draw: Any, tmp_path: Path) -> None:
    text = words(draw(made_up(2), title="My run"), tmp_path)
    for word in ("My run", "layer 1", "layer 2"):
        assert word in text
    if draw is not action_figures.scales_figure:
        assert all(action.upper() in text for action in ACTIONS)


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    for draw in DRAW:
        once, again = (save(draw(made_up(1)), tmp_path / f"{k}.svg") for k in range(2))
        assert once.read_bytes() == again.read_bytes()


def test_bars_are_the_shares_of_the_nodes(tmp_path: Path) -> None:
    report = made_up()
    figure = action_figures.composition_figure(report)
    (axes,) = figure.axes
    widths = torch.tensor([[bar.get_width() for bar in group] for group in axes.containers])
    torch.testing.assert_close(widths.double(), report.counts.T.double() / N, rtol=0, atol=1e-6)
    ends = torch.tensor([bar.get_x() + bar.get_width() for bar in axes.containers[-1]])
    torch.testing.assert_close(ends, torch.ones(3, dtype=torch.float64))
    looks = {(group[0].get_facecolor(), group[0].get_hatch()) for group in axes.containers}
    assert len({colour for colour, _ in looks}) == len({hatch for _, hatch in looks}) == 4
    assert f"share of the {N} nodes" in words(figure, tmp_path)


def test_histograms_count_every_node_once(tmp_path: Path) -> None:
    report = made_up()
    figure = action_figures.scales_figure(report)
    assert len(figure.axes) == 6
    for place, axes in enumerate(figure.axes):
        row, column = divmod(place, 2)
        names = (("source_scale", "target_scale"), ("broadcasting", "listening"))[column]
        for patch, name in zip(axes.patches, names, strict=True):
            data = patch.get_data()
            positive = getattr(report.layers[row], name)
            positive = positive[positive > 0]
            assert data.values.sum() == len(positive)
            assert data.edges[0] < positive.min()
            assert data.edges[-1] > positive.max()
        if column == 1:
            (line,) = axes.lines
            assert set(line.get_xdata()) == {report.threshold}
    assert figure.axes[0].get_xscale() == "log"
    text = words(figure, tmp_path)
    assert "10 at 0" in text
    assert "20 at 0" in text


def test_scales_that_are_alike_are_not_shown_by_logarithms() -> None:
    report = made_up(1, spread=0.1)
    axes = action_figures.scales_figure(report).axes[0]
    assert axes.get_xscale() == "linear"
    assert [patch.get_data().values.sum() for patch in axes.patches] == [N, N]


def test_lines_are_the_shares_at_other_thresholds() -> None:
    report = made_up(4)
    found = sensitivity(report)
    figure = action_figures.sensitivity_figure(report)
    assert len(figure.axes) == 4
    for place, axes in enumerate(figure.axes):
        *lines, used = axes.lines
        assert set(used.get_xdata()) == {report.threshold}
        for k, line in enumerate(lines):
            assert line.get_xdata().tolist() == found.thresholds.tolist()
            assert line.get_ydata().tolist() == found.shares[place, :, k].tolist()
        assert len({line.get_linestyle() for line in lines}) >= 3
        assert len({line.get_color() for line in lines}) == 4


def test_panels_that_are_not_needed_are_not_seen() -> None:
    figure = action_figures.sensitivity_figure(made_up(5, 30))
    assert [axes.get_visible() for axes in figure.axes] == [True] * 5 + [False]


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("model", [csnn(num_layers=2), build("cognn")])
def test_networks_can_be_drawn(draw: Any, model: Any, tmp_path: Path) -> None:
    x = randn(12, 5)
    report = read_actions(model, x.to(next(model.parameters()).dtype), ring(12), draws=5)
    text = words(draw(report), tmp_path)
    if draw is action_figures.scales_figure:
        assert ("share of draws" in text) == (report.family == "cognn")


@settings(max_examples=15, deadline=None)
@given(
    values=st.lists(
        st.floats(0, 1e12) | st.sampled_from([0.0, float("inf"), float("nan")]),
        min_size=1,
        max_size=6,
    )
)
def test_any_scales_can_be_drawn(values: list[float]) -> None:
    scale = torch.tensor(values, dtype=torch.float64)
    part = layer(scale, scale.flip(0), 0.5)
    report = ActionReport("csnn", 0.5, (part,))
    action_figures.composition_figure(report)
    known = scale[scale.isfinite()]
    axes = action_figures.scales_figure(report).axes[0]
    shown = axes.patches[0].get_data().values.sum()
    assert shown + int((known == 0).sum()) >= len(known)
    assert shown <= len(known)


def test_nothing_at_all_can_be_drawn() -> None:
    zero = torch.zeros(5, dtype=torch.float64)
    for values in (zero, zero[:0], zero / 0):
        report = ActionReport("csnn", 1.0, (layer(values, values, 1.0),))
        for draw in DRAW:
            draw(report)
        action_figures.scales_figure(report).draw_without_rendering()


@pytest.mark.parametrize("draw", DRAW)
def test_bad_input_is_named(draw: Any) -> None:
    with pytest.raises(ValueError, match="`report` must be an ActionReport; got dict"):
        draw({})
    with pytest.raises(ValueError, match="`report` must hold at least one layer; got none"):
        draw(replace(made_up(1), layers=()))
