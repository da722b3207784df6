"""Train what is missing of a part of the plan; a run that was stopped goes on where it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from coopsheaf.data.links import AnyDataset
from coopsheaf.train.data import load_data, whereabouts
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.runner import Outcome, Progress, bench
from lab.peptides.plan import Job
from lab.peptides.records import Known, folder_of


def measure(
    jobs: Sequence[Job],
    known: Known,
    *,
    results: Path,
    work: Path,
    data_dir: Path | None,
    should_stop: Callable[[], bool],
    progress: Callable[[Job], Progress],
) -> Iterator[tuple[Job, Outcome]]:
    """Train the jobs that have no record, one after the other, until one is stopped.

    What a run needs on disk is its state and its weights. Of the short parts they are removed when
    their record is written, so that there is one run's at a time; networks of whole runs are kept.
    """
    loaded: tuple[DataConfig, AnyDataset] | None = None
    for job in jobs:
        if job.key in known:
            yield job, Outcome(0, known[job.key], skipped=True)
            continue
        if should_stop():
            return
        plan = job.recipe
        if loaded is None or loaded[0] != plan.data:
            loaded = None  # two of them need not fit into memory
            loaded = plan.data, load_data(plan.data, data_dir)
        folder = work / job.part / f"{job.name.replace(', ', '-').replace(' ', '-')}-{plan.hash()}"
        outcome = None
        for outcome in bench(
            plan,
            loaded[1],
            [0],
            results=folder_of(job.part, results),
            work=folder,
            extra=whereabouts(data_dir),
            progress=lambda split, job=job: progress(job),  # type: ignore[misc]
            should_stop=should_stop,
        ):
            yield job, outcome
        if outcome is None:  # stopped
            return
        if job.part != "full":
            shutil.rmtree(folder, ignore_errors=True)
