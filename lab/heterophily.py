"""The networks for heterophily beside the print, with the settings of their recipes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from coopsheaf.report.rows import Row, newest, summarise
from coopsheaf.report.tables import NOTHING, format_score
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.recipes import recipe_for, recipe_names
from coopsheaf.train.records import Record
from lab.agenda import FRIENDS, GEOM, PENN94
from lab.cells import count_cell, dataset_cell, gap_cell, legend, paper_cell, score_cell
from lab.compare import standard_error
from lab.outcomes import outcome_of
from lab.published import PAPER, PUBLISHED

TOO_FAR = 2  # standard errors from the print
COLUMNS = ("texas", "wisconsin", "film", "cornell", "cornell-corrected")


def as_published(records: Iterable[Record]) -> dict[tuple[str, str], Row]:
    """The runs with the settings of the packaged recipe, by model and dataset.

    CSNN in the paper's order, and with the seed that was first.
    """
    known = set(recipe_names())
    found: dict[tuple[str, str], Row] = {}
    for row in summarise(newest(records), PAPER):
        place = (row.model, row.dataset)
        if f"{row.model}/{row.dataset}" in known and row.config_hash == _recipe_hash(*place):
            found.setdefault(place, row)
    return found


@cache
def _recipe_hash(model: str, dataset: str) -> str:
    return recipe_for(model, dataset).hash()


def table(records: Sequence[Record]) -> str:
    """The second table: the print, ours, and the distance in our standard errors."""
    rows = as_published(records)
    printed = {e.model: e for e in PUBLISHED if e.table == "geom-gcn"}
    others = [model for model, dataset in rows if dataset in GEOM]
    lines = []
    for model in dict.fromkeys([*printed, *others]):
        entry = printed.get(model)
        name = f"{model} ({entry.label})" if entry else model
        source = entry.protocol.source if entry else "not in the table"
        cells = [_cell(model, dataset, rows) for dataset in COLUMNS]
        if any(cell != NOTHING for cell in cells):
            lines.append((escape_markdown(name), source, *cells))
    head = " | ".join(["model (row of the table)", "who made the row", *COLUMNS])
    shown = [row for (_, dataset), row in rows.items() if dataset in GEOM]
    return markdown_table(head, lines, "ll" + "r" * len(COLUMNS)) + _partial(shown)


def _cell(model: str, dataset: str, rows: dict[tuple[str, str], Row]) -> str:
    """``printed → ours (distance)``."""
    row = rows.get((model, dataset))
    entry = PAPER.find(model, dataset)
    theirs = format_score(entry.metric, entry.value, entry.deviation) if entry else ""
    if row is None or not row.tests:
        return f"{theirs} → {NOTHING}" if theirs else NOTHING
    ours = score_cell(row.metric, row.tests)
    if not theirs:
        return ours
    distance = _distance(row)
    mark = "" if distance is None else f" ({round(distance, 1) + 0.0:+.1f} s.e.)"
    return f"{theirs} → {ours}{mark}"


def _partial(rows: Iterable[Row]) -> str:
    few = [f"{row.model}/{row.dataset} {count_cell(row)}" for row in rows if _is_partial(row)]
    return f"\nNot all splits: {', '.join(few)}.\n" if few else ""


def _is_partial(row: Row) -> bool:
    return row.expected is not None and len(row.runs) < row.expected


def _distance(row: Row) -> float | None:
    """From the print, in standard errors of our mean; ``None`` where there is nothing to say."""
    entry, error = PAPER.beside(row.model, row.column), standard_error(row)
    if entry is None or not error or row.mean is None:
        return None
    return (row.mean - entry.value) / error


def rows_apart(records: Sequence[Record]) -> list[Row]:
    """Rows of the second table more than two standard errors from the print, either way."""
    return [
        row
        for (_, dataset), row in as_published(records).items()
        if dataset in GEOM and abs(_distance(row) or 0.0) > TOO_FAR
    ]


def apart(records: Sequence[Record]) -> str:
    """The list of them, those above the print before those below, and what came of each."""
    rows = rows_apart(records)
    if not rows:
        return "There is no such number.\n"
    rows.sort(key=lambda row: (-(_distance(row) or 0.0), row.model))
    head = "dataset | model | ours | print | ours − print | runs | outcome"
    lines = [
        (
            dataset_cell(row),
            escape_markdown(row.model),
            score_cell(row.metric, row.tests),
            paper_cell(row),
            gap_cell(row),
            count_cell(row),
            escape_markdown(outcome_of(row.model, row.dataset)),
        )
        for row in rows
    ]
    return markdown_table(head, lines, "llrrrrl") + legend(rows)


def friends(records: Sequence[Record]) -> str:
    """The rows of Penn94, as they are printed, and the same settings on other such networks."""
    rows = as_published(records)
    lines = []
    for entry in PUBLISHED:
        if entry.table != "penn94":
            continue
        theirs = format_score(entry.metric, entry.value, entry.deviation)
        known = entry.model in (*PENN94, "csnn")
        name = entry.model if known else f"{entry.model} (not here)"
        cells = [_friend_cell(rows.get((entry.model, dataset))) for dataset in FRIENDS]
        lines.append((f"{escape_markdown(name)} ({entry.label})", theirs, *cells))
    head = "model (row of Penn94) | Penn94, as printed | " + " | ".join(FRIENDS)
    return markdown_table(head, lines, "lr" + "r" * len(FRIENDS))


def _friend_cell(row: Row | None) -> str:
    if row is None or not row.tests:
        return NOTHING
    few = "" if len(row.runs) >= 5 else f" ({len(row.runs)} of 5)"
    return score_cell(row.metric, row.tests) + few


def tried(records: Sequence[Record], others: Sequence[Record]) -> str:
    """What was run to find reasons: the recipe with something set otherwise, beside the recipe.

    Where not all splits were run, the recipe's scores are those on the same ones.
    """
    rows = as_published(records)
    words: dict[tuple[str, str, str, int | None], str] = {
        (r.model, r.dataset, r.config_hash, r.seed): changes(r) for r in others
    }
    found = sorted(summarise(others, PAPER), key=lambda row: (row.model, row.dataset))
    lines = []
    for row in found:
        recipe = rows.get((row.model, row.dataset))
        lines.append(
            (
                dataset_cell(row),
                escape_markdown(row.model),
                escape_markdown(words[row.model, row.dataset, row.config_hash, row.seed]),
                count_cell(row),
                score_cell(row.metric, row.vals),
                score_cell(row.metric, row.tests),
                _on_same(row, recipe.val_by_run) if recipe else NOTHING,
                _on_same(row, recipe.test_by_run) if recipe else NOTHING,
                paper_cell(row),
            )
        )
    head = (
        "dataset | model | set otherwise | runs | validation | test | validation, recipe"
        " | test, recipe | print"
    )
    return markdown_table(head, lines, "lllrrrrrr") if lines else "Nothing yet.\n"


def _on_same(row: Row, scores: Mapping[int, float]) -> str:
    values = [scores[run] for run in row.runs if run in scores]
    return score_cell(row.metric, values) if values else NOTHING


def changes(record: Record) -> str:
    """What a run has set otherwise than the recipe of its network and data."""
    theirs = recipe_for(record.model, record.dataset).to_mapping()
    found = []
    for section in ("model", "data", "train", "batch"):
        ours, usual = record.config.get(section, {}), theirs.get(section, {})
        for key in dict.fromkeys([*ours, *usual]):
            if ours.get(key) != usual.get(key):
                found.append(f"{section}.{key}={ours.get(key, 'none')}")
    return ", ".join(found)
