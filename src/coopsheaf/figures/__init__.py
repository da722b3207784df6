"""Drawings of what :mod:`coopsheaf.analysis` finds (needs matplotlib, the extra ``viz``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.figures.actions import composition_figure as composition_figure
    from coopsheaf.figures.actions import scales_figure as scales_figure
    from coopsheaf.figures.actions import sensitivity_figure as sensitivity_figure
    from coopsheaf.figures.explanations import explanation_figure as explanation_figure
    from coopsheaf.figures.influence import energy_figure as energy_figure
    from coopsheaf.figures.influence import influence_figure as influence_figure
    from coopsheaf.figures.influence import range_figure as range_figure
    from coopsheaf.figures.influence import receptive_figure as receptive_figure
    from coopsheaf.figures.influence import save as save
    from coopsheaf.figures.spectra import spectra_figure as spectra_figure
    from coopsheaf.figures.spectra import spectrum_figure as spectrum_figure
    from coopsheaf.figures.sweeps import history_figure as history_figure
    from coopsheaf.figures.sweeps import importance_figure as importance_figure

__getattr__, __dir__, __all__ = attach(__name__)
