"""Our measurements beside the paper's, as places of a document. Imports no PyTorch.

Every place is computed from records alone. :func:`contents` gives all of them; the command
``python -m lab tables --document FILE`` writes those that a document has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from coopsheaf.compare.comparison import Comparison, load_comparison
from coopsheaf.compare.plan import FILE as PLAN
from coopsheaf.report.formats import to_markdown
from coopsheaf.report.paired import VERDICTS
from coopsheaf.report.reference import base_name
from coopsheaf.report.rows import Row, newest, select, sign_of, summarise, validation
from coopsheaf.report.tables import METRIC_LABELS, NOTHING, layout
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.records import Record, find_records
from lab import heterophily
from lab.agenda import AGENDA, HETEROPHILY, PENN94, still_to_run
from lab.best_of_grid import grid_table
from lab.best_setting import best_places, reached
from lab.cells import (
    advantage_cell,
    count_cell,
    data_cell,
    dataset_cell,
    gap_cell,
    legend,
    name_cell,
    paper_cell,
    score_cell,
    untuned,
)
from lab.compare import (
    QUESTIONS,
    Question,
    compare,
    standard_error,
    twins,
)
from lab.contest.entries import Entry, read_entries
from lab.published import PAPER, TABLES
from lab.seeds import first_seeds, seed_table
from lab.sweep_results import SweepResult, find_sweeps, sweep_table

TOO_FAR = 2  # standard errors below the paper


@dataclass(frozen=True)
class Evidence:
    """All that the document is computed from.

    Args:
        records: one seed of all settings.
        sweeps: the searches.
        seeds: the records of all seeds.
        comparisons: of models on the same folds, by the names of their folders.
        tried: runs that look for reasons; they stand in no table but their own.
        defaults: runs of candidates for defaults.
        contests: runs of fair searches.
    """

    records: tuple[Record, ...]
    sweeps: tuple[SweepResult, ...] = ()
    seeds: tuple[Record, ...] = ()
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    tried: tuple[Record, ...] = ()
    defaults: tuple[Record, ...] = ()
    contests: tuple[Entry, ...] = ()

    @cached_property
    def rows(self) -> list[Row]:
        """One per model, semantics and dataset, in the order of the agenda.

        CSNN as the paper defines it, without ablations. Of settings and seeds those with the most
        runs compete, and validation chooses. Rivals on one of several splits are left out.
        """
        rows: dict[object, Row] = {}
        for row, _ in select(summarise(self.records, PAPER)):
            if row.ablation:
                continue
            place = (row.model, row.semantics, row.column)
            rows[place] = max(rows.get(place, row), row, key=_standing)
        return sorted((r for r in rows.values() if r.is_whole or r.model == "csnn"), key=_order)

    @cached_property
    def shown(self) -> list[Record]:
        """The records behind ``rows``."""
        keys = {_key(row) for row in self.rows}
        return [record for record in self.records if _key(record) in keys]


def load_evidence(folder: Path) -> Evidence:
    """The records of a folder of results, and the sweeps and comparisons below it."""
    records = tuple(find_records(folder))
    sweeps = tuple(find_sweeps(folder / "sweeps"))
    plans = sorted((folder / "compare").glob(f"*/{PLAN}"))
    comparisons = {plan.parent.name: load_comparison(plan.parent) for plan in plans}
    tried = tuple(find_records(folder / "investigations"))
    defaults = tuple(find_records(folder / "defaults"))
    contests = tuple(read_entries(folder / "contest"))
    alone = tuple(first_seeds(records))
    return Evidence(alone, sweeps, records, comparisons, tried, defaults, contests)


def contents(evidence: Evidence) -> dict[str, str]:
    """What belongs in each place."""
    return {
        "summary": summary(evidence),
        **best_places(reached(evidence.records, evidence.defaults, evidence.contests)),
        "tables": to_markdown(
            layout(evidence.shown, reference=PAPER, datasets=_paper_datasets(evidence))
        ),
        "details": details(evidence),
        "rivals": rivals(evidence),
        **{f"question-{question.name}": answer(question, evidence) for question in QUESTIONS},
        "below": below(evidence),
        "heterophily": heterophily.table(evidence.records),
        "apart": heterophily.apart(evidence.records),
        "friends": heterophily.friends(evidence.records),
        "tried": heterophily.tried(evidence.records, evidence.tried),
        "best-of-grid": grid_table([*evidence.records, *evidence.tried]),
        "settings": settings(evidence),
        "rival-settings": rival_settings(evidence),
        "sweeps": sweep_table(evidence.sweeps),
        "seeds": seed_table(evidence.seeds),
        "runtime": to_markdown(layout(evidence.shown, reference=PAPER, timing=True)[-1:]),
        "remaining": still_to_run(evidence.records),
        **{f"compare-{name}": each.to_markdown() for name, each in evidence.comparisons.items()},
    }


def _paper_datasets(evidence: Evidence) -> list[str]:
    """The columns of the paper's tables, and beside each the other files of it that were run."""
    here = dict.fromkeys(row.dataset for row in evidence.rows)
    names = []
    for table in TABLES.values():
        for column in table.metrics:
            others = [name for name in here if name != column and base_name(name) == column]
            names += [column, *others]
    return names


def summary(evidence: Evidence) -> str:
    """CSNN in the paper's order: ours, the paper's, and the best rival by validation.

    The rival's score is that on the splits of CSNN.
    """
    head = (
        "dataset | metric | CSNN, ours | splits | CSNN, paper | best rival here"
        " | advantage of CSNN (95 % interval; corrected)"
    )
    lines = []
    rows = [row for row in _csnn_rows(evidence) if len(row.runs) > 1]
    for row in rows:
        rival = best_rival(row, evidence)
        paired = compare(row, rival) if rival else None
        beside = NOTHING
        if rival:
            scores = paired.second if paired else rival.tests
            beside = f"{name_cell(rival)} {score_cell(row.metric, scores)}"
        lines.append(
            (
                dataset_cell(row),
                METRIC_LABELS.get(row.metric, row.metric),
                score_cell(row.metric, row.tests) + untuned(row),
                count_cell(row),
                paper_cell(row),
                beside,
                advantage_cell(paired, row.metric) if paired else NOTHING,
            )
        )
    if not lines:
        return "There are no results of several splits yet.\n"
    return markdown_table(head, lines, "llrrrlr") + legend(rows)


def details(evidence: Evidence) -> str:
    """One line per model, semantics and dataset: everything that must be said of a number."""
    head = (
        "dataset | model | order | edges, features | ours | runs | paper | ours − paper | s / epoch"
        " | minutes in all | settings"
    )
    lines = [
        (
            dataset_cell(row),
            escape_markdown(row.model),
            row.semantics or NOTHING,
            data_cell(row),
            score_cell(row.metric, row.tests),
            count_cell(row),
            paper_cell(row),
            gap_cell(row),
            NOTHING if row.seconds_per_epoch is None else f"{row.seconds_per_epoch:.3f}",
            NOTHING if row.seconds is None else f"{row.seconds / 60:.1f}",
            f"{escape_markdown(row.recipe)} ({row.config_hash[:8]}, seed {row.seed})",
        )
        for row in evidence.rows
    ]
    return markdown_table(head, lines, "llllrrrrrrl") + legend(evidence.rows)


def rivals(evidence: Evidence) -> str:
    """CSNN against every rival, split by split."""
    head = (
        "dataset | rival | splits | CSNN | rival's | advantage of CSNN (95 % interval; corrected)"
        " | CSNN is"
    )
    lines = []
    for row in _csnn_rows(evidence):
        best = best_rival(row, evidence)
        for rival in _rivals_of(row, evidence):
            paired = compare(row, rival)
            if paired is None or len(paired.differences) < 2:
                continue
            name = name_cell(rival)
            lines.append(
                (
                    dataset_cell(row),
                    f"**{name}**" if rival is best else name,
                    str(len(paired.differences)),
                    score_cell(row.metric, paired.first),
                    score_cell(row.metric, paired.second),
                    advantage_cell(paired, row.metric),
                    paired.verdict,
                )
            )
    if not lines:
        return "Nothing to compare yet.\n"
    return markdown_table(head, lines, "llrrrrl") + legend(_csnn_rows(evidence), paper=False)


def below(evidence: Evidence) -> str:
    """Where ours is more than two of its standard errors below the paper."""
    head = "dataset | model | order | ours | paper | ours − paper | runs"
    rows = rows_below(evidence)
    if not rows:
        return "There is no such number.\n"
    lines = [
        (
            dataset_cell(row),
            row.model,
            row.semantics or NOTHING,
            score_cell(row.metric, row.tests),
            paper_cell(row),
            gap_cell(row),
            count_cell(row),
        )
        for row in rows
    ]
    return markdown_table(head, lines, "lllrrrr") + legend(rows)


def rows_below(evidence: Evidence) -> list[Row]:
    """The rows that call for an investigation.

    Networks for heterophily have a page of their own, which looks both ways.
    """
    found = []
    for row in evidence.rows:
        if row.model in (*HETEROPHILY, *PENN94):
            continue
        entry, error = PAPER.beside(row.model, row.column), standard_error(row)
        if entry is None or error is None or row.mean is None:
            continue
        if sign_of(row.metric) * (row.mean - entry.value) < -TOO_FAR * error:
            found.append(row)
    return found


_SHOWN = (
    "semantics",
    "scale",
    "stalk_dim",
    "num_layers",
    "hidden_channels",
    "learner",
    "learner_layers",
    "input_dropout",
    "dropout",
)


def settings(evidence: Evidence) -> str:
    """Everything CSNN was run with on more than one split, the chosen and the others."""
    head = (
        "dataset | edges, features | order | scale | d | layers | channels | learner | its layers"
        " | input dropout | dropout | lr | weight decay | epochs, steps | epoch by"
        " | runs | validation | test | hash"
    )
    lines = []
    for row, config in _settings(evidence):
        if row.model != "csnn":
            continue
        model, train = (config.get(part, {}) for part in ("model", "train"))
        cells = [escape_markdown(str(model.get(name, NOTHING))) for name in _SHOWN]
        rates = [f"{train.get(name, 0):g}" for name in ("lr", "weight_decay")]
        epochs = f"{train.get('epochs', NOTHING)}, {row.batches or 'whole graph'}"
        where = (dataset_cell(row), data_cell(row))
        lines.append((*where, *cells, *rates, epochs, *_outcome(row, config)))
    return markdown_table(head, lines, "llllrrrlrrrrrllrrrl") if lines else "Nothing yet.\n"


def rival_settings(evidence: Evidence) -> str:
    """Rivals that were run with several settings, the chosen one in bold print."""
    tried = [pair for pair in _settings(evidence) if not pair[0].model.startswith("csnn")]
    counts = Counter((row.model, row.column) for row, _ in tried)
    chosen = {_key(row) for row in evidence.rows}
    lines = []
    for row, config in tried:
        if counts[row.model, row.column] < 2:
            continue
        name = f"**{name_cell(row)}**" if _key(row) in chosen else name_cell(row)
        where = (dataset_cell(row), name, escape_markdown(row.recipe), data_cell(row))
        lines.append((*where, *_outcome(row, config)))
    head = (
        "dataset | rival | settings | edges, features | epoch by | runs | validation | test | hash"
    )
    return markdown_table(head, lines, "lllllrrrl") if lines else "None.\n"


def _settings(evidence: Evidence) -> list[tuple[Row, Mapping[str, Any]]]:
    """All that was run on more than one split, with its settings."""
    configs = {record.config_hash: record.config for record in evidence.records}
    rows = sorted(summarise(newest(evidence.records), PAPER), key=_order)
    return [(row, configs[row.config_hash]) for row in rows if len(row.runs) > 1]


def _outcome(row: Row, config: Mapping[str, Any]) -> tuple[str, ...]:
    """By what epochs were chosen, runs, the two scores and the hash."""
    by = "loss" if config.get("train", {}).get("select") == "loss" else "metric"
    val, test = (score_cell(row.metric, values) for values in (row.vals, row.tests))
    return by, str(len(row.runs)), val, test, row.config_hash[:8]


def answer(question: Question, evidence: Evidence) -> str:
    """All pairs of settings that differ in one thing, on every dataset both were run on."""
    pairs = sorted(twins(question, evidence.records), key=lambda pair: _order(pair[0]))
    if not pairs:
        return "Nothing has been run for this yet.\n"
    head = (
        f"dataset | splits | {question.first} | {question.second}"
        f" | advantage (95 % interval; corrected) | {question.first} | settings"
    )
    lines = [
        (
            dataset_cell(first),
            str(len(paired.differences)),
            score_cell(first.metric, paired.first),
            score_cell(first.metric, paired.second),
            advantage_cell(paired, first.metric),
            paired.verdict,
            f"{first.config_hash[:8]}, {second.config_hash[:8]}",
        )
        for first, second, paired in pairs
    ]
    verdicts = [paired.verdict for _, _, paired in pairs]
    counts = ", ".join(f"{word} in {verdicts.count(word)}" for word in VERDICTS)
    means = [paired.mean for _, _, paired in pairs if len(paired.differences) > 1]
    higher = sum(mean > 0 for mean in means)
    total = (
        f"\nIn all, {question.first}: {counts}; "
        f"the mean is higher in {higher} of {len(means)} pairs with several splits.\n"
    )
    return markdown_table(head, lines, "lrrrrll") + total


def best_rival(row: Row, evidence: Evidence) -> Row | None:
    """The rival with the best mean validation score on the same splits; test chooses nothing."""
    best: tuple[float, Row] | None = None
    for rival in _rivals_of(row, evidence):
        if not set(row.runs) <= rival.val_by_run.keys():
            continue
        value = sign_of(row.metric) * fmean(rival.val_by_run[run] for run in row.runs)
        if best is None or value > best[0]:
            best = value, rival
    return None if best is None else best[1]


def _csnn_rows(evidence: Evidence) -> list[Row]:
    return [row for row in evidence.rows if (row.model, row.semantics) == ("csnn", "paper")]


def _rivals_of(row: Row, evidence: Evidence) -> list[Row]:
    """Other models on the same data; variants of CSNN are ablations, not rivals."""
    return [
        other
        for other in evidence.rows
        if other.column == row.column and not other.model.startswith("csnn")
    ]


def _standing(row: Row) -> tuple[int, float]:
    """More runs come first, then the better validation score."""
    return len(row.runs), validation(row)


def _key(run: Row | Record) -> tuple[object, ...]:
    """What a row and its records have in common."""
    remark = run.remark if isinstance(run, Row) else run.dataset_remark
    seed = run.seed if PAPER.expected_runs(run.dataset)[1] == "splits" else None
    data = (run.dataset, run.dataset_checksum, remark, run.metric)
    return (*data, run.model, run.model_version, run.config_hash, run.semantics, seed)


_PLACES = {dataset: k for k, dataset in enumerate(dict.fromkeys(i.dataset for i in AGENDA))}


def _order(row: Row) -> tuple[int, str, bool, str, str]:
    """Datasets as in the agenda, CSNN first."""
    place = _PLACES.get(row.dataset, len(_PLACES))
    return place, row.dataset, row.model != "csnn", row.model, row.semantics
