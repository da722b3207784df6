"""Printed rows that are the best of a published grid, beside the best of those of its points that
were run: validation chooses. Imports no PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from coopsheaf.report.rows import Row, newest, summarise, validation
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.recipes import load_grid, recipe_for, recipe_names
from coopsheaf.train.records import Record
from lab.cells import dataset_cell, paper_cell, score_cell
from lab.compare import standard_error
from lab.published import PAPER

# The networks of a row, the first being that of the recipe. GCNII has two forms and one setting;
# all others have a grid beside their recipe.
FORMS: dict[str, tuple[str, ...]] = {
    "h2gcn": ("h2gcn",),
    "pairnorm": ("pairnorm",),
    "gprgnn-lab": ("gprgnn-lab",),
    "mixhop": ("mixhop",),
    "gcnii": ("gcnii", "gcnii-star"),
}
DATASETS = ("texas", "wisconsin", "cornell", "cornell-corrected", "film")


@dataclass(frozen=True)
class Point:
    """A point of a grid: a network, the hash of its settings, and in words what sets it apart."""

    model: str
    config_hash: str
    words: str


@dataclass(frozen=True)
class Best:
    """What came of a grid on one data set.

    Args:
        recipe: the point of the recipe.
        chosen: the point with the best mean validation score; the recipe's of equals.
        point: which that is.
        run: how many points have been run on all splits.
        points: how many there are.
    """

    recipe: Row
    chosen: Row
    point: Point
    run: int
    points: int


@cache
def grid_points(model: str, dataset: str) -> tuple[Point, ...]:
    """The points of a row's grid, that of the recipe first."""
    forms = FORMS[model]
    grid = {"": [""]} if len(forms) > 1 else load_grid(model)
    found = []
    for form in forms:
        base = recipe_for(form, dataset)
        for values in product(*grid.values()):
            settings = [f"{key}={value}" for key, value in zip(grid, values, strict=True) if key]
            point = base.set(*settings)
            other = [text for text in settings if base.set(text).hash() != base.hash()]
            words = ", ".join([form] * (form != model) + other) or "the recipe"
            found.append(Point(form, point.hash(), words))
    return tuple(sorted(found, key=lambda point: point.words != "the recipe"))


def best_of_grids(records: Iterable[Record]) -> list[Best]:
    """For every row and data set: what validation chooses among the points of the grid.

    Points that have not been run on all splits, or with another seed than the recipe's, do not take
    part.
    """
    rows = {
        (row.model, row.dataset, row.config_hash, row.seed): row
        for row in summarise(newest(records), PAPER)
        if len(row.vals) == len(row.tests) == row.expected
    }
    found = []
    for model in FORMS:
        for dataset in (name for name in DATASETS if f"{model}/{name}" in recipe_names()):
            seed = recipe_for(model, dataset).train.seed
            points = grid_points(model, dataset)
            run = [
                (rows[key], point)
                for point in points
                if (key := (point.model, dataset, point.config_hash, seed)) in rows
            ]
            if run and run[0][1] is points[0]:
                chosen, point = max(run, key=lambda pair: validation(pair[0]))
                found.append(Best(run[0][0], chosen, point, len(run), len(points)))
    return found


def grid_table(records: Sequence[Record]) -> str:
    """What validation chooses, beside the recipe and the print."""
    found = best_of_grids(records)
    lines = [
        (
            escape_markdown(best.recipe.model),
            dataset_cell(best.recipe),
            f"{best.run} of {best.points}",
            escape_markdown(best.point.words),
            score_cell(best.chosen.metric, best.chosen.vals),
            score_cell(best.recipe.metric, best.recipe.vals),
            score_cell(best.chosen.metric, best.chosen.tests) + _distance(best),
            score_cell(best.recipe.metric, best.recipe.tests),
            paper_cell(best.recipe),
        )
        for best in found
        if best.run > 1
    ]
    alone = [f"{best.recipe.model}/{best.recipe.dataset}" for best in found if best.run == 1]
    head = (
        "row | dataset | points run | chosen by validation | validation | validation, recipe"
        " | test | test, recipe | print"
    )
    table = markdown_table(head, lines, "llrlrrrrr") if lines else "Nothing yet.\n"
    rest = f"\nOnly the point of the recipe: {', '.join(alone)}.\n" if alone else ""
    return table + rest


def _distance(best: Best) -> str:
    """From the print, in standard errors of the mean of what was chosen."""
    entry = PAPER.beside(best.recipe.model, best.recipe.column)
    error = standard_error(best.chosen)
    if entry is None or not error or best.chosen.mean is None:
        return ""
    return f" ({(best.chosen.mean - entry.value) / error:+.1f} s.e.)"
