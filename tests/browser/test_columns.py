"""Columns beside the node, in a real browser: what is written is what was found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from analysis.planted import planted_tables, trained
from browser.chromium import Browser, Window, needs_browser
from pages.explorer.pages import HOSTILE, data_of

from coopsheaf.analysis import column_importance
from coopsheaf.pages.explorer import explore

pytestmark = needs_browser

NODE = 5


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = planted_tables(2, n=120)
    run = trained(data)
    importance = column_importance(run, data.dataset, part="test", repeats=2)
    path = tmp_path_factory.mktemp("columns") / "page.html"
    html = explore(run, data.dataset, explain=[NODE, 9], importance=importance).html
    path.write_bytes(html.encode())
    return path


@pytest.fixture
def window(browser: Browser, file: Path) -> Iterator[Window]:
    with browser.window() as window:
        yield window.open(file)
        assert window.complaints == []


def cells(window: Window, table: int) -> list[list[str]]:
    """The texts of a table of the card, row by row; what is a bar is left out."""
    rows = window.page.locator("#card .by-column").nth(table).locator("tbody tr")
    return [row.locator("th, td.numeric").all_inner_texts() for row in rows.all()]


def test_the_columns_stand_beside_the_node(window: Window, file: Path) -> None:
    found = data_of(file.read_text("utf-8"))["explanations"][0]
    window.page.evaluate("explorer.select(0)")
    assert window.page.locator("#card .by-column").count() == 0  # not explained
    window.page.evaluate(f"explorer.select({found['node']})")
    assert window.page.locator("#card h4").all_inner_texts()[:2] == ["Its own columns", "Columns of its neighbours"]  # fmt: skip
    assert found["score"] in window.text("#card .why-columns p >> nth=0")
    for table, part in enumerate(found["columns"]):
        shown = cells(window, table)
        assert len(shown) == len(part["rows"]) == 7
        for (name, attribution, muted), row in zip(shown, part["rows"], strict=True):
            assert name.split() == [row["name"], *row["value"].split()]
            for text, value in ((attribution, row["attribution"]), (muted, row["muted"])):
                assert float(text.replace("−", "-")) == pytest.approx(value, rel=6e-3)
    window.page.evaluate("explorer.select(9)")
    assert cells(window, 0) != shown


def test_bars_point_to_the_side_of_the_sign(window: Window, file: Path) -> None:
    found = data_of(file.read_text("utf-8"))["explanations"][0]
    window.page.evaluate(f"explorer.select({found['node']})")
    rows = [row for part in found["columns"] for row in part["rows"]]
    most = max(abs(row["attribution"]) for row in rows)
    boxes = window.page.locator("#card .signed-bar").evaluate_all(
        "all => all.map(bar => [bar.getBoundingClientRect(), bar.firstChild.getBoundingClientRect()]"
        ".map(({left, width}) => [left, width]))"
    )
    assert len(boxes) == len(rows)
    for ((left, width), (start, length)), row in zip(boxes, rows, strict=True):
        middle, share = left + width / 2, abs(row["attribution"]) / most
        assert length == pytest.approx(share * width / 2, abs=0.6)
        assert (start + length if row["attribution"] < 0 else start) == pytest.approx(middle, abs=0.6)  # fmt: skip
    signs = {row["attribution"] > 0 for row in rows}
    assert signs == {True, False}


def test_what_matters_for_all_nodes(window: Window, file: Path) -> None:
    found = data_of(file.read_text("utf-8"))["importance"]
    rows = window.page.locator("#columns-section tbody tr").all()
    names = [row.locator("th").inner_text() for row in rows]
    assert names == [row["name"] for row in found["rows"]]
    assert names[0] == "planted"
    drop = rows[0].locator("td.numeric").first.inner_text()
    assert float(drop) == pytest.approx(found["rows"][0]["drop"], rel=6e-3)
    assert "on the test nodes of the split" in window.text("#columns-section")


def test_on_a_phone_and_with_names_that_try_to_be_markup(browser: Browser, tmp_path: Path) -> None:
    from dataclasses import replace

    data = planted_tables(3, n=120)
    encoder = data.schema.encoder
    columns = tuple(
        replace(column, name=name) for column, name in zip(encoder.columns, HOSTILE, strict=False)
    )
    run = trained(data, epochs=2)
    run.info["encoder"] = replace(encoder, columns=columns).to_json()
    importance = column_importance(run, data.dataset, repeats=1)
    path = tmp_path / "page.html"
    path.write_bytes(explore(run, data.dataset, explain=[0], importance=importance).html.encode())
    for size in ((360, 700), (1280, 800)):
        with browser.window(size=size, has_touch=True, is_mobile=size[0] < 400) as window:
            window.open(path)
            window.page.evaluate("explorer.select(0)")
            assert window.page.locator("#card .by-column").count() == 2
            assert window.page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert window.page.evaluate("[window.hacked, document.images.length]") == [None, 0]
            assert window.complaints == []
