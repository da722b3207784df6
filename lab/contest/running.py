"""Train what is missing of a contest: trials first, then the chosen one on all splits.

Splits of a trial are trained in one pass where the network can be, one by one otherwise. A record
is written as soon as there is one, and what is recorded is never run again, so that a contest can
be run in slices. A run that another league has recorded already is taken over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from coopsheaf.compare.networks import NetworkContestant
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train.beforehand import task_of
from coopsheaf.train.data import load_data
from coopsheaf.train.loop import FitResult
from coopsheaf.train.recipe import DataConfig, Recipe
from coopsheaf.train.records import read_records
from coopsheaf.train.run import Run, run_split
from coopsheaf.train.runner import current_commit
from coopsheaf.train.together.run import Job, run_together, runs_at_once
from lab.contest.entries import (
    Entry,
    Standing,
    append_entry,
    from_record,
    read_entries,
    standings,
)
from lab.contest.plan import PUBLISHED, Contestant, League

# What ends a trial and is a result: it diverged, or does not fit.
TROUBLES = (ValueError, ArithmeticError, MemoryError, RuntimeError)
_PROVENANCE = ("parameters", "versions", "machine", "threads", "instructions")


def deadline(minutes: float | None) -> Callable[[], bool]:
    """Says whether so many minutes are over; it is asked between passes."""
    end = None if minutes is None else time.monotonic() + 60 * minutes
    return lambda: end is not None and time.monotonic() >= end


@dataclass
class Contest:
    """A league under way.

    Args:
        league: who competes.
        results: folder of the records.
        is_over: asked before every pass.
        data_dir: where to look for files of data sets.
    """

    league: League
    results: Path
    is_over: Callable[[], bool] = lambda: False
    data_dir: Path | None = None
    _loaded: dict[DataConfig, NodeDataset] = field(default_factory=dict)
    _entries: list[Entry] = field(default_factory=list)

    def run(self, contestants: Sequence[str], datasets: Sequence[str]) -> Iterator[Entry]:
        """Train what is missing; yields every new record."""
        for dataset in datasets:
            self._loaded.clear()
            for name in contestants:
                self._entries = read_entries(self.results)  # other processes write as well
                for stage in (self._search, self._final, self._published):
                    yield from stage(name, dataset)
                    if self.is_over():
                        return

    def standing(self, name: str, dataset: str) -> Standing:
        return standings(self.league, self._entries)[name, dataset]

    def _search(self, name: str, dataset: str) -> Iterator[Entry]:
        standing = self.standing(name, dataset)
        if standing.source is None:
            for trial in range(standing.budget.trials):
                yield from self._make(standing, trial, standing.budget.search)

    def _final(self, name: str, dataset: str) -> Iterator[Entry]:
        standing = self.standing(name, dataset)
        if standing.chosen is not None:
            yield from self._make(standing, standing.chosen, standing.budget.final)

    def _published(self, name: str, dataset: str) -> Iterator[Entry]:
        contestant = self.league.contestants[name]
        if self.league.published and contestant.has_published(dataset):
            standing = self.standing(name, dataset)
            yield from self._make(standing, PUBLISHED, standing.budget.final)

    def _make(self, standing: Standing, trial: int, splits: Sequence[int]) -> Iterator[Entry]:
        left = standing.missing(trial, splits)
        if not left or self.is_over():
            return
        contestant = standing.contestant
        recipe = contestant.recipe(trial, standing.dataset)
        data = self._load(recipe)
        blank = self._blank(contestant, trial, recipe, data)
        for entry in self._elsewhere(blank, left):
            left.remove(entry.split)
            yield self._keep(entry)
        size = runs_at_once(data)
        while left and not self.is_over():
            some, left = left[:size], left[size:]
            for result in make_runs(recipe, data, some):
                yield self._keep(result.fill(blank))

    def _elsewhere(self, blank: Entry, splits: Sequence[int]) -> list[Entry]:
        """Records of the same runs: of other leagues and, with published settings, of benches."""
        known = {entry.same: entry for entry in self._entries}
        if blank.trial == PUBLISHED:
            file = self.results.parent / f"{blank.model}-{blank.dataset}.jsonl"
            benches = read_records([file]) if file.exists() else []
            known |= {entry.same: entry for entry in map(from_record, benches)}
        found = (known.get(replace(blank, split=split).same) for split in splits)
        place = {key: getattr(blank, key) for key in ("league", "contestant", "trial", "settings")}
        return [replace(entry, **place) for entry in found if entry is not None]

    def _keep(self, entry: Entry) -> Entry:
        append_entry(self.results, entry)
        self._entries.append(entry)
        return entry

    def _load(self, recipe: Recipe) -> NodeDataset:
        """The data of a recipe, as its network can use it."""
        if recipe.data not in self._loaded:
            loaded = load_data(recipe.data, self.data_dir)
            assert isinstance(loaded, NodeDataset)
            self._loaded[recipe.data] = loaded
        taken = NetworkContestant(recipe).taken(self._loaded[recipe.data])
        assert isinstance(taken, NodeDataset)
        return taken

    def _blank(
        self, contestant: Contestant, trial: int, recipe: Recipe, data: NodeDataset
    ) -> Entry:
        """A record with all that is known before training."""
        return Entry(
            league=self.league.name,
            contestant=contestant.name,
            dataset=recipe.data.name,
            trial=trial,
            split=-1,
            seed=recipe.train.seed,
            model=recipe.model_name,
            settings=list(contestant.assignments(trial, recipe.data.name)),
            metric=task_of(recipe.train, data).metric,
            val=None,
            test=None,
            config_hash=recipe.hash(),
            model_version=recipe.version,
            dataset_checksum=data.checksum,
            commit=_commit(),
        )


@dataclass(frozen=True)
class Made:
    """What became of a split; ``alone`` says why no others were trained in the same pass."""

    split: int
    run: Run | None = None
    result: FitResult | None = None
    trouble: str = ""
    alone: str = ""

    def fill(self, blank: Entry) -> Entry:
        """The record of it."""
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = replace(blank, split=self.split, time=now, trouble=self.trouble, alone=self.alone)
        if self.run is None or self.result is None:
            return entry
        info: dict[str, Any] = self.run.info
        return replace(
            entry,
            val=self.result.scores["val"],
            test=self.result.scores["test"],
            train=self.result.scores["train"],
            best_epoch=self.result.best_epoch,
            epochs=self.result.epochs,
            seconds=round(self.result.seconds, 3),
            together=info.get("together", 0),
            **{key: info[key] for key in _PROVENANCE},
        )


def make_runs(recipe: Recipe, dataset: NodeDataset, splits: Sequence[int]) -> list[Made]:
    """Train splits in one pass if the network can be, one by one otherwise; then it says why."""
    why = ""
    if len(splits) > 1:
        try:
            ended = run_together([Job(recipe, split) for split in splits], dataset)
            return [Made(e.job.split, e.run, e.result, e.trouble) for e in ended or ()]
        except TROUBLES as error:  # alone it may do well
            why = _line_of(error)
    return [replace(_make_alone(recipe, dataset, split), alone=why) for split in splits]


def _make_alone(recipe: Recipe, dataset: NodeDataset, split: int) -> Made:
    try:
        return Made(split, *run_split(recipe, dataset, split))
    except TROUBLES as error:
        return Made(split, trouble=_line_of(error))


def _line_of(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


@cache
def _commit() -> str:
    return current_commit()
