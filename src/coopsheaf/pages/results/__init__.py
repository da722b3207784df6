"""The page of results: tables to sort, the scores of every run, training curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.pages.results.page import results_page as results_page

__getattr__, __dir__, __all__ = attach(__name__)
