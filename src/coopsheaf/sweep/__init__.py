"""Searches of settings, with Optuna (the extra ``sweep``)."""

from __future__ import annotations

from coopsheaf.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
