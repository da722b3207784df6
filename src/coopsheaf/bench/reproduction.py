"""Our measurements beside the paper's, as places of a document. Imports no PyTorch.

Every place is computed from records alone. :func:`contents` gives all of them; the command
``coopsheaf report --document FILE`` writes those that a document has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, pstdev

from coopsheaf.bench.agenda import AGENDA, Item, command, remaining
from coopsheaf.bench.compare import (
    QUESTIONS,
    VERDICTS,
    Paired,
    Question,
    compare,
    standard_error,
    twins,
)
from coopsheaf.bench.documents import markdown_table
from coopsheaf.bench.layout import (
    METRIC_LABELS,
    NOTHING,
    PERCENT,
    format_score,
    layout,
    published_beside,
)
from coopsheaf.bench.records import Record, find_records
from coopsheaf.bench.render import to_markdown
from coopsheaf.bench.sweep_results import SweepResult, find_sweeps, sweep_table
from coopsheaf.bench.tables import (
    LOWER_IS_BETTER,
    ColumnKey,
    Row,
    base_name,
    paper_table,
    select,
    summarise,
)

TOO_FAR = 2  # standard errors below the paper


@dataclass(frozen=True)
class Evidence:
    """All that the document is computed from."""

    records: tuple[Record, ...]
    sweeps: tuple[SweepResult, ...] = ()

    @cached_property
    def shown(self) -> list[Record]:
        """Records of CSNN, and of everything else that was run on more than one split."""
        several = {
            (row.model, row.column, row.config_hash, row.semantics)
            for row in summarise(self.records)
            if len(row.runs) > 1 or row.model == "csnn"
        }
        return [
            record
            for record in self.records
            if (record.model, _column(record), record.config_hash, record.semantics) in several
        ]

    @cached_property
    def rows(self) -> list[tuple[Row, int]]:
        """One per model, semantics and dataset, chosen by validation, in the paper's order."""
        return sorted(select(summarise(self.shown)), key=lambda pair: _order(pair[0]))


def load_evidence(folder: Path) -> Evidence:
    """The records of a folder of results, and the sweeps below it."""
    return Evidence(tuple(find_records(folder)), tuple(find_sweeps(folder / "sweeps")))


def contents(evidence: Evidence) -> dict[str, str]:
    """What belongs in each place."""
    places: dict[str, Callable[[], str]] = {
        "summary": lambda: summary(evidence),
        "tables": lambda: to_markdown(layout(evidence.shown, datasets=_paper_datasets(evidence))),
        "details": lambda: details(evidence),
        "rivals": lambda: rivals(evidence),
        "below": lambda: below(evidence),
        "settings": lambda: settings(evidence),
        "runtime": lambda: to_markdown(layout(evidence.shown, timing=True)[-1:]),
        "sweeps": lambda: sweep_table(evidence.sweeps),
        "remaining": lambda: still_to_run(evidence),
    }
    for question in QUESTIONS:
        places[f"question-{question.name}"] = lambda q=question: answer(q, evidence)  # type: ignore[misc]
    return {name: write() for name, write in places.items()}


def _paper_datasets(evidence: Evidence) -> list[str]:
    """Datasets with records that belong to a table of the paper, in its order."""
    here = dict.fromkeys(row.dataset for row, _ in evidence.rows)
    return [name for name in here if paper_table(base_name(name)) is not None]


def details(evidence: Evidence) -> str:
    """One line per model, semantics and dataset: everything that must be said of a number."""
    head = (
        "dataset | model | order | edges | ours | runs | paper | ours − paper | s / epoch"
        " | minutes in all | settings"
    )
    lines = []
    for row, _ in evidence.rows:
        entry = published_beside(row.model, row.column)
        paper = format_score(entry.metric, entry.value, entry.deviation) if entry else NOTHING
        lines.append(
            (
                row.dataset + (" †" if row.remark else ""),
                row.model,
                row.semantics or NOTHING,
                row.direction or NOTHING,
                _ours(row),
                f"{len(row.runs)} of {row.expected}" if row.expected else str(len(row.runs)),
                paper,
                _gap(row),
                NOTHING if row.seconds_per_epoch is None else f"{row.seconds_per_epoch:.3f}",
                NOTHING if row.seconds is None else f"{row.seconds / 60:.1f}",
                f"`{row.recipe}` {row.config_hash[:8]}",
            )
        )
    text = markdown_table(head, lines, "llllrrrrrrl")
    remarks = dict.fromkeys((row.dataset, row.remark) for row, _ in evidence.rows if row.remark)
    return text + "".join(f"\n† {name}: {remark}.\n" for name, remark in remarks)


def summary(evidence: Evidence) -> str:
    """CSNN in the paper's order: ours, the paper's, and the best rival by validation."""
    head = (
        "dataset | metric | CSNN, ours | splits | CSNN, paper | best rival here"
        " | CSNN − rival (95 % interval)"
    )
    lines = []
    for row in _csnn_rows(evidence):
        if len(row.runs) < 2:
            continue
        entry = published_beside(row.model, row.column)
        rival = best_rival(row, evidence)
        paired = compare(row, rival) if rival else None
        lines.append(
            (
                row.dataset + (" †" if row.remark else ""),
                METRIC_LABELS.get(row.metric, row.metric),
                _ours(row),
                str(len(row.runs)),
                format_score(entry.metric, entry.value, entry.deviation) if entry else NOTHING,
                f"{rival.model} {_ours(rival)}" if rival else NOTHING,
                spell(paired, row.metric) if paired else NOTHING,
            )
        )
    if not lines:
        return "There are no results of several splits yet.\n"
    return markdown_table(head, lines, "llrrrrr")


def rivals(evidence: Evidence) -> str:
    """CSNN against every rival, split by split."""
    head = "dataset | rival | splits | CSNN | rival's | CSNN − rival (95 % interval) | CSNN is"
    lines = []
    for row in _csnn_rows(evidence):
        best = best_rival(row, evidence)
        for rival in _rivals_of(row, evidence):
            paired = compare(row, rival)
            if paired is None or len(paired.differences) < 2:
                continue
            name = f"**{rival.model}**" if rival is best else rival.model
            lines.append(
                (
                    row.dataset,
                    name,
                    str(len(paired.differences)),
                    _score(row.metric, paired.first),
                    _score(row.metric, paired.second),
                    spell(paired, row.metric),
                    paired.verdict,
                )
            )
    if not lines:
        return "Nothing to compare yet.\n"
    return markdown_table(head, lines, "llrrrrl")


def below(evidence: Evidence) -> str:
    """Where ours is more than two of its standard errors below the paper."""
    head = "dataset | model | order | ours | paper | ours − paper | runs"
    lines = [
        (
            row.dataset,
            row.model,
            row.semantics or NOTHING,
            _ours(row),
            paper,
            _gap(row),
            str(len(row.runs)),
        )
        for row, paper in _below(evidence)
    ]
    if not lines:
        return "There is no such number.\n"
    return markdown_table(head, lines, "lllrrrr")


def is_below(evidence: Evidence) -> list[Row]:
    """The rows that call for an investigation."""
    return [row for row, _ in _below(evidence)]


def _below(evidence: Evidence) -> Iterable[tuple[Row, str]]:
    for row, _ in evidence.rows:
        entry = published_beside(row.model, row.column)
        error = standard_error(row)
        if entry is None or error is None or row.mean is None:
            continue
        sign = -1.0 if row.metric in LOWER_IS_BETTER else 1.0
        if sign * (row.mean - entry.value) < -TOO_FAR * error:
            yield row, format_score(entry.metric, entry.value, entry.deviation)


def settings(evidence: Evidence) -> str:
    """Everything CSNN was run with on more than one split, the chosen and the others."""
    names = [
        "semantics",
        "scale",
        "stalk_dim",
        "num_layers",
        "hidden_channels",
        "learner",
        "dropout",
    ]
    head = (
        "dataset | order | scale | d | layers | channels | learner | dropout | weight decay"
        " | runs | validation | test | hash"
    )
    configs = {record.config_hash: record.config for record in evidence.shown}
    lines = []
    for row in sorted(summarise(evidence.shown), key=_order):
        if row.model != "csnn" or len(row.runs) < 2:
            continue
        config = configs[row.config_hash]
        cells = [str(config["model"].get(name, NOTHING)) for name in names]
        decay = f"{config['train'].get('weight_decay', 0):g}"
        scores = (str(len(row.runs)), _score(row.metric, row.vals), _ours(row), row.config_hash[:8])
        lines.append((row.dataset, *cells, decay, *scores))
    return markdown_table(head, lines, "lllrrrlrrrrrl") if lines else "Nothing yet.\n"


def answer(question: Question, evidence: Evidence) -> str:
    """Two settings that differ in one thing, on every dataset they were both run on."""
    pairs = twins(question, evidence.records, summarise)
    if not pairs:
        return "Nothing has been run for this yet.\n"
    pairs.sort(key=lambda pair: _order(pair[0]))
    head = (
        f"dataset | splits | {question.first} | {question.second} | difference (95 % interval)"
        f" | {question.first}:"
    )
    lines = [
        (
            first.dataset,
            str(len(paired.differences)),
            _score(first.metric, paired.first),
            _score(first.metric, paired.second),
            spell(paired, first.metric),
            paired.verdict,
        )
        for first, second, paired in pairs
    ]
    verdicts = [paired.verdict for _, _, paired in pairs]
    counts = ", ".join(f"{word} on {verdicts.count(word)}" for word in VERDICTS)
    total = f"\nIn all, {question.first}: {counts}.\n"
    return markdown_table(head, lines, "lrrrrl") + total


def still_to_run(evidence: Evidence) -> str:
    """What the paper's experiments comprise and is not recorded in full, with commands."""
    groups: dict[tuple[str, str, int], list[tuple[Item, int]]] = {}
    for item, count in remaining(evidence.records):
        groups.setdefault((item.dataset, item.setting, item.runs), []).append((item, count))
    if not groups:
        return "Nothing: everything is recorded.\n"
    lines = []
    for (dataset, _, runs), items in groups.items():
        done = ", ".join(f"{item.model} {count}" for item, count in items)
        lines.append((dataset, f"{done} (of {runs})", f"`{command([item for item, _ in items])}`"))
    return markdown_table("dataset | recorded | command", lines, "lll")


def best_rival(row: Row, evidence: Evidence) -> Row | None:
    """The other model with the best mean validation score; test scores choose nothing."""
    candidates = [r for r in _rivals_of(row, evidence) if len(r.runs) == len(row.runs)]
    sign = -1.0 if row.metric in LOWER_IS_BETTER else 1.0
    return max(candidates, key=lambda r: sign * (r.val_mean or 0.0), default=None)


_PLACES = {dataset: k for k, dataset in enumerate(dict.fromkeys(i.dataset for i in AGENDA))}


def _order(row: Row) -> tuple[int, str, bool, str, str]:
    """Datasets as in the agenda, CSNN first."""
    place = _PLACES.get(row.dataset, len(_PLACES))
    return place, row.dataset, row.model != "csnn", row.model, row.semantics


def _column(record: Record) -> ColumnKey:
    return record.dataset, record.metric, record.dataset_remark, record.dataset_checksum


def _csnn_rows(evidence: Evidence) -> list[Row]:
    return [row for row, _ in evidence.rows if (row.model, row.semantics) == ("csnn", "paper")]


def _rivals_of(row: Row, evidence: Evidence) -> list[Row]:
    """Other models on the same data; variants of CSNN are ablations, not rivals."""
    return [
        other
        for other, _ in evidence.rows
        if other.column == row.column and not other.model.startswith("csnn")
    ]


def _ours(row: Row) -> str:
    return _score(row.metric, row.tests)


def _score(metric: str, values: Sequence[float]) -> str:
    """Mean and population deviation."""
    if not values:
        return NOTHING
    return format_score(metric, fmean(values), pstdev(values) if len(values) > 1 else None)


def _gap(row: Row) -> str:
    """The distance from the paper, in the unit of the table and in standard errors."""
    entry, error = published_beside(row.model, row.column), standard_error(row)
    if entry is None or row.mean is None:
        return NOTHING
    factor = 100 if row.metric in PERCENT else 1
    gap = row.mean - entry.value
    text = f"{factor * gap:+.2f}"
    return f"{text} ({gap / error:+.1f} s.e.)" if error else text


def spell(paired: Paired, metric: str) -> str:
    """A difference with its interval, in the unit of the table."""
    factor = 100 if metric in PERCENT else 1
    half = paired.half_width
    text = f"{factor * paired.mean:+.2f}"
    return text if half is None else f"{text} ± {factor * half:.2f}"
