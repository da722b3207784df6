"""The page of ten thousand nodes in a real browser: it opens, answers, and tells the truth."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest
import torch
from browser.chromium import Browser, Window, needs_browser
from browser.conftest import Board
from PIL import Image

pytestmark = needs_browser


@pytest.fixture(scope="module")
def opened(browser: Browser, board: Board) -> Iterator[Window]:
    with browser.window() as window:
        yield put_back(window.open(board.file))


@pytest.fixture
def window(opened: Window) -> Iterator[Window]:
    """One window for many tests, each of which finds all of the board and nothing chosen."""
    yield opened
    assert opened.complaints == []
    put_back(opened)


def put_back(opened: Window) -> Window:
    opened.page.mouse.move(5, 5)
    opened.page.fill("#search", "")
    opened.page.evaluate("document.activeElement.blur()")
    opened.page.keyboard.press("Escape")
    opened.page.keyboard.press("0")
    opened.set("#layer", 1)
    opened.set("#share", 50)
    opened.page.select_option("#colour", label="action")
    return opened


def numbers(text: str) -> list[float]:
    return [float(word.replace("−", "-").replace(",", "")) for word in re.findall(r"[−-]?\d[\d,]*\.?\d*(?:e[−-]?\d+)?", text)]  # fmt: skip


def row(window: Window, box: str, name: str) -> str:
    """What stands beside a name in a list of pairs."""
    return window.page.locator(f"{box} dt", has_text=re.compile(f"^{name}$")).locator("xpath=following-sibling::dd[1]").inner_text()  # fmt: skip


def test_it_opens_from_a_file_alone(window: Window, board: Board) -> None:
    assert window.requests == [board.file.as_uri()]
    assert window.state["renderer"] == "WebGL"
    assert window.page.title() == "csnn on minesweeper-generated · coopsheaf"
    assert "10,000 nodes · 78,804 directed edges · 2 layers" in window.text("#facts")
    # Something of every colour of the legend that there is, not a blank sheet.
    assert len(window.picture()) > 50_000
    for section in ("node", "why", "actions", "scales", "groupings", "predictions", "training"):
        assert window.page.locator(f"#{section}-section").is_visible()


def test_the_layer_changes_the_picture(window: Window, board: Board) -> None:
    first = window.picture()
    window.set("#layer", 2)
    assert window.text("#layer-value") == "2 of 2"
    assert window.picture() != first
    counts = board.report.counts[1].tolist()
    assert [int(line.replace(",", "")) for line in window.page.locator("#legend .numeric").all_inner_texts()] == counts  # fmt: skip
    window.set("#layer", 1)
    assert window.picture() == first


def test_the_threshold_hides_edges(window: Window, board: Board) -> None:
    window.page.evaluate("explorer.select(5050)")
    window.page.keyboard.press("Escape")
    flow = board.report.layers[0].flow
    many = window.picture()
    for share in (100, 20):
        window.set("#share", share)
        least, count = numbers(window.text("#share-value"))
        assert count == int((flow >= least * (1 - 2e-3)).sum()) or abs(count / (flow >= least).sum() - 1) < 0.01  # fmt: skip
        assert abs(count / len(flow) - share / 100) < 0.02
    assert window.picture() != many
    window.set("#share", 0)
    assert window.text("#share-value") == "no edges"


def test_every_way_to_colour_nodes(window: Window) -> None:
    options = window.page.locator("#colour option").all_inner_texts()
    assert options == ["action", "true class", "predicted class", "right or wrong", "certainty", "listening strength", "broadcasting strength", "part of the split", "why Node 4242"]  # fmt: skip
    seen = set()
    for option in options:
        window.page.select_option("#colour", label=option)
        seen.add(window.picture())
        assert window.text("#legend")
    assert len(seen) == len(options)


def test_colours_are_those_of_the_legend(window: Window, board: Board) -> None:
    """Okabe and Ito's, by class and by action, at the middle of nodes of every kind."""
    colours = {"blue": "#0072b2", "orange": "#e69f00", "green": "#009e73", "purple": "#cc79a7"}
    by_class, by_action = ("blue", "orange"), ("green", "blue", "orange", "purple")
    action, y = board.report.layers[0].action, board.dataset.y
    for label, kinds, values in (("action", by_action, action), ("true class", by_class, y)):
        window.page.select_option("#colour", label=label)
        for kind in values.unique().tolist():
            node = int((values == kind).nonzero()[0])
            window.page.evaluate(f"explorer.select({node})")
            assert pixel(window, node) == colours[kinds[kind]]


def pixel(window: Window, node: int) -> str:
    box = window.page.locator("#canvas").bounding_box()
    x, y = window.where(node)
    image = Image.open(io.BytesIO(window.picture())).convert("RGB")
    red, green, blue = image.getpixel((round(x - box["x"]), round(y - box["y"])))
    return f"#{red:02x}{green:02x}{blue:02x}"


def test_search_finds_a_node_and_shows_its_flows(window: Window, board: Board) -> None:
    node = 4243
    window.page.keyboard.press("/")
    window.page.keyboard.type("4243")
    assert window.page.locator("#found li").first.inner_text().startswith("Node 4243")
    window.page.keyboard.press("Enter")
    state = window.state
    assert state["selected"] == node
    assert (state["x"], state["y"]) == (43, 42)  # in the middle
    assert "Node 4243" in window.text("#card h3")
    source, target = board.dataset.edge_index
    flow = board.report.layers[0].flow
    for box, ends, others in ((".flows.in", target, source), (".flows.out", source, target)):
        mine = (ends == node).nonzero().squeeze(1)
        told = window.page.locator(f"{box} li").all_inner_texts()
        assert len(told) == len(mine) == 8
        pairs = [numbers(line) for line in told]
        assert {int(other) for other, _ in pairs} == set(others[mine].tolist())
        strengths = [value for _, value in pairs]
        assert strengths == sorted(strengths, reverse=True)
        wanted = dict(zip(others[mine].tolist(), flow[mine].tolist(), strict=True))
        for other, value in pairs:
            assert value == pytest.approx(wanted[int(other)], rel=2e-3)
    # Along a flow to the neighbour.
    window.page.locator(".flows.in button").first.click()
    assert window.state["selected"] == int(numbers(window.text("#card h3"))[0]) != node


def test_nothing_is_found_and_nothing_breaks(window: Window) -> None:
    window.page.fill("#search", "nobody at all")
    assert window.text("#found") == "No such node is shown"
    window.page.keyboard.press("Enter")
    assert window.state["selected"] == -1


def test_pointing_at_a_node_shows_its_numbers(window: Window, board: Board) -> None:
    node = 3217
    window.page.evaluate(f"explorer.select({node - 1})")
    window.page.mouse.move(*window.where(node))
    window.page.wait_for_selector("#tip", state="visible")
    assert window.text("#tip strong") == f"Node {node}"
    data, run = board.dataset, board.run
    with torch.no_grad():
        chance = run.task.probabilities(run.model(data.x, data.edge_index))[node]
    names = data.class_names
    assert row(window, "#tip", "class") == names[int(data.y[node])]
    told = row(window, "#tip", "predicted")
    assert told.startswith(names[int(chance.argmax())])
    assert numbers(told)[0] == pytest.approx(float(chance.max()), rel=1e-3)
    assert row(window, "#tip", "degree") == "8 in, 8 out"
    part = next(name for name in ("train", "val", "test") if getattr(data, name)[0, node])
    assert row(window, "#tip", "part") == part
    layer = board.report.layers[0]
    for name, values in (("s", layer.source_scale), ("t", layer.target_scale), ("broadcasting", layer.broadcasting), ("listening", layer.listening)):  # fmt: skip
        assert numbers(row(window, "#tip", name))[0] == pytest.approx(float(values[node]), rel=1e-3)
    names = [("standard", "listen", "propagate", "isolate")[int(each.action[node])] for each in board.report.layers]  # fmt: skip
    assert window.page.locator("#tip .layers li").all_inner_texts() == names
    window.page.mouse.click(*window.where(node))
    assert window.state["selected"] == node
    window.page.mouse.move(5, 5)
    assert not window.page.locator("#tip").is_visible()


def test_the_pointer_moves_and_zooms(window: Window) -> None:
    x, y = window.where(5050)
    window.page.mouse.move(x, y)
    before = window.state
    window.page.mouse.wheel(0, -600)
    window.page.wait_for_timeout(100)
    after = window.state
    assert after["scale"] > 1.5 * before["scale"]
    assert window.where(5050) == pytest.approx(
        (x, y), abs=0.6
    )  # what is under the pointer stays there
    window.page.mouse.down()
    window.page.mouse.move(x + 80, y + 30, steps=4)
    window.page.mouse.up()
    assert window.where(5050) == pytest.approx((x + 80, y + 30), abs=0.6)
    assert window.state["selected"] == -1  # moving is not choosing
    window.page.click("#fit")
    assert window.state["scale"] == pytest.approx(before["scale"])


def test_the_keyboard_does_it_all(window: Window) -> None:
    press = window.page.keyboard.press
    start = window.state
    press("+")
    press("+")
    closer = window.state
    assert closer["scale"] > 1.5 * start["scale"]
    press("ArrowRight")
    press("ArrowDown")
    moved = window.state
    assert moved["x"] > closer["x"]
    assert moved["y"] > closer["y"]
    press("ArrowLeft")
    press("ArrowUp")
    assert window.state["x"] == pytest.approx(closer["x"])
    press("-")
    assert window.state["scale"] < closer["scale"]
    press("0")
    assert window.state["scale"] == pytest.approx(start["scale"])
    press("]")
    assert window.state["layer"] == 1
    press("]")
    assert window.state["layer"] == 1  # the last one
    press("[")
    assert window.state["layer"] == 0
    # By tab to the layer, whose arrows are its own.
    order = []
    window.page.focus(".skip")
    for _ in range(8):
        press("Tab")
        order.append(window.page.evaluate("document.activeElement.id || document.activeElement.className"))  # fmt: skip
    assert order == ["search", "help", "theme", "layer", "colour", "share", "canvas", "closer"]  # fmt: skip
    window.page.focus("#layer")
    at = window.state
    press("ArrowRight")
    assert window.state["layer"] == 1
    assert window.state["x"] == at["x"]
    window.page.focus("#canvas")
    press("Enter")
    chosen = window.state["selected"]
    assert chosen in (4949, 4950, 5049, 5050)
    assert f"Node {chosen}" in window.text("#live")
    press("Escape")
    assert window.state["selected"] == -1
    press("?")
    assert "How to read" in window.text("#help-dialog")
    press("Escape")
    assert not window.page.locator("#help-dialog").is_visible()


def test_light_and_dark(browser: Browser, board: Board) -> None:
    grounds, pictures = {}, set()
    for scheme in ("light", "dark"):
        with browser.window(color_scheme=scheme) as window:
            window.open(board.file)
            assert window.state["theme"] == scheme
            ground = "getComputedStyle(document.body).backgroundColor"
            grounds[scheme] = sum(numbers(window.page.evaluate(ground)))
            pictures.add(window.picture())
            window.page.click("#theme")
            other = {"light": "dark", "dark": "light"}[scheme]
            assert window.state["theme"] == other
            assert window.complaints == []
    assert grounds["light"] > 3 * 240
    assert grounds["dark"] < 3 * 40
    assert len(pictures) == 2


def test_the_explanation_of_a_node(window: Window) -> None:
    rows = window.page.locator("#why-section tbody tr")
    assert rows.count() == 10
    window.page.locator("#why-section button", has_text="Show").click()
    state = window.state
    assert (state["selected"], state["mode"], state["why"]) == (4242, "why-0", 0)
    assert "strongest paths" in window.text("#legend")
    window.page.keyboard.press("Escape")
    assert window.state["why"] == -1


def test_a_phone(browser: Browser, board: Board) -> None:
    with browser.window(size=(390, 844), device_scale_factor=2, has_touch=True, is_mobile=True) as window:  # fmt: skip
        window.open(board.file)
        assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
        window.page.evaluate("explorer.select(5050)")
        window.page.touchscreen.tap(*window.where(5051))
        assert window.state["selected"] == 5051
        assert window.page.locator("#tip").is_visible()
        box = window.page.locator("#tip").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert window.page.evaluate("document.documentElement.scrollWidth") <= 390
        pinch(window)
        for size in window.page.locator("button:visible, select:visible").evaluate_all("all => all.filter(e => !e.closest('.panel')).map(e => e.getBoundingClientRect().height)"):  # fmt: skip
            assert size >= 28
        assert window.complaints == []


def pinch(window: Window) -> None:
    """Two fingers that move apart."""
    before = window.state["scale"]
    box = window.page.locator("#canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = window.page.context.new_cdp_session(window.page)
    for kind, gap in (("touchStart", 30), ("touchMove", 45), ("touchMove", 60), ("touchEnd", None)):
        points = [] if gap is None else [{"x": x - gap, "y": y}, {"x": x + gap, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert window.state["scale"] == pytest.approx(2 * before, rel=0.15)


def test_a_lost_graphics_card_comes_back(window: Window) -> None:
    before = window.picture()
    window.page.evaluate(
        """new Promise((go) => {
          const canvas = document.getElementById("canvas");
          const card = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
          canvas.addEventListener("webglcontextrestored", () => setTimeout(go, 100));
          card.loseContext();
          setTimeout(() => card.restoreContext(), 100);
        })"""
    )
    assert window.picture() == before
    assert window.state["renderer"] == "WebGL"
    window.complaints.clear()  # the browser says that it was lost
