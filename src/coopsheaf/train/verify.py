"""Run a record again, and say how well the numbers agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

import torch

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.train.loop import FitResult
from coopsheaf.train.provenance import instructions, versions
from coopsheaf.train.recipe import Recipe, recipe_from_mapping
from coopsheaf.train.records import Record, read_records
from coopsheaf.train.run import run_split
from coopsheaf.train.runner import Progress

MORE_SEEDS = 3  # run where the numbers differ, to see what a seed alone does
_T = 3.182  # the 0.975 quantile of Student's t for as many degrees of freedom


@dataclass(frozen=True)
class Verdict:
    """What came of running a record again.

    Args:
        exact: scores and epochs are the same to the last bit.
        again: the test score now.
        others: test scores with other seeds; empty if nothing had to be compared.
        changes: what was different of what numbers depend on: name, then, now.
    """

    record: Record
    exact: bool
    again: float
    others: tuple[float, ...] = ()
    changes: tuple[tuple[str, str, str], ...] = ()

    @property
    def spread(self) -> tuple[float, float]:
        """Where 95 of 100 further scores lie, if those of seeds are distributed normally.

        Four scores say little, and their range less.
        """
        scores = (self.again, *self.others)
        half = _T * stdev(scores) * math.sqrt(1 + 1 / len(scores)) if self.others else 0.0
        return fmean(scores) - half, fmean(scores) + half

    @property
    def within(self) -> bool:
        """The recorded test score is not outside of what seeds give."""
        low, high = self.spread
        test = self.record.test
        return self.exact or (test is not None and low <= test <= high)


def find_record(name: str) -> Record:
    """``FILE.jsonl:LINE``, or a file that holds one record."""
    path, colon, line = name.rpartition(":")
    if not (colon and line.isdecimal()):
        path, line = name, ""
    records = read_records([Path(path)])
    if not line and len(records) != 1:
        raise ValueError(
            f"{name}: must hold one record; it holds {len(records)}: name one as {name}:LINE"
        )
    if line and not 1 <= int(line) <= len(records):
        raise ValueError(f"{path}: has records 1 to {len(records)}; got {line}")
    return records[int(line or 1) - 1]


def record_recipe(record: Record) -> Recipe:
    """The settings of a record, which must be those of today's model on data by name."""
    recipe = recipe_from_mapping(record.config, "the record")
    if not recipe.data.name:
        raise ValueError("the record is of own tables, which it does not name; train on them again")
    if recipe.version != record.model_version:
        raise ValueError(
            f"the record is of version {record.model_version} of {record.model}, which computes "
            f"something else than version {recipe.version}, that of today"
        )
    return recipe


def verify_record(
    record: Record,
    dataset: NodeDataset | GraphDataset,
    *,
    progress: Callable[[int], Progress] = lambda seed: nullcontext(None),
    should_stop: Callable[[], bool] | None = None,
) -> Verdict | None:
    """Run a record's settings on its data again, and with other seeds if the numbers differ.

    Args:
        record: what was.
        dataset: its data, processed as its settings say.
        progress: makes the progress report of a run, given its seed.
        should_stop: asked after every epoch; ``None`` is returned if it stops.
    """
    if dataset.checksum != record.dataset_checksum:
        raise ValueError(
            f"{dataset.name}: the data is not that of the record (checksums "
            f"{dataset.checksum[:12] or '-'} and {record.dataset_checksum[:12] or '-'})"
        )
    recipe = record_recipe(record)

    def run(seed: int) -> FitResult:
        seeded = replace(recipe, train=replace(recipe.train, seed=seed))
        with progress(seed) as report:
            _, result = run_split(
                seeded, dataset, record.split, report=report, should_stop=should_stop
            )
        return result

    result = run(record.seed)
    if result.interrupted:
        return None
    again, changes = result.scores["test"], _changes(record)
    if _is_exact(record, result):
        return Verdict(record, True, again, changes=changes)
    others = []
    for seed in range(record.seed + 1, record.seed + 1 + MORE_SEEDS):
        other = run(seed)
        if other.interrupted:
            return None
        others.append(other.scores["test"])
    return Verdict(record, False, again, tuple(others), changes)


def _is_exact(record: Record, result: FitResult) -> bool:
    scores = {"train": record.train, "val": record.val, "test": record.test}
    same = all(value is None or value == result.scores[part] for part, value in scores.items())
    return same and (record.best_epoch, record.epochs) == (result.best_epoch, result.epochs)


def _changes(record: Record) -> tuple[tuple[str, str, str], ...]:
    """What numbers depend on and was different then; what a record does not say is left out."""
    then = record.versions | record.instructions | {"threads": str(record.threads)}
    now = versions() | instructions() | {"threads": str(torch.get_num_threads())}
    names = dict.fromkeys([*then, *(instructions() if record.instructions else ())])
    return tuple(
        (name, then.get(name, "-"), now.get(name, "-"))
        for name in names
        if then.get(name) != now.get(name)
    )
