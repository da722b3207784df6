"""The page of results: tables to sort, the scores of every run, training curves."""

from __future__ import annotations

from coopsheaf.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
