"""What recorded runs say together: rows, tables, and their text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.report.formats import render as render
    from coopsheaf.report.rows import Row as Row
    from coopsheaf.report.rows import summarise as summarise
    from coopsheaf.report.tables import layout as layout

__getattr__, __dir__, __all__ = attach(__name__)
