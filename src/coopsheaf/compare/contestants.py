"""What it takes to be compared: a number of trials, and a record of each on a fold.

The first trial of everybody is its default settings; the others are drawn from a small space around
them. What a contestant cannot use of the data it is not given, and that is said.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

import torch

from coopsheaf.compare.folds import Dataset, Fold
from coopsheaf.sweep.space import Value
from coopsheaf.train.provenance import instructions, versions
from coopsheaf.train.records import Record
from coopsheaf.train.runner import Progress, current_commit

MOST_DRAWS = 200  # for trials that are like no other


@dataclass(frozen=True)
class Trial:
    """One setting of a contestant.

    Args:
        number: from 0, the default settings.
        point: a recipe, or settings of trees.
        changed: what is not as in the default.
        hash: names the settings in records.
    """

    number: int
    point: Any
    changed: dict[str, Value]
    hash: str


@dataclass(frozen=True)
class Home:
    """Where records and unfinished runs are."""

    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / "records"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"


class Contestant(Protocol):
    """What can be fitted on a fold with one of several settings."""

    @property
    def name(self) -> str:
        """Of its records."""
        ...

    @property
    def version(self) -> int:
        """Of what it computes."""
        ...

    @property
    def sees_graph(self) -> bool:
        """Whether edges mean anything to it."""
        ...

    @property
    def seed(self) -> int:
        """Of its fits."""
        ...

    def draw(self, count: int, seed: int) -> list[Trial]:
        """So many different trials, or as many as there are; more of them begin with the same."""
        ...

    def fit(
        self, trial: Trial, fold: Fold, home: Home, progress: Progress, stop: Callable[[], bool]
    ) -> Record | None:
        """The record of a fit, made now if it is not there; ``None`` if it was stopped."""
        ...

    def unused(self, dataset: Dataset) -> list[str]:
        """What of the data it is not given, in words."""
        ...


def title_of(number: int) -> str:
    return f"comparison, trial {number}"


def source_of(number: int) -> str:
    return "the default settings" if number == 0 else "drawn around the default settings"


def blank_record(
    who: Contestant,
    trial: Trial,
    dataset: Dataset,
    fold: Fold,
    config: dict[str, dict[str, Any]],
    *,
    seed: int,
) -> Record:
    """A record without scores."""
    return Record(
        model=who.name,
        dataset=dataset.name,
        split=fold.split,
        seed=seed,
        semantics="",
        metric=config["train"].get("metric") or dataset.metric,
        val=None,
        test=None,
        best_epoch=0,
        config_hash=trial.hash,
        model_version=who.version,
        recipe=title_of(trial.number),
        config=config,
        commit=current_commit(),
        versions=versions(),
        machine=f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        threads=torch.get_num_threads(),
        dataset_checksum=dataset.checksum,
        dataset_remark=dataset.remark,
        processing=dataset.processing.to_json(),
        splits=dataset.num_splits,
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        instructions=instructions(),
    )
