"""Tables of results before they have a format. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from coopsheaf.data.metrics import METRICS
from coopsheaf.report.reference import (
    NOTHING_PRINTED,
    ColumnKey,
    PaperTable,
    Published,
    Reference,
    base_name,
)
from coopsheaf.report.rows import Row, select, summarise
from coopsheaf.train.records import Record

PERCENT = tuple(name for name, metric in METRICS.items() if metric.share)
METRIC_LABELS = {
    name: f"{metric.label}, %" if metric.share else metric.label for name, metric in METRICS.items()
}
NOTHING = "–"
NO_RESULTS = "There are no results yet."


@dataclass(frozen=True)
class Cell:
    """What a place of a table says, and the numbers of its notes."""

    text: str
    notes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Line:
    """One line of a table: a model, and whether its numbers are ours or the paper's."""

    model: str
    source: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table, ready to be written in any format.

    Args:
        title: its heading.
        datasets: headings of its columns.
        metrics: what stands in them.
        lines: its lines.
        notes: its numbered notes, from 1.
        remarks: what holds for the whole of it.
    """

    title: str
    datasets: tuple[Cell, ...]
    metrics: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    remarks: tuple[str, ...]


def layout(
    records: Iterable[Record],
    *,
    reference: Reference = NOTHING_PRINTED,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    timing: bool = False,
) -> list[Table]:
    """The tables of some records: one for each printed table, one for all other datasets.

    Args:
        records: the runs.
        reference: printed numbers, whose lines stand beside ours.
        datasets: only these, in this order; one without records shows the printed lines alone.
        models: only these.
        timing: also a table of seconds per epoch.
    """
    rows = [row for row in summarise(records, reference) if models is None or row.model in models]
    chosen = select(rows)
    columns: list[ColumnKey] = list(dict.fromkeys(row.column for row, _ in chosen))
    if datasets is not None:
        empty = [reference.empty_column(name) for name in datasets]
        known = {column[0] for column in columns}
        columns += [column for column in empty if column and column[0] not in known]
        wanted = list(datasets)
        columns = [column for column in columns if column[0] in wanted]
        columns.sort(key=lambda column: wanted.index(column[0]))
    tables = []
    for paper in (*reference.tables.values(), None):
        here = [column for column in columns if reference.table_of(column) is paper]
        if paper is not None and datasets is None:
            order = {name: place for place, name in enumerate(paper.metrics)}
            here = sorted(here, key=lambda column: order[base_name(column[0])])
        if here:
            tables.append(_Layout(here, chosen, paper, reference, models).scores())
    if timing and columns:
        tables.append(_Layout(columns, chosen, None, reference, models).seconds())
    return tables


class _Layout:
    """Puts one table together; its notes are numbered in the order they are first needed."""

    def __init__(
        self,
        columns: list[ColumnKey],
        chosen: list[tuple[Row, int]],
        paper: PaperTable | None,
        reference: Reference,
        models: Sequence[str] | None,
    ) -> None:
        self.columns = columns
        self.chosen = [pair for pair in chosen if pair[0].column in columns]
        self.paper = paper
        self.reference = reference
        names = [entry.model for entry in reference.entries if paper and entry.table == paper.name]
        names += [row.model for row, _ in self.chosen]
        self.models = [n for n in dict.fromkeys(names) if models is None or n in models]
        self.notes: list[str] = []

    def scores(self) -> Table:
        head = self._head()
        lines: list[Line] = []
        printed: list[Published] = []
        for model in self.models:
            entries = [self._entry(model, column) for column in self.columns]
            if any(entries):
                printed += [entry for entry in entries if entry]
                cells = [self._paper_cell(e, c) for e, c in zip(entries, self.columns, strict=True)]
                lines.append(Line(model, "paper", tuple(cells)))
            lines += self._ours(model, self._score_cell)
        others = "Other datasets" if self.reference.tables else "Results"
        title = self.paper.title if self.paper else others
        metrics = tuple(METRIC_LABELS.get(column[1], column[1]) for column in self.columns)
        return Table(
            title, head, metrics, tuple(lines), tuple(self.notes), tuple(self._remarks(printed))
        )

    def seconds(self) -> Table:
        head = self._head()
        lines: list[Line] = []
        for model in self.models:
            times = [self.reference.runtime(model, column) for column in self.columns]
            if any(times):
                cells = tuple(Cell(f"{t.seconds:.2f}") if t else Cell(NOTHING) for t in times)
                lines.append(Line(model, "paper", cells))
            lines += self._ours(model, self._seconds_cell)
        machines = dict.fromkeys(m for row, _ in self.chosen for m in row.machines)
        remarks = ["; ".join(["ours: mean over runs, evaluation included", *machines])]
        if any(line.source == "paper" for line in lines):
            remarks.append("paper: as printed, on one of several kinds of GPU")
        units = ("s",) * len(self.columns)
        title = "Seconds per epoch"
        return Table(title, head, units, tuple(lines), tuple(self.notes), tuple(remarks))

    def _ours(self, model: str, make_cell: Callable[[Row, int], Cell]) -> list[Line]:
        mine = [(row, beaten) for row, beaten in self.chosen if row.model == model]
        seeds = {row.seed for row, _ in mine if row.seed is not None}
        lines = []
        for label, seed in dict.fromkeys((row.label, row.seed) for row, _ in mine):
            by_column = {
                row.column: (row, beaten)
                for row, beaten in mine
                if (row.label, row.seed) == (label, seed)
            }
            several = len(seeds) > 1 and seed is not None
            cells = tuple(
                make_cell(*by_column[column]) if column in by_column else Cell(NOTHING)
                for column in self.columns
            )
            lines.append(Line(f"{label}, seed {seed}" if several else label, "ours", cells))
        return lines

    def _head(self) -> tuple[Cell, ...]:
        names = [column[0] for column in self.columns]
        cells = []
        for dataset, _, remark, checksum in self.columns:
            twice = names.count(dataset) > 1 and checksum
            text = f"{dataset} ({checksum[:8]})" if twice else dataset
            cells.append(self._cell(text, [remark] if remark else []))
        return tuple(cells)

    def _cell(self, text: str, notes: Iterable[str]) -> Cell:
        numbers = []
        for note in notes:
            if note not in self.notes:
                self.notes.append(note)
            numbers.append(self.notes.index(note) + 1)
        return Cell(text, tuple(numbers))

    def _entry(self, model: str, column: ColumnKey) -> Published | None:
        return self.reference.beside(model, column)

    def _paper_cell(self, entry: Published | None, column: ColumnKey) -> Cell:
        if entry is None:
            return Cell(NOTHING)
        text = format_score(entry.metric, entry.value, entry.deviation)
        other = f"measured on {entry.dataset}" if entry.dataset != column[0] else ""
        note = entry.remark or other
        return self._cell(text, [note] if note else [])

    def _score_cell(self, row: Row, beaten: int) -> Cell:
        if row.mean is None:
            return self._cell(NOTHING, row.notes)
        notes = list(row.notes)
        if beaten:
            notes.append(f"of {beaten + 1} settings, the best mean validation score")
        entry = self._entry(row.model, row.column)
        if entry is not None:
            notes += protocol_differences(row, entry)
        std = row.std if len(row.tests) > 1 else None
        return self._cell(format_score(row.metric, row.mean, std), notes)

    def _seconds_cell(self, row: Row, beaten: int) -> Cell:
        return Cell(NOTHING if row.seconds_per_epoch is None else f"{row.seconds_per_epoch:.3f}")

    def _remarks(self, printed: list[Published]) -> list[str]:
        remarks = []
        if self.chosen:
            over = " or ".join(dict.fromkeys(row.over for row, _ in self.chosen))
            remarks.append(
                f"ours: mean ± population standard deviation over {over}, one run each; test score "
                "at the first epoch with the best validation score (the lowest validation loss, "
                "where a rival's authors select so). Where several settings were run, the "
                "validation score chose among those with the most runs"
            )
        if any(row.semantics for row, _ in self.chosen):
            remark = (
                "semantics: paper = the operator as the paper defines it; "
                "released = as the authors' code computes it"
            )
            if any(row.semantics == "messages" for row, _ in self.chosen):
                remark += "; messages = what the edges of Δ_out carry, one hop without a diagonal"
            remarks.append(remark)
        if printed:
            remarks.append("paper: as printed" + _describe_deviations(printed))
        return remarks


def protocol_differences(row: Row, entry: Published) -> list[str]:
    """In what our run and the paper's are known to differ."""
    if entry.dataset != row.dataset:
        return [f"the paper's number is on {entry.dataset}, ours on {row.dataset}"]
    pairs = {
        "edges": (entry.direction, row.direction),
        "features": (entry.features, row.features),
        "steps on": ("the whole graph", row.batches),
    }
    return [
        f"{what}: {theirs} in the paper, {ours} here"
        for what, (theirs, ours) in pairs.items()
        if theirs and ours and theirs != ours
    ]


def unit(metric: str) -> tuple[int, int]:
    """By what a score is multiplied to be shown, and its decimals."""
    return (100, 2) if metric in PERCENT else (1, 4)


def format_score(metric: str, mean: float, std: float | None) -> str:
    """Shares as per cent with two decimals, anything else as it is with four."""
    factor, digits = unit(metric)
    text = f"{factor * mean:.{digits}f}"
    return text if std is None else f"{text} ± {factor * std:.{digits}f}"


def _describe_deviations(printed: list[Published]) -> str:
    sample = dict.fromkeys(entry.model for entry in printed if entry.protocol.std == "sample")
    unknown = dict.fromkeys(entry.model for entry in printed if not entry.protocol.std)
    text = ""
    if sample:
        runs = printed[0].runs
        factor = ((runs - 1) / runs) ** 0.5
        text += f"; sample deviations (× {factor:.3f} for the population's): {', '.join(sample)}"
    if unknown:
        text += f"; kind of deviation not stated: {', '.join(unknown)}"
    return text
