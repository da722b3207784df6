"""Boosted trees as contestants: on columns alone, or on columns and what the neighbours' are."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor

from coopsheaf.compare.contestants import (
    MOST_DRAWS,
    Home,
    Trial,
    blank_record,
    source_of,
    title_of,
)
from coopsheaf.compare.folds import Dataset, Fold, targets_of
from coopsheaf.compare.neighbours import neighbour_columns, plain_columns
from coopsheaf.compare.trees import TREE_SPACE, TreeSettings, fit_trees, load_sklearn
from coopsheaf.config import config_hash, to_mapping
from coopsheaf.data.dataset import PARTS, NodeDataset
from coopsheaf.extras import load_extra
from coopsheaf.files import locked
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.records import Record, append_record, find_records
from coopsheaf.train.runner import Progress
from coopsheaf.train.task import Task

TREES = {"boosted-columns": plain_columns, "boosted-neighbours": neighbour_columns}
TREES_VERSION = 1


@dataclass(frozen=True)
class TreeContestant:
    """Boosted trees on columns alone, or on columns and what the neighbours' are.

    Args:
        name: of ``TREES``.
        settings: the default ones.
        data: what records say of the data.
        metric: that was asked for, if any.
    """

    name: str
    settings: TreeSettings
    data: DataConfig
    metric: str | None = None

    version = TREES_VERSION

    @property
    def sees_graph(self) -> bool:
        return self.name != "boosted-columns"

    @property
    def seed(self) -> int:
        return self.settings.seed

    def unused(self, dataset: Dataset) -> list[str]:
        return []

    def draw(self, count: int, seed: int) -> list[Trial]:
        load_sklearn()
        rng = random.Random(f"{seed}/{self.name}")
        found = {self._hash(self.settings): Trial(0, self.settings, {}, self._hash(self.settings))}
        for _ in range(MOST_DRAWS):
            if len(found) == count:
                break
            picked = {name: rng.choice(values) for name, values in TREE_SPACE.items()}
            settings = replace(self.settings, **picked)
            changed = {n: v for n, v in picked.items() if v != getattr(self.settings, n)}
            hash = self._hash(settings)
            found.setdefault(hash, Trial(len(found), settings, changed, hash))
        return list(found.values())

    def _hash(self, settings: TreeSettings) -> str:
        values = {key: value for key, value in asdict(settings).items() if key != "seed"}
        asked = [] if self.metric is None else [self.metric]
        return config_hash(self.name, values, self.data, *asked)

    def fit(
        self, trial: Trial, fold: Fold, home: Home, progress: Progress, stop: Callable[[], bool]
    ) -> Record | None:
        dataset, settings = fold.dataset, trial.point
        file = home.records / f"{self.name}-{dataset.name}.jsonl"
        with locked(home.runs / f"{self.name}-{dataset.name}-{fold.split}-{trial.hash}"):
            draft = self._record(trial, fold)
            known = {record.key: record for record in find_records(home.records)}
            if draft.key in known:
                return known[draft.key]
            with progress:
                result = fit_trees(
                    TREES[self.name](dataset),
                    targets_of(dataset),
                    _positions(dataset, fold.split),
                    Task(dataset.task, self.metric or dataset.metric),
                    settings,
                    outputs=dataset.out_channels,
                    weight=getattr(dataset, "sample_weight", None),
                    should_stop=stop,
                )
            if result.interrupted:
                return None
            scores: dict[str, Any] = {p: None if s != s else s for p, s in result.scores.items()}
            record = replace(
                draft,
                **scores,
                best_epoch=result.best,
                epochs=result.iterations,
                seconds=round(result.seconds, 3),
                seconds_per_epoch=round(result.seconds / max(1, result.iterations), 6),
            )
            append_record(file, record)
        return record

    def _record(self, trial: Trial, fold: Fold) -> Record:
        values = asdict(trial.point)
        seed = values.pop("seed")
        train = {"seed": seed} | ({} if self.metric is None else {"metric": self.metric})
        config = {
            "recipe": {"name": title_of(trial.number), "source": source_of(trial.number)},
            "model": {"name": self.name, **values},
            "data": to_mapping(self.data),
            "train": train,
        }
        record = blank_record(self, trial, fold.dataset, fold, config, seed=seed)
        sklearn = load_extra("sklearn", "boosted trees need")
        found = record.versions | {"scikit-learn": sklearn.__version__}
        return replace(record, versions=found)


def _positions(dataset: Dataset, split: int) -> dict[str, Tensor]:
    """The rows of each part."""
    if isinstance(dataset, NodeDataset):
        return dataset.positions(split)
    return {part: getattr(dataset, part) for part in PARTS}
