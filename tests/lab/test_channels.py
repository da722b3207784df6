"""Closed channels of trained networks: what a record holds, what the tables say of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from analysis.cooperation import fixed, maps_of
from analysis.test_actions import EDGES, N, features
from analysis.test_strengths import scales
from train.small import node_dataset

from coopsheaf.analysis import read_actions
from coopsheaf.analysis.actions import layer_passes
from coopsheaf.analysis.channels import LayerChannels, open_ends
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.recipe import default_recipe
from lab.__main__ import main
from lab.action_units import common_unit, units_figure
from lab.channels import (
    FILE,
    ChannelResult,
    channel_tables,
    layer_rows,
    measure,
    percent,
    read_channels,
    score_rows,
    shuffled,
)


def result(**changes: object) -> ChannelResult:
    layer = LayerChannels(10, 0.25, 0.5, 0.0001, 0.1, 0.2, 0.3)
    start = replace(layer, closed=0.0)
    plain = ChannelResult(
        "texas", 0, 43, "csnn/texas", "abc", 100, 100, 50, 40, "accuracy", 0.8, 0.7, 0.6,
        [0.4, 0.5], [layer, layer], [start, start],
    )  # fmt: skip
    return replace(plain, **changes)


def test_a_network_is_trained_and_measured() -> None:
    data = node_dataset()
    recipe = default_recipe("csnn").set(
        "train.epochs=20",
        "train.lr=0.3",  # far from where it started
        "model.hidden_channels=4",
        "model.num_layers=2",
        "data.name=small",
    )
    found = measure(recipe, data, 0, planned=30)
    assert (found.epochs_allowed, found.planned_epochs, found.epochs) == (20, 30, 20)
    assert len(found.layers) == len(found.start) == 2
    others = int((data.edge_index[0] != data.edge_index[1]).sum())
    assert {layer.channels for layer in (*found.layers, *found.start)} == {others}
    assert found.start != found.layers
    assert len(found.random_test) == 5
    again = measure(recipe, data, 0, planned=30)
    assert again.layers == found.layers
    assert again.start == found.start


def test_shuffled_actions_silence_as_many_nodes() -> None:
    layers = [(maps_of(scales(9, N)[0]), maps_of(scales(9, N)[1], seed=1))] * 2
    report = read_actions(fixed(layers), features(N), EDGES)
    other = shuffled(report, 1)
    assert any(
        not torch.equal(a.action, b.action)
        for a, b in zip(report.layers, other.layers, strict=True)
    )
    for one, two in zip(report.layers, other.layers, strict=True):
        for mine, theirs in zip(open_ends(one), open_ends(two), strict=True):
            assert mine.sum() == theirs.sum()


def test_tables_are_means_over_splits() -> None:
    second = result(split=1, test=0.9, closed_test=0.8, random_test=[0.5, 0.6])
    rows = layer_rows([result(), second])
    assert rows[0] == ["texas", "1", "0.0 %", "25.0 %", "50.0 %", "< 0.1 %", "10.0 %", "20.0 %", "30.0 %"]  # fmt: skip
    assert rows[1][:2] == ["", "2"]
    assert score_rows([result(), second]) == [
        ["texas", "2", "100", "accuracy", "0.800", "0.700", "0.500"]
    ]
    short = result(dataset="tolokers", epochs_allowed=20)
    assert score_rows([short])[0][2] == "20 of 100"
    # Of one dataset the longest training counts.
    assert score_rows([short, replace(short, epochs_allowed=50)])[0][:3] == ["tolokers", "1", "50 of 100"]  # fmt: skip
    assert percent([0.0]) == "0.0 %"
    text = channel_tables([result()])
    assert text.count("\n| texas ") == 2


def test_the_command_reports_and_fills_a_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    (tmp_path / FILE).write_text(json.dumps(asdict(result())) + "\n")
    assert read_channels(tmp_path) == [result()]
    document = tmp_path / "page.md"
    document.write_text("a\n<!-- channels: begin -->\n<!-- channels: end -->\nb\n")
    with pytest.raises(SystemExit) as end:
        main(["channels", "--report", "--results", str(tmp_path), "--document", str(document)])
    assert end.value.code == 0
    assert "| texas | 1 |" in document.read_text()
    capsys.readouterr()
    for bad in (["--splits", "0"], ["--epochs", "0"], ["--report", "--results", str(tmp_path / "no")]):  # fmt: skip
        with pytest.raises(SystemExit) as end:
            main(["channels", *bad])
        assert end.value.code == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_one_unit_for_all_layers_hides_a_layer_and_its_own_does_not() -> None:
    n = 60
    few = torch.full((n,), 0.02)
    few[::20] = 0.5
    nodes = torch.arange(n)
    ring = torch.stack([nodes, (nodes + 1) % n])
    edges = torch.cat([ring, ring.flip(0)], dim=1)
    model = fixed(
        [
            (maps_of([20.0] * n), maps_of([3.0] * n, seed=1)),
            (maps_of(few), maps_of([3.0] * n, seed=1)),
        ]
    )
    x = features(n)
    before = common_unit(layer_passes(model, x, Graph(edges, n), {})[1])
    after = read_actions(model, x, edges)
    assert before.tolist()[1] != after.counts.tolist()[1] == [3, n - 3, 0, 0]
    pytest.importorskip("matplotlib")
    flows = torch.stack([layer.flow for layer in after.layers])
    figure = units_figure(before, after.counts, flows, "title")
    left, middle, _ = figure.axes
    for axes, counts in ((left, before), (middle, after.counts)):
        widths = torch.tensor([[bar.get_width() for bar in group] for group in axes.containers])
        torch.testing.assert_close(widths.double(), counts.T.double() / n, rtol=0, atol=1e-6)
