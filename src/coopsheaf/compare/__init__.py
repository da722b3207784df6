"""Does the graph help? Networks and boosted trees on the same folds, compared in pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.compare.comparison import ComparedModel as ComparedModel
    from coopsheaf.compare.comparison import Comparison as Comparison
    from coopsheaf.compare.comparison import load_comparison as load_comparison
    from coopsheaf.compare.running import compare_models as compare_models

__getattr__, __dir__, __all__ = attach(__name__)
