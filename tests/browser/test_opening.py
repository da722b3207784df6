"""How a page opens in a real browser: on the node asked for, named, in the middle, rings around it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser.chromium import Browser, Window, needs_browser
from browser.conftest import Board
from browser.test_pages import page_of
from pages.explorer.pages import board_dataset, named_dataset
from train.small import node_dataset

from coopsheaf.analysis.actions import ACTIONS
from coopsheaf.pages.explorer.neighbourhood import Selection
from coopsheaf.pages.explorer.opening import choose_opening

pytestmark = needs_browser


def in_the_middle(window: Window, node: int) -> bool:
    box = window.page.locator("#canvas").bounding_box()
    x, y = window.where(node)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return (x, y) == pytest.approx(middle, abs=1)


def labels(window: Window) -> list[int]:
    window.picture()
    return window.page.evaluate("explorer.labels()")


def test_a_board_opens_on_the_node_to_explain(browser: Browser, board: Board) -> None:
    with browser.window() as window:
        window.open(board.file)
        state = window.state
        assert state["selected"] == 4242
        assert in_the_middle(window, 4242)
        assert "Node 4242" in window.text("#card h3")
        assert labels(window)[0] == 4242
        assert state["scale"] == 52  # close enough to see whom it hears
        every = Selection(np.arange(10_000), np.arange(board.dataset.num_edges), ())
        assert state["layer"] == choose_opening(board.report, every, None).layer
        assert window.page.input_value("#layer") == str(state["layer"] + 1)
        assert window.text("#layer-value").startswith(f"{state['layer'] + 1} of ")
        # Neighbours have their names too; all ten thousand at once have none.
        assert {4241, 4243, 4142, 4342} <= set(labels(window))
        window.page.keyboard.press("0")
        assert set(labels(window)) <= {4242, *(4242 + a + 100 * b for a in (-1, 0, 1) for b in (-1, 0, 1))}  # fmt: skip
        window.page.keyboard.press("Escape")
        assert labels(window) == []
        assert window.complaints == []


def test_the_view_stays_on_the_node_when_the_window_changes(browser: Browser, board: Board) -> None:
    with browser.window() as window:
        window.open(board.file)
        window.page.set_viewport_size({"width": 1000, "height": 640})
        window.until("explorer.state().resting")
        window.page.wait_for_timeout(100)
        assert in_the_middle(window, 4242)
    with browser.window(size=(390, 844), has_touch=True, is_mobile=True) as window:
        window.open(board.file)
        assert in_the_middle(window, 4242)
        assert window.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_surroundings_are_rings_around_their_centre(browser: Browser, tmp_path: Path) -> None:
    data = node_dataset()
    with browser.window() as window:
        window.open(page_of(tmp_path, data, center=5, hops=2))
        content = window.page.evaluate(
            "({ids: [...explorer.content.nodes.id], x: [...explorer.content.nodes.x], "
            "y: [...explorer.content.nodes.y], layout: explorer.content.graph.layout})"
        )
        assert content["layout"] == "rings"
        place = content["ids"].index(5)
        assert window.state["selected"] == place
        assert in_the_middle(window, place)
        far = dict(zip(content["ids"], np.hypot(content["x"], content["y"]), strict=True))
        source, target = data.edge_index.numpy()
        beside = {*source[target == 5].tolist(), *target[source == 5].tolist()} - {5}
        assert beside
        others = set(content["ids"]) - beside - {5}
        assert max(far[node] for node in beside) < min(far[node] for node in others)
        # All of it is in sight, and has its name where there is room.
        canvas = window.page.locator("#canvas").bounding_box()
        for node in range(len(content["ids"])):
            x, y = window.page.evaluate(f"explorer.screen({node})")
            assert 0 < x < canvas["width"]
            assert 0 < y < canvas["height"]
        assert labels(window)[0] == place
        assert len(labels(window)) > 0.6 * len(content["ids"])
        assert window.complaints == []


def test_labels_do_not_cover_each_other(browser: Browser, tmp_path: Path) -> None:
    """What is named can be read: rows of pixels of the overlay are counted by the page itself."""
    data = named_dataset()
    with browser.window() as window:
        window.open(page_of(tmp_path, data, explain=[2]))
        shown = labels(window)
        assert shown[0] == window.state["selected"] == 2
        assert len(shown) == len(set(shown))
        inked = "[...document.getElementById('labels').getContext('2d').getImageData(0, 0, 800, 600).data].filter((v, k) => k % 4 === 3 && v > 0).length"  # fmt: skip
        assert window.page.evaluate(inked) > 100
        window.page.keyboard.press("Escape")
        window.page.keyboard.press("-")
        window.picture()
        assert window.complaints == []
        assert window.page.evaluate("window.hacked") is None


def test_without_anybody_asked_for_all_is_shown(browser: Browser, tmp_path: Path) -> None:
    data = board_dataset()
    with browser.window() as window:
        window.open(page_of(tmp_path, data))
        state = window.state
        assert state["selected"] == -1
        assert 0 <= state["layer"] < 2
        names = window.page.locator("#legend li").all_inner_texts()
        assert len(names) == len(ACTIONS)
        assert set(labels(window)) == set(range(30))  # thirty nodes are few


def test_networks_without_actions_open_on_the_node_too(browser: Browser, tmp_path: Path) -> None:
    data = replace(node_dataset(), name="plain")
    with browser.window() as window:
        window.open(page_of(tmp_path, data, "gcn-plain", explain=[1]))
        assert window.state["selected"] == 1
        assert "Edges in" in window.text("#card")
        assert window.complaints == []
