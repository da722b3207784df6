"""A real browser for the tests: Chromium of the system, driven by Playwright.

Playwright's own browsers are never downloaded. ``COOPSHEAF_BROWSER`` names another program.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PROGRAM = os.environ.get("COOPSHEAF_BROWSER") or next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))),
    None,
)  # fmt: skip
# WebGL by a software renderer, so that it is there on machines without a graphics card.
OPTIONS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")  # fmt: skip
FIRST_PICTURE = "performance.getEntriesByName('first-picture').length > 0"

needs_browser = [
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None,
        reason="no Playwright: pip install playwright",
    ),
    pytest.mark.skipif(
        PROGRAM is None,
        reason="no browser: apt-get install chromium, or set COOPSHEAF_BROWSER to one",
    ),
]


@dataclass
class Window:
    """A page in the browser, and everything it complained about or asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, file: Path) -> Window:
        """Open a file and wait for its picture and its numbers."""
        page = self.page
        page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(file.as_uri())
        self.until(FIRST_PICTURE)
        page.wait_for_selector("#settings-section")
        return self

    def until(self, true: str, seconds: float = 60) -> None:
        """Wait for an expression; Playwright's own way is forbidden by the policy of the page."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(true):
            assert time.monotonic() < end, true
            self.page.wait_for_timeout(20)

    @property
    def state(self) -> dict[str, Any]:
        return self.page.evaluate("explorer.state()")

    def picture(self) -> bytes:
        """The canvas when it is at rest."""
        self.until("explorer.state().resting")
        self.page.evaluate("new Promise((go) => requestAnimationFrame(() => setTimeout(go)))")
        return self.page.locator("#canvas").screenshot()

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def where(self, node: int) -> tuple[float, float]:
        """The place of a node in the window."""
        x, y = self.page.evaluate(f"explorer.screen({node})")
        box = self.page.locator("#canvas").bounding_box()
        return box["x"] + x, box["y"] + y

    def set(self, control: str, value: object) -> None:
        """Move a slider, as a user does."""
        self.page.locator(control).evaluate(
            "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }",
            str(value),
        )


class Browser:
    """Opens windows; each has nothing of the others."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    @contextmanager
    def window(self, *, size: tuple[int, int] = (1280, 800), **options: Any) -> Iterator[Window]:
        before = options.pop("before", None)
        viewport = {"width": size[0], "height": size[1]}
        context = self.browser.new_context(viewport=viewport, **options)
        try:
            page = context.new_page()
            if before is not None:
                page.add_init_script(before)
            yield Window(page)
        finally:
            context.close()


@contextmanager
def start_browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=list(OPTIONS))
        try:
            yield Browser(browser)
        finally:
            browser.close()
