"""Every network but CSNN, one folder per family: its layers, network, entries and recipes.

Nothing here is imported before a model of the family is asked for.
"""

from __future__ import annotations

from coopsheaf.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, submodules=True)
