"""What is recorded of the plan, and what the search has chosen. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from coopsheaf.report.rows import sign_of
from coopsheaf.train.config import PRECISIONS
from coopsheaf.train.records import Record, find_records
from lab.peptides.plan import MODELS, SEEDS, TRIALS, Job, cut_job, full_job, search_job

Known = Mapping[tuple[str, str, int, str, int], Record]
"""Records by the key of their job."""

SHORT = "peptides"  # folder of the short runs, below that of all results; whole runs are in that


def folder_of(part: str, results: Path) -> Path:
    """Where records of a part are: those of whole runs stand beside all others."""
    return results if part == "full" else results / SHORT


def read_known(results: Path) -> Known:
    """All records that may be of the plan; of several runs of a job the first."""
    known: dict[tuple[str, str, int, str, int], Record] = {}
    for part in ("cut", "full"):
        for r in find_records(folder_of(part, results)):
            known.setdefault((r.model, r.dataset, r.seed, r.config_hash, r.model_version), r)
    return known


def searched(known: Known, precision: str) -> dict[str, Record]:
    """The trials that are recorded in a precision."""
    keys = {trial: search_job(trial, precision).key for trial in TRIALS}
    return {trial: known[key] for trial, key in keys.items() if key in known}


def search_precision(known: Known) -> str:
    """The precision in which most trials are recorded, the first of equals."""
    return max(PRECISIONS, key=lambda name: len(searched(known, name)))


def chosen_trial(known: Known) -> str | None:
    """The trial with the best validation score, once all of them are recorded."""
    trials = searched(known, search_precision(known))
    scores = {name: sign_of(r.metric) * r.val for name, r in trials.items() if r.val is not None}
    if len(trials) < len(TRIALS) or not scores:
        return None
    return max(scores, key=lambda name: scores[name])


def jobs(
    part: str, models: Sequence[str], seeds: Sequence[int], precision: str, chosen: str | None
) -> list[Job]:
    """A part of the plan in its order: one seed of everything, then the next one."""
    if part == "search":
        return [search_job(trial, precision) for trial in TRIALS]
    if part == "cut":
        return [cut_job(model, precision, chosen) for model in models]
    return [full_job(model, seed, precision, chosen) for seed in seeds for model in models]


def recorded(part: str, known: Known) -> dict[str, list[Record]]:
    """The records of a part by network, of each in the precision that has the most."""
    chosen = chosen_trial(known)
    found: dict[str, list[Record]] = {}
    for model in MODELS:
        tried = []
        for precision in PRECISIONS:
            keys = [job.key for job in jobs(part, [model], SEEDS, precision, chosen)]
            tried.append([known[key] for key in keys if key in known])
        rows = max(tried, key=len)
        if rows:
            found[model] = rows
    return found
