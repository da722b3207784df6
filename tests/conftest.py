"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser.chromium import PROGRAM, Browser, start_browser
from hypothesis import settings

# Nothing is timed in tests: a busy machine is no failure.
settings.register_profile("coopsheaf", deadline=None)
settings.load_profile("coopsheaf")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of a process: two of them do not get along."""
    pytest.importorskip("playwright.sync_api")
    if PROGRAM is None:
        pytest.skip("no browser: apt-get install chromium, or set COOPSHEAF_BROWSER to one")
    with start_browser() as started:
        yield started
