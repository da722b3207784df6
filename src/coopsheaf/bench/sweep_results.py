"""Finished sweeps: how large they were and what they found. Imports no PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from coopsheaf.bench.documents import markdown_table
from coopsheaf.bench.layout import format_score
from coopsheaf.bench.records import Record, read_records
from coopsheaf.bench.tables import LOWER_IS_BETTER


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
        plan = json.loads(path.read_text(encoding="utf-8"))["plan"]
        sweeps.append(SweepResult(path.parent.name, plan, tuple(records)))
    return sweeps


def sweep_table(sweeps: Iterable[SweepResult]) -> str:
    """How settings were searched where none are published."""
    head = "sweep | trials | on splits | sampler | best mean validation | minutes | found"
    lines = []
    for sweep in sweeps:
        trials: dict[str, list[Record]] = {}
        for record in sweep.records:
            trials.setdefault(record.config_hash, []).append(record)
        splits = sweep.plan["splits"]
        whole = [runs for runs in trials.values() if len(runs) == len(splits)]
        if not whole:
            continue
        sign = -1.0 if whole[0][0].metric in LOWER_IS_BETTER else 1.0
        best = max(whole, key=lambda runs: sign * fmean(run.val or 0.0 for run in runs))
        searched = [name for name, values in _searched(sweep.plan).items() if values != 1]
        found = ", ".join(_spell_setting(name, best[0].config) for name in searched)
        seconds = sum(record.seconds or 0.0 for record in sweep.records)
        value = format_score(best[0].metric, fmean(run.val or 0.0 for run in best), None)
        lines.append(
            (
                sweep.folder,
                f"{len(trials)} ({len(trials) - len(whole)} given up)",
                f"{splits[0]}–{splits[-1]}",
                sweep.plan["sampler"],
                value,
                f"{seconds / 60:.0f}",
                f"{found} ({best[0].config_hash[:8]})",
            )
        )
    return markdown_table(head, lines, "lrrlrrl") if lines else "No sweep is recorded yet.\n"


def _searched(plan: dict[str, Any]) -> dict[str, int]:
    """The searched settings with their numbers of values; 0 for a range."""
    settings = plan["space"]["settings"]
    return {name: len(item) if isinstance(item, list) else 0 for name, item in settings.items()}


def _spell_setting(name: str, config: dict[str, Any]) -> str:
    section, key = name.split(".", 1)
    value = config[section].get(key)
    return f"{key} {json.dumps(value)}".replace('"', "")
