"""Drawings of what :mod:`coopsheaf.analysis` finds (needs matplotlib, the extra ``viz``)."""

from __future__ import annotations

from coopsheaf.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
