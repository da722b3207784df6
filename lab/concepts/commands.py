"""``python -m lab figures``."""

from __future__ import annotations

from coopsheaf.cli.figures import Drawings, check_folder, draw_all
from lab import args
from lab.concepts import figures as concepts
from lab.concepts.spectra import small_spectra_figure

CONCEPTS: Drawings = {
    "sheaf-on-an-edge": concepts.sheaf_figure,
    "four-actions": concepts.actions_figure,
    "who-listens": concepts.silence_figure,
    "four-node-path": concepts.path_figure,
    "small-spectra": small_spectra_figure,
}


def figures(command: args.Figures) -> int:
    check_folder(command.output, command.format)
    return draw_all(CONCEPTS, command.output, command.format, force=command.force)
