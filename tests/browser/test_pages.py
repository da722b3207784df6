"""Other pages in a real browser: hostile names, networks without actions, numbers, no WebGL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from browser.chromium import Browser, needs_browser
from pages.explorer.pages import HOSTILE, board_dataset, named_dataset, train
from train.small import node_dataset

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.pages.explorer import explore

pytestmark = needs_browser


def page_of(folder: Path, dataset: NodeDataset, model: str = "csnn", **options: object) -> Path:
    file = folder / "page.html"
    html = explore(train(dataset, model), dataset, **options).html  # type: ignore[arg-type]
    file.write_bytes(html.encode())
    return file


def test_names_neither_run_nor_break_the_page(browser: Browser, tmp_path: Path) -> None:
    data = named_dataset()
    file = page_of(tmp_path, data, explain=list(range(len(HOSTILE))))
    with browser.window() as window:
        window.open(file)
        scripts = window.page.evaluate("document.scripts.length")
        assert window.page.title() == "csnn on <i>graph</i> · coopsheaf"
        for node, name in enumerate(HOSTILE):
            window.page.evaluate(f"explorer.select({node})")
            shown = window.page.locator("#card h3 span")
            assert window.text("#card h3").rstrip("…")[:30].strip() in name
            if len(name) > 44:
                assert shown.get_attribute("title").startswith(name[:400])
                assert len(window.text("#card h3")) <= 44
        window.page.mouse.move(*window.where(node))
        for button in window.page.locator("#why-section button", has_text="Show").all()[:3]:
            button.click()
        for mode in window.page.locator("#colour option").all():
            window.page.select_option("#colour", value=mode.get_attribute("value"))
        window.page.fill("#search", "<script>")
        assert window.page.locator("#found li").count() == 2
        window.page.keyboard.press("Enter")
        assert window.state["selected"] in (0, 1)
        assert window.page.evaluate("[window.hacked, document.scripts.length, document.images.length]") == [None, scripts, 0]  # fmt: skip
        assert window.page.evaluate("document.documentElement.scrollWidth") <= 1280
        assert window.complaints == []
        assert window.requests == [file.as_uri()]
    with browser.window(size=(360, 700), has_touch=True, is_mobile=True) as window:
        window.open(file)
        window.page.evaluate("explorer.select(3)")
        assert window.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_policy_stops_what_should_not_be_there(browser: Browser, tmp_path: Path) -> None:
    """Even a script that did get into the page would not run, nor load anything."""
    file = page_of(tmp_path, node_dataset())
    text = file.read_text("utf-8")
    bad = "<script>window.hacked = 1</script><img src='https://example.org/x.png'></body>"
    file.write_text(text.replace("</body>", bad), "utf-8")
    with browser.window() as window:
        window.open(file)
        assert window.page.evaluate("window.hacked") is None
        assert len(window.complaints) == 2
        assert all("Content Security Policy" in line for line in window.complaints)


def test_a_network_without_actions(browser: Browser, tmp_path: Path) -> None:
    file = page_of(tmp_path, node_dataset(), "gcn-plain", explain=[1])
    with browser.window() as window:
        window.open(file)
        assert "The model gcn-plain has no actions" in window.text("#notes")
        assert not window.page.locator("#layer-control").is_visible()
        assert not window.page.locator("#share-control").is_visible()
        first = window.picture()
        window.page.evaluate("explorer.select(1)")
        assert "Edges in" in window.text("#card")
        assert window.picture() != first
        window.page.mouse.move(*window.where(1))
        window.page.keyboard.press("]")
        window.page.keyboard.press("?")
        assert window.complaints == []


def test_cognn(browser: Browser, tmp_path: Path) -> None:
    with browser.window() as window:
        window.open(page_of(tmp_path, node_dataset(), "cognn"))
        assert "most frequent action of 100 draws" in window.text("#actions-section")
        window.page.evaluate("explorer.select(1)")
        assert "broadcasts" in window.text("#card")
        window.set("#layer", 2)
        assert window.complaints == []


def test_numbers_instead_of_classes(browser: Browser, tmp_path: Path) -> None:
    data = node_dataset(task="regression")
    y = data.y.clone()
    y[0] = torch.nan
    keep = torch.arange(40) > 0
    data = replace(data, y=y, train=data.train & keep, val=data.val & keep, test=data.test & keep)
    with browser.window() as window:
        window.open(page_of(tmp_path, data, explain=[2]))
        for mode in window.page.locator("#colour option").all_inner_texts():
            window.page.select_option("#colour", label=mode)
        assert window.page.locator("#predictions svg").is_visible()
        window.page.evaluate("explorer.select(0)")
        assert "unknown" in window.text("#card")
        window.page.evaluate("explorer.select(1)")
        assert "error" in window.text("#card")
        assert window.complaints == []


def test_several_labels(browser: Browser, tmp_path: Path) -> None:
    data = node_dataset()
    y = torch.stack([(data.y == k).float() for k in range(3)], dim=1)
    data = replace(data, y=y, task="multilabel", metric="ap", class_names=("a", "b", "c"))
    with browser.window() as window:
        window.open(page_of(tmp_path, data))
        window.page.select_option("#colour", label="true class")
        first = window.picture()
        window.page.select_option("#target", label="c")
        assert window.picture() != first
        assert window.complaints == []


def test_a_part_of_a_graph_says_so(browser: Browser, tmp_path: Path) -> None:
    with browser.window() as window:
        window.open(page_of(tmp_path, board_dataset(), center=14, hops=1, max_edges=30))
        assert window.text("#notes") == (
            "Shown are the 9 of 30 nodes within 1 hops of node 14. "
            "Drawn are 30 of 40 edges: the strongest of each node, then of all."
        )
        assert "9 of 30 nodes" in window.text("#facts")
        window.page.fill("#search", "14")
        window.page.keyboard.press("Enter")
        assert window.text("#card h3") == "Node 14"


@pytest.mark.parametrize("data", [board_dataset(), node_dataset()], ids=["board", "forces"])
def test_without_webgl_it_draws_on_a_canvas(browser: Browser, tmp_path: Path, data: NodeDataset) -> None:  # fmt: skip
    off = """
      const get = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind.startsWith("webgl") ? null : get.call(this, kind, ...rest);
      };
    """
    with browser.window(before=off) as window:
        window.open(page_of(tmp_path, data))
        assert window.state["renderer"] == "canvas"
        first = window.picture()
        assert len(first) > 5_000
        window.set("#layer", 2 - window.state["layer"])  # the other one
        second = window.picture()
        assert second != first
        window.page.mouse.click(*window.where(7))
        assert window.state["selected"] == 7
        assert window.picture() != second
        window.page.keyboard.press("+")
        window.page.keyboard.press("ArrowLeft")
        assert window.complaints == []


def test_an_edgeless_graph_and_a_lonely_node(browser: Browser, tmp_path: Path) -> None:
    data = node_dataset()
    data = replace(data, edge_index=data.edge_index[:, :0])
    for options in ({}, {"center": 3, "hops": 0}):
        with browser.window() as window:
            window.open(page_of(tmp_path, data, **options))
            window.page.evaluate("explorer.select(0)")
            assert "none drawn" in window.text("#card")
            assert window.text("#share-value") == "no edges"
            assert window.complaints == []


def test_a_card_that_refuses_our_programs(browser: Browser, tmp_path: Path) -> None:
    bad = """
      const ask = WebGL2RenderingContext.prototype.getProgramParameter;
      WebGL2RenderingContext.prototype.getProgramParameter = function (program, what) {
        return what === this.LINK_STATUS ? false : ask.call(this, program, what);
      };
    """
    with browser.window(before=bad) as window:
        window.open(page_of(tmp_path, board_dataset()))
        assert window.state["renderer"] == "canvas"
        assert len(window.picture()) > 5_000
        window.page.mouse.click(*window.where(7))
        assert window.state["selected"] == 7
        assert len(window.complaints) == 1
        assert "a shader does not compile" in window.complaints[0]
