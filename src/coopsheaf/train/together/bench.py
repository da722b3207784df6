"""Splits of a recipe in one pass: what is missing is run, what is recorded is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from coopsheaf.config import config_hash
from coopsheaf.data.links import AnyDataset
from coopsheaf.files import locked
from coopsheaf.train.loop import FitResult
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.records import OnBad, append_record, find_records, warn_of_line
from coopsheaf.train.run import Run, _continue, run_identity, save_run
from coopsheaf.train.runner import Outcome, Progress, expected_key, make_record
from coopsheaf.train.together.run import Job, check_together, run_together, runs_at_once


def bench_together(
    recipe: Recipe,
    dataset: AnyDataset,
    splits: Sequence[int],
    *,
    results: Path,
    work: Path,
    seeds: Sequence[int] | None = None,
    extra: dict[str, Any] | None = None,
    progress: Callable[[tuple[int, ...]], Progress] = lambda splits: nullcontext(None),
    should_stop: Callable[[], bool] | None = None,
    bad: OnBad = warn_of_line,
) -> Iterator[Outcome]:
    """Run all splits that have no record yet in one pass, or in a few if they are many.

    The same runs and records as those of :func:`coopsheaf.train.runner.bench`, which has the same
    arguments, up to rounding; ``together`` of each says in how large a pass it was made, and
    ``seconds`` is its share of the time. What broke off is run again from its beginning: nothing is
    written before a pass has ended. A run whose loss is not finite is an error, after all others
    have been recorded.

    Args:
        recipe, dataset, splits, results, work, extra, should_stop, bad: as there.
        seeds: run every split with each of them; with that of the recipe if not given.
        progress: makes the progress report of some splits, for as long as they run.
    """
    check_together(recipe, dataset)
    file = results / f"{recipe.model_name}-{dataset.name}.jsonl"
    recipes = [recipe] if seeds is None else [recipe.set(f"train.seed={seed}") for seed in seeds]
    left = [Job(one, split) for one in recipes for split in splits]
    size, trouble = runs_at_once(dataset), ""
    while left:
        some, left = left[:size], left[size:]
        with ExitStack() as locks:
            for folder in sorted(_folder(work, job, dataset) for job in some):
                locks.enter_context(locked(folder))  # in one order: nobody waits in a circle
            known = {record.key: record for record in find_records(results, bad)}
            jobs = []
            for job in some:
                record = known.get(expected_key(job.recipe, dataset, job.split))
                if record is not None:
                    yield Outcome(job.split, record, skipped=True)
                    continue
                identity = run_identity(job.recipe, dataset, job.split)
                ended = _finished(_folder(work, job, dataset), identity)
                if ended is None:
                    jobs.append(job)
                    continue
                record = make_record(*ended)  # it was interrupted before it could be recorded
                append_record(file, record)
                yield Outcome(job.split, record, skipped=False)
            if not jobs:
                continue
            with progress(tuple(sorted({job.split for job in jobs}))) as report:
                found = run_together(
                    jobs, dataset, extra=extra, report=report, should_stop=should_stop
                )
            if found is None:
                return
            for one in found:
                if one.run is None:
                    trouble = trouble or f"split {one.job.split}: {one.trouble}"
                    continue
                _leave(one.run, _folder(work, one.job, dataset))
                record = make_record(one.run, one.result)
                append_record(file, record)
                yield Outcome(one.job.split, record, skipped=False)
    if trouble:
        raise ValueError(trouble)


def _folder(work: Path, job: Job, dataset: AnyDataset) -> Path:
    """The folder of a run, that of a run alone."""
    identity = config_hash(run_identity(job.recipe, dataset, job.split))
    return work / f"{job.recipe.model_name}-{dataset.name}-{job.split}-{identity}"


def _finished(folder: Path, identity: str) -> tuple[Run, FitResult] | None:
    """The run of a folder if it has ended there; ``None`` if there is none, or half of one."""
    return _continue(folder, identity, resume=True) if (folder / "run.json").exists() else None


def _leave(run: Run, folder: Path) -> None:
    """Write a finished run; what a run alone has left half done there is of no use any more."""
    folder.mkdir(parents=True, exist_ok=True)
    save_run(run, folder)
    (folder / "state.safetensors").unlink(missing_ok=True)
