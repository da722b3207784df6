"""Results as one web page that needs nothing else. Imports no PyTorch.

Tables that can be sorted, the scores of single runs, training curves and links to explorers. The
page loads nothing, and its content security policy lets no script run but its own: names of models
and datasets may be anything a user typed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

from coopsheaf.pages.policy import page_policy
from coopsheaf.pages.results.charts import (
    Curve,
    axis,
    curve_chart,
    dot_strip,
    escape,
    stretch_of,
)
from coopsheaf.pages.results.run_files import RunFile
from coopsheaf.report.intervals import interval
from coopsheaf.report.reference import NOTHING_PRINTED, ColumnKey, Reference
from coopsheaf.report.rows import LOWER_IS_BETTER, Row, select, summarise
from coopsheaf.report.tables import (
    METRIC_LABELS,
    NO_RESULTS,
    PERCENT,
    Cell,
    Table,
    format_score,
    layout,
)
from coopsheaf.train.records import Record

BOLD = (
    "Bold: the best of a column, among the lines that are shown. Single runs, which have no "
    "deviation, do not compete with means."
)
_HUGE = 1e12  # beyond it (or not a number at all), a score has no place on an axis
# What stands in a table's head if less is better.
_LOWER = (*LOWER_IS_BETTER, *(METRIC_LABELS[name] for name in LOWER_IS_BETTER), "s")


def results_page(
    records: Iterable[Record],
    *,
    reference: Reference = NOTHING_PRINTED,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    timing: bool = False,
    runs: Iterable[RunFile] = (),
    folder: Path | None = None,
) -> str:
    """The whole page.

    Args:
        records: the runs.
        reference, datasets, models, timing: see :func:`coopsheaf.report.tables.layout`.
        runs: folders of runs (:func:`coopsheaf.pages.results.run_files.find_runs`); those that
            belong to one of the records bring their curves and a link to their explorer.
        folder: where the page will be, which links start from; the current folder by default.
    """
    shown = [
        record
        for record in records
        if (datasets is None or record.dataset in datasets)
        and (models is None or record.model in models)
    ]
    tables = layout(shown, reference=reference, datasets=datasets, models=models, timing=timing)
    keys = {record.key: record for record in shown}
    mine = [(keys[run.key], run) for run in runs if run.key in keys]
    sections = [
        *((table.title, _table(table)) for table in tables),
        ("Scores of the runs", _scores(shown, reference)),
        ("Training curves", _curves(mine)),
        ("Runs on disk", _runs(mine, folder or Path())),
    ]
    sections = [(title, body) for title, body in sections if body]
    body = "\n".join(
        f'<section id="part-{k}" aria-labelledby="title-{k}">\n'
        f'<h2 id="title-{k}">{escape(title)}</h2>\n{content}\n</section>'
        for k, (title, content) in enumerate(sections, start=1)
    )
    links = "".join(
        f'<li><a href="#part-{k}">{escape(title)}</a></li>'
        for k, (title, _) in enumerate(sections, start=1)
    )
    if sections:
        top = f'<p>{_summary(shown)}</p>\n<nav aria-label="Contents"><ul>{links}</ul></nav>'
    else:
        top = f"<p>{NO_RESULTS}</p>"
    style, script = _packaged("report.css"), _packaged("report.js")
    policy = page_policy(style, script)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>Results</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>Results</h1>\n{top}\n</header>\n<main>\n{body}\n</main>\n"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _packaged(name: str) -> str:
    return (resources.files("coopsheaf.pages.results") / name).read_text(encoding="utf-8")


def _summary(records: Sequence[Record]) -> str:
    def count(things: Iterable[object], one: str, many: str) -> str:
        number = len(set(things))
        return f"{number:,} {one if number == 1 else many}"

    parts = [
        f"{len(records):,} {'record' if len(records) == 1 else 'records'} of "
        + count((r.model for r in records), "model", "models")
        + " on "
        + count((r.dataset for r in records), "dataset", "datasets")
    ]
    for name in ("coopsheaf", "torch"):
        versions = sorted({r.versions[name] for r in records if name in r.versions})
        if versions:
            parts.append(f"{name} {', '.join(versions)}")
    return escape("; ".join(parts) + ".")


def _table(table: Table) -> str:
    def text(cell: Cell) -> str:
        marks = ",".join(map(str, cell.notes))
        return escape(cell.text) + (f"<sup>{marks}</sup>" if marks else "")

    head = "".join(
        f'<th scope="col" data-sort="{_order(metric)}">{text(cell)}'
        f"<small>{escape(metric)}</small></th>"
        for cell, metric in zip(table.datasets, table.metrics, strict=True)
    )
    best = find_best(table)
    lines = []
    for row, line in enumerate(table.lines):
        cells = "".join(
            f"<td{' class=best' if (row, k) in best else ''}{_value(cell)}"
            f"{' data-alone' if is_alone(table, row, k) else ''}>{text(cell)}</td>"
            for k, cell in enumerate(line.cells)
        )
        source = escape(line.source)
        lines.append(
            f'<tr class="{source}"><th scope="row" data-source="{source}">{escape(line.model)}</th>'
            f'<td class="word source">{source}</td>{cells}</tr>'
        )
    rows = "\n".join(lines)
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    notes = f"<ol>{notes}</ol>" if notes else ""
    remarks = "".join(f"<p>{escape(remark)}</p>" for remark in table.remarks)
    whole = (
        '<table class="sortable sources">\n<thead><tr>'
        '<th scope="col" data-sort="word">Model</th>'
        '<th scope="col" class="word source" data-sort="word">Source</th>'
        f"{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    )
    return f'{_scroll(table.title, whole)}\n<div class="notes"><p>{BOLD}</p>{notes}{remarks}</div>'


def find_best(table: Table) -> set[tuple[int, int]]:
    """The places, line and column, of the best number of every column that has several."""
    best = set()
    for k, metric in enumerate(table.metrics):
        values = {
            row: value
            for row, line in enumerate(table.lines)
            if (value := read_number(line.cells[k])) is not None and not is_alone(table, row, k)
        }
        if len(values) > 1:
            top = (min if _order(metric) == "up" else max)(values.values())
            best |= {(row, k) for row, value in values.items() if value == top}
    return best


def is_alone(table: Table, row: int, column: int) -> bool:
    """Whether a number is that of one run, without a deviation, in a column of means."""
    texts = [line.cells[column].text for line in table.lines]
    return "±" not in texts[row] and any("±" in text for text in texts)


def _scroll(title: str, content: str) -> str:
    """What may be wider than the screen; it can be scrolled with the keys too."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(title)}">\n'
        f"{content}\n</div>"
    )


def _order(metric: str) -> str:
    """Which way round a column is first sorted: the best on top."""
    return "up" if metric in _LOWER else "down"


def read_number(cell: Cell) -> float | None:
    """The number in a cell; the printed text may have a deviation after it."""
    try:
        value = float(cell.text.split(" ", 1)[0])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _value(cell: Cell) -> str:
    """The number in a cell, for sorting."""
    value = read_number(cell)
    return "" if value is None else f' data-value="{value!r}"'


def _scores(records: Sequence[Record], reference: Reference) -> str:
    """A dot plot for every column: each run, the mean of all, and the published number."""
    columns: dict[ColumnKey, list[Row]] = {}
    for row, _ in select(summarise(records, reference)):
        if row.tests and all(abs(score) < _HUGE for score in row.tests):
            columns.setdefault(row.column, []).append(row)
    if not columns:
        return ""
    legend = (
        '<ul class="legend"><li class="run">test score of a run</li>'
        '<li class="mean">mean</li><li class="band">95 % interval of the mean</li>'
        '<li class="published">published mean and deviation</li></ul>'
        '<p class="notes">Intervals are Student’s t over the runs. Splits of one graph overlap, '
        "which makes them a rough guide. The best mean comes first.</p>"
    )
    plots = [_dot_plot(column, rows, reference) for column, rows in sorted(columns.items())]
    return legend + "\n" + "\n".join(plots)


def _dot_plot(column: ColumnKey, rows: list[Row], reference: Reference) -> str:
    dataset, metric, remark, _ = column
    lower = metric in LOWER_IS_BETTER
    rows = sorted(rows, key=lambda row: (1 if lower else -1) * fmean(row.tests))
    beside = [reference.beside(row.model, column) for row in rows]
    ends = [score for row in rows for score in row.tests]
    for row in rows:
        if len(row.tests) > 2:  # of two runs the interval is so wide that it would rule the axis
            ends += interval(row.tests) or ()
    for entry in beside:
        if entry is not None:
            ends += [entry.value - entry.deviation, entry.value + entry.deviation]
    scale = stretch_of(ends)
    labels = [row.label for row in rows]
    lines = []
    for row, entry in zip(rows, beside, strict=True):
        mean = fmean(row.tests)
        several = labels.count(row.label) > 1 and row.seed is not None
        name = f"{row.label}, seed {row.seed}" if several else row.label
        count = f"{len(row.runs)}" + (f" of {row.expected}" if row.expected else "")
        said = format_score(metric, mean, row.std if len(row.tests) > 1 else None)
        number = None if entry is None else (entry.value, entry.deviation)
        strip = dot_strip(scale, _dots(row), f"{name}: {said}", number)
        lines.append(
            f'<tr class="ours"><th scope="row">{escape(name)}</th><td class="wide">{strip}</td>'
            f'<td data-value="{len(row.runs)}">{count}</td>'
            f'<td data-value="{mean!r}">{escape(said)}</td></tr>'
        )
    heading = f"{dataset}, {METRIC_LABELS.get(metric, metric)}"
    unit = 100.0 if metric in PERCENT else 1.0
    return (
        f'<table class="dots sortable">\n<caption>{escape(heading)}'
        f"{f'<small>{escape(remark)}</small>' if remark else ''}</caption>\n"
        '<thead><tr><th scope="col" data-sort="word">Model</th><th scope="col" class="wide">'
        f'{axis(scale, unit)}</th><th scope="col" data-sort="down">Runs</th>'
        f'<th scope="col" data-sort="{"up" if lower else "down"}">'
        f"Mean</th></tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody>\n</table>"
    )


def _dots(row: Row) -> list[tuple[float, str]]:
    """The scores with their splits, as far as it is known which is whose."""
    one = row.over.removesuffix("s")
    known = len(row.runs) == len(row.tests)
    return [
        (score, (f"{one} {row.runs[k]}: " if known else "") + format_score(row.metric, score, None))
        for k, score in enumerate(row.tests)
    ]


def _curves(runs: Sequence[tuple[Record, RunFile]]) -> str:
    """For every model and setting on a dataset its runs on top of each other."""
    groups: dict[tuple[str, ...], list[tuple[Record, RunFile]]] = {}
    for record, run in runs:
        if run.history and all(len(row) >= 4 for row in run.history):
            group = (record.dataset, record.model, record.semantics, record.config_hash)
            groups.setdefault(group, []).append((record, run))
    if not groups:
        return ""
    legend = (
        '<ul class="legend"><li class="val">validation</li><li class="train">training</li>'
        '<li class="best">epoch that was kept</li></ul>'
    )
    return legend + "\n" + "\n".join(_charts(group) for _, group in sorted(groups.items()))


def _charts(group: list[tuple[Record, RunFile]]) -> str:
    first = group[0][0]
    scores, losses, kept = [], [], []
    for record, run in group:
        name = f"split {record.split}, seed {record.seed}"
        val = [(row[0], row[3]) for row in run.history]
        scores.append(
            Curve([(row[0], row[2]) for row in run.history], "train", f"{name}: training")
        )
        scores.append(Curve(val, "val", f"{name}: validation"))
        losses.append(Curve([(row[0], row[1]) for row in run.history], "train", f"{name}: loss"))
        kept += [
            (x, y, f"{name}: epoch {x:.0f}, validation {format_score(record.metric, y, None)}")
            for x, y in val
            if x == run.best_epoch and math.isfinite(y)
        ]
    metric = METRIC_LABELS.get(first.metric, first.metric)
    unit = 100.0 if first.metric in PERCENT else 1.0
    title = f"{first.model} on {first.dataset}"
    if first.semantics:
        title += f", {first.semantics} semantics"
    count = f"{len(group)} run{'s' if len(group) > 1 else ''}"
    return (
        f"<figure>\n<figcaption>{escape(title)}<small>{count}, settings "
        f"{escape(first.config_hash[:8])}</small></figcaption>\n"
        f'<div class="pair"><div><h3>{escape(metric)} by epoch</h3>'
        + curve_chart(scores, kept, f"{title}: {metric} by epoch", unit=unit)
        + "</div><div><h3>training loss by epoch</h3>"
        + curve_chart(losses, [], f"{title}: training loss by epoch", logarithmic=True)
        + "</div></div>\n</figure>"
    )


def _runs(runs: Sequence[tuple[Record, RunFile]], folder: Path) -> str:
    """One line per run that is on disk, with a link to its explorer."""
    if not runs:
        return ""
    lines = []
    for record, run in sorted(
        runs, key=lambda pair: (pair[0].dataset, pair[0].model, pair[0].split)
    ):
        link = '<td class="word">–</td>'
        if run.explorer is not None:
            label = f"explorer of {record.model} on {record.dataset}, split {record.split}"
            link = (
                f'<td class="word"><a href="{escape(_link(run.explorer, folder))}" '
                f'aria-label="{escape(label)}">explorer</a></td>'
            )
        cells = "".join(
            f"<td{_value(cell)}>{escape(cell.text)}</td>"
            for cell in (
                Cell(str(record.split)),
                Cell(_score(record.metric, record.val)),
                Cell(_score(record.metric, record.test)),
                Cell(f"{run.best_epoch}"),
                Cell("–" if record.seconds is None else f"{record.seconds:.0f}"),
            )
        )
        lines.append(
            f'<tr><th scope="row">{escape(record.model)}</th><td class="word">'
            f'{escape(record.dataset)}</td>{cells}{link}<td class="word">'
            f"<code>{escape(run.folder.as_posix())}</code></td></tr>"
        )
    heads = (
        ("Model", "word"), ("Dataset", "word"), ("Split", "up"), ("Validation", "down"),
        ("Test", "down"), ("Best epoch", "up"), ("Seconds", "up"),
    )  # fmt: skip
    head = "".join(f'<th scope="col" data-sort="{way}">{name}</th>' for name, way in heads)
    head += '<th scope="col" class="word">Explorer</th><th scope="col" class="word">Folder</th>'
    return _scroll(
        "Runs on disk",
        f'<table class="sortable">\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody>\n</table>",
    )


def _score(metric: str, value: float | None) -> str:
    return "–" if value is None else format_score(metric, value, None)


def _link(path: Path, folder: Path) -> str:
    """A link from a page in ``folder``; percent signs keep it from being anything but a file."""
    try:
        relative = os.path.relpath(path, folder)
    except ValueError:  # on another drive
        return path.resolve().as_uri()
    return "./" + quote(Path(relative).as_posix(), safe="/")
