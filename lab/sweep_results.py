"""Finished sweeps: how large they were and what they found. Imports no PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from coopsheaf.report.rows import sign_of
from coopsheaf.report.tables import format_score
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.records import Record, RecordError, read_records, spell_splits


@dataclass(frozen=True)
class SweepResult:
    """What a sweep was, and what it found.

    Args:
        folder: its name.
        plan: what was searched, as the sweep wrote it.
        records: one per trained split.
    """

    folder: str
    plan: dict[str, Any]
    records: tuple[Record, ...]


def find_sweeps(folder: Path) -> list[SweepResult]:
    """The sweeps in a folder, with all their records."""
    sweeps = []
    for path in sorted(folder.glob("*/sweep.json")):
        records = read_records(sorted(path.parent.glob("records/*.jsonl")))
        try:
            plan = json.loads(path.read_text(encoding="utf-8"))["plan"]
            sweep = SweepResult(path.parent.name, plan, tuple(records))
            _splits(sweep), _searched(sweep)
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{path}: not the description of a sweep ({error!r})") from None
        sweeps.append(sweep)
    return sweeps


def sweep_table(sweeps: Iterable[SweepResult]) -> str:
    """How settings were searched where none are published."""
    head = "sweep | trials | whole | on | sampler | best mean validation | minutes | found"
    lines = []
    for sweep in sweeps:
        trials: dict[str, dict[int, Record]] = {}
        for record in sweep.records:
            trials.setdefault(record.config_hash, {}).setdefault(record.split, record)
        splits = _splits(sweep)
        whole = [
            runs
            for runs in trials.values()
            if set(runs) == set(splits) and all(run.val is not None for run in runs.values())
        ]
        if not whole:
            continue
        best = max(whole, key=_worth)
        run = next(iter(best.values()))
        found = ", ".join(_spell_setting(name, run.config) for name in _searched(sweep))
        value = fmean(run.val or 0.0 for run in best.values())
        seconds = sum(record.seconds or 0.0 for record in sweep.records)
        lines.append(
            (
                escape_markdown(sweep.folder),
                str(len(trials)),
                str(len(whole)),
                spell_splits(splits),
                str(sweep.plan.get("sampler", "")),
                format_score(run.metric, value, None),
                f"{seconds / 60:.0f}",
                f"{escape_markdown(found)} ({run.config_hash[:8]})",
            )
        )
    return markdown_table(head, lines, "lrrllrrl") if lines else "No sweep is recorded yet.\n"


def _worth(runs: dict[int, Record]) -> tuple[float, int]:
    """The mean validation score; of equals the smaller network, as a sweep chooses."""
    first = next(iter(runs.values()))
    value = fmean(run.val or 0.0 for run in runs.values())
    return sign_of(first.metric) * value, -first.parameters


def _splits(sweep: SweepResult) -> tuple[int, ...]:
    return tuple(int(split) for split in sweep.plan["splits"])


def _searched(sweep: SweepResult) -> list[str]:
    """The settings with more than one value to choose from."""
    settings = sweep.plan["space"]["settings"]
    return [
        name
        for name, values in settings.items()
        if not (isinstance(values, list) and len(values) == 1)
    ]


def _spell_setting(name: str, config: dict[str, Any]) -> str:
    section, _, key = name.partition(".")
    value = config.get(section, {}).get(key)
    return f"{key} {'none' if value is None else str(value).lower()}"
