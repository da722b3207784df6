"""Searches of settings, with Optuna (the extra ``sweep``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.sweep.plan import Plan as Plan
    from coopsheaf.sweep.plan import SweepError as SweepError
    from coopsheaf.sweep.plan import load_plan as load_plan
    from coopsheaf.sweep.plan import make_plan as make_plan
    from coopsheaf.sweep.search import Sweep as Sweep
    from coopsheaf.sweep.space import Choice as Choice
    from coopsheaf.sweep.space import Range as Range
    from coopsheaf.sweep.space import Space as Space
    from coopsheaf.sweep.space import load_space as load_space

__getattr__, __dir__, __all__ = attach(__name__)
