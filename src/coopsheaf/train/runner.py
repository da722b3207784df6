"""Run recipes over splits: what is missing is run, what is recorded is skipped."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from coopsheaf.config import config_hash
from coopsheaf.data.links import AnyDataset
from coopsheaf.files import locked
from coopsheaf.train.loop import EpochReport, FitResult
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.records import OnBad, Record, append_record, find_records, warn_of_line
from coopsheaf.train.run import Run, run_identity, run_split

Progress = AbstractContextManager[Callable[[EpochReport], None] | None]


@dataclass(frozen=True)
class Outcome:
    """What became of one split."""

    split: int
    record: Record
    skipped: bool


def make_record(run: Run, result: FitResult) -> Record:
    """The record of a finished run."""
    info: dict[str, Any] = run.info
    recipe = run.recipe
    return Record(
        model=recipe.model_name,
        dataset=info["dataset"],
        split=info["split"],
        seed=info["seed"],
        semantics=getattr(recipe.model, "semantics", ""),
        metric=info["metric"],
        val=result.scores["val"],
        test=result.scores["test"],
        train=result.scores["train"],
        best_epoch=result.best_epoch,
        config_hash=info["config_hash"],
        model_version=info["model_version"],
        recipe=recipe.name,
        config=recipe.to_mapping(),
        epochs=result.epochs,
        seconds=round(result.seconds, 3),
        seconds_per_epoch=round(result.seconds / max(1, result.epochs), 6),
        peak_mb=round(info["peak_mb"], 1),
        parameters=info["parameters"],
        commit=current_commit(),
        versions=info["versions"],
        machine=info["machine"],
        threads=info["threads"],
        dataset_checksum=info["dataset_checksum"],
        dataset_remark=info["dataset_remark"],
        processing=info["processing"],
        splits=info["splits"],
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        instructions=info.get("instructions", {}),  # a run may be older
        together=info.get("together", 0),
    )


def expected_key(recipe: Recipe, dataset: AnyDataset, split: int) -> tuple:
    """The key that the record of a run will have."""
    return (
        recipe.model_name,
        dataset.name,
        split,
        recipe.train.seed,
        recipe.hash(),
        recipe.version,
        dataset.checksum,
    )


def bench(
    recipe: Recipe,
    dataset: AnyDataset,
    splits: list[int],
    *,
    results: Path,
    work: Path,
    extra: dict[str, Any] | None = None,
    progress: Callable[[int], Progress] = lambda split: nullcontext(None),
    should_stop: Callable[[], bool] | None = None,
    checkpoint_seconds: float = 30.0,
    bad: OnBad = warn_of_line,
) -> Iterator[Outcome]:
    """Run every split that has no record yet, one after the other, and record it.

    Several processes may do this at once: each split is run by one of them, the others wait for
    it and then find its record.

    Args:
        recipe: what to run.
        dataset: the processed data.
        splits: which splits.
        results: folder of the records.
        work: folder of unfinished and finished runs; an unfinished one is continued.
        extra: what else each ``run.json`` shall hold.
        progress: makes the progress report of a split, for as long as it runs.
        should_stop: asked after every epoch.
        checkpoint_seconds: seconds between two states.
        bad: is told of lines in ``results`` that are no records; they are passed over.
    """
    file = results / f"{recipe.model_name}-{dataset.name}.jsonl"
    for split in splits:
        identity = config_hash(run_identity(recipe, dataset, split))
        name = f"{recipe.model_name}-{dataset.name}-{split}-{identity}"
        with locked(work / name):
            key = expected_key(recipe, dataset, split)
            known = {record.key: record for record in find_records(results, bad)}
            if key in known:
                yield Outcome(split, known[key], skipped=True)
                continue
            with progress(split) as report:
                run, result = run_split(
                    recipe,
                    dataset,
                    split,
                    out=work / name,
                    resume=True,
                    extra=extra,
                    report=report,
                    should_stop=should_stop,
                    checkpoint_seconds=checkpoint_seconds,
                )
            if result.interrupted:
                return
            record = make_record(run, result)
            append_record(file, record)
        yield Outcome(split, record, skipped=False)


def current_commit() -> str:
    """The commit of the checkout this package is in, if any; ``+`` if it has changes."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=here, capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        tracked = git("ls-files", "--error-unmatch", "runner.py")
        commit = git("rev-parse", "--short=12", "HEAD") if tracked else ""
        return commit + ("+" if git("status", "--porcelain", "--", "../..") else "")
    except (OSError, subprocess.SubprocessError):
        return ""
