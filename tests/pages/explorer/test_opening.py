"""How a page opens: on the node that was asked for, and where there is something to see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from pages.explorer.pages import board_dataset, train
from train.small import node_dataset

from coopsheaf.analysis.actions import ActionReport, LayerActions
from coopsheaf.pages.explorer import explore
from coopsheaf.pages.explorer.neighbourhood import Selection
from coopsheaf.pages.explorer.opening import Opening, choose_opening


def layer(actions: list[int], flow: list[float]) -> LayerActions:
    action = torch.tensor(actions)
    zero = torch.zeros(len(actions), dtype=torch.float64)
    return LayerActions(zero, zero, zero, zero, action, torch.tensor(flow).double(), None)


def selection(nodes: list[int], edges: list[int]) -> Selection:
    return Selection(np.array(nodes, dtype=np.int64), np.array(edges, dtype=np.int64), ())


LAYERS = (
    layer([0, 0, 0, 0, 3], [1.0, 1.0, 1.0]),
    layer([0, 1, 0, 1, 0], [1.0, 1.0, 1.0]),
    layer([0, 0, 0, 0, 0], [1.0, 9.0, 0.1]),
)
REPORT = ActionReport("csnn", 0.25, LAYERS)
ALL = selection([0, 1, 2, 3, 4], [0, 1, 2])


def test_the_layer_with_the_most_to_see() -> None:
    assert choose_opening(REPORT, ALL, None) == Opening(-1, 1)
    # Of what is shown: elsewhere may be more.
    assert choose_opening(REPORT, selection([0, 2, 4], [0]), None).layer == 0
    # All alike: then flows decide, and the first if these are alike too.
    alike = replace(REPORT, layers=(LAYERS[2], LAYERS[2]))
    assert choose_opening(alike, ALL, None).layer == 0
    same = layer([0] * 5, [1.0, 1.0, 1.0])
    assert choose_opening(replace(REPORT, layers=(same, LAYERS[2])), ALL, None).layer == 1
    assert choose_opening(replace(REPORT, layers=(same, same)), ALL, None).layer == 0


def test_the_node_by_its_place_among_those_shown() -> None:
    assert choose_opening(REPORT, selection([1, 3, 4], []), 3).node == 1
    assert choose_opening(None, selection([1, 3, 4], []), 4) == Opening(2, 0)


def test_pages_open_on_what_was_asked_for() -> None:
    data = node_dataset()
    run = train(data)
    for options, node, kind in (
        ({}, -1, "forces"),
        ({"explain": [7, 3]}, 7, "forces"),
        ({"center": 5, "hops": 1}, 5, "rings"),
        ({"center": 5, "explain": [5]}, 5, "rings"),
    ):
        made = explore(run, data, **options)  # type: ignore[arg-type]
        assert made.layout == kind
        found = made.html.split('"opening":')[1].split("}")[0]
        assert ('"node":-1' in found) == (node < 0)
    board = board_dataset()
    assert explore(train(board), board, center=14, hops=1).layout == "grid"
