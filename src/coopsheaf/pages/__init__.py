"""What is looked at in a browser: the explorer of a run, the page of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.pages.explorer.build import Exploration as Exploration
    from coopsheaf.pages.explorer.build import explore as explore
    from coopsheaf.pages.results.page import results_page as results_page

__getattr__, __dir__, __all__ = attach(__name__)
