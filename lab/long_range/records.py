"""Runs of the long-range tasks: what is missing is trained, what is recorded is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from coopsheaf.data.links import AnyDataset
from coopsheaf.train.data import load_data
from coopsheaf.train.records import Record, find_records
from coopsheaf.train.runner import Outcome, bench
from lab.long_range.plan import recipe

Found = dict[tuple[str, str], list[Record]]
"""Records by contestant and task, in the order of their seeds."""


def measure(
    contestants: Sequence[str],
    tasks: Sequence[str],
    seeds: Sequence[int],
    results: Path,
    work: Path,
) -> Iterator[tuple[str, Outcome]]:
    """Train what has no record yet: all of the first seed, then all of the next one."""
    loaded: dict[str, AnyDataset] = {}
    for seed in seeds:
        for task in tasks:
            for contestant in contestants:
                plan = recipe(contestant, task, seed)
                if task not in loaded:
                    loaded[task] = load_data(plan.data)
                for outcome in bench(plan, loaded[task], [0], results=results, work=work):
                    yield contestant, outcome


def found(
    contestants: Sequence[str], tasks: Sequence[str], seeds: Sequence[int], results: Path
) -> Found:
    """What is recorded of the plan as it is now; records of other settings do not count."""
    known = {(r.dataset, r.seed, r.config_hash, r.model_version): r for r in find_records(results)}
    kept: Found = {}
    for task in tasks:
        for contestant in contestants:
            plans = [recipe(contestant, task, seed) for seed in seeds]
            keys = [(task, p.train.seed, p.hash(), p.version) for p in plans]
            rows = [known[key] for key in keys if key in known]
            if rows:
                kept[contestant, task] = rows
    return kept
