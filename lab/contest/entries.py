"""Records of trials, one JSON line per run, and what validation chooses from them. Imports no
PyTorch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from statistics import fmean

from coopsheaf.files import append_line, finite, is_json
from coopsheaf.report.rows import sign_of
from coopsheaf.train.records import Record, read_lines
from lab.contest.plan import PUBLISHED, Budget, Contestant, League


@dataclass(frozen=True)
class Entry:
    """A run of a trial. Scores are shares in [0, 1]; test scores choose nothing.

    Args:
        league, contestant, dataset, trial, split, seed: which run it is.
        model: the contestant's in the registry.
        settings: of the trial, as a user types them; empty of a packaged recipe.
        metric, val, test, train, best_epoch, epochs: what came out; no scores if it came to
            nothing, and ``trouble`` says why.
        seconds: of training; a share of the pass if it was made in one.
        together: runs that were trained in one pass, 0 for a run alone.
        alone: why it was trained alone where there were others to share a pass with.
        config_hash, model_version, dataset_checksum: what makes it the same run elsewhere.
        parameters, commit, versions, machine, threads, instructions, time: provenance.
    """

    league: str
    contestant: str
    dataset: str
    trial: int
    split: int
    seed: int
    model: str
    settings: list[str]
    metric: str
    val: float | None
    test: float | None
    config_hash: str
    train: float | None = None
    best_epoch: int = 0
    epochs: int = 0
    seconds: float | None = None
    together: int = 0
    alone: str = ""
    trouble: str = ""
    model_version: int = 1
    dataset_checksum: str = ""
    parameters: int = 0
    commit: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    threads: int = 0
    instructions: dict[str, str] = field(default_factory=dict)
    time: str = ""

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for runs that need not be made twice, whichever league they are of."""
        data = (self.dataset, self.dataset_checksum, self.split, self.seed)
        return (self.model, self.model_version, self.config_hash, *data)

    def to_line(self) -> str:
        return json.dumps(finite(asdict(self)), ensure_ascii=False, allow_nan=False)


def from_record(record: Record) -> Entry:
    """What a bench has recorded, as an entry of no league."""
    known = {item.name for item in fields(Record)} & {item.name for item in fields(Entry)}
    values = {name: getattr(record, name) for name in known}
    return Entry(league="", contestant=record.model, trial=PUBLISHED, settings=[], **values)


def file_of(results: Path, league: str, contestant: str, dataset: str) -> Path:
    return results / league / f"{contestant}-{dataset}.jsonl"


def append_entry(results: Path, entry: Entry) -> None:
    """Append one record to its file, whole or not at all."""
    file = file_of(results, entry.league, entry.contestant, entry.dataset)
    append_line(file, entry.to_line(), is_whole=is_json)


def read_entries(results: Path) -> list[Entry]:
    """All records of all leagues."""
    return read_lines(Entry, sorted(results.glob("*/*.jsonl")))


@dataclass(frozen=True)
class Standing:
    """What is known of a contestant on a data set.

    Args:
        contestant, dataset: who and where.
        budget: what is wanted.
        runs: first record of every trial and split.
        source: where settings are taken over from, if they are.
    """

    contestant: Contestant
    dataset: str
    budget: Budget
    runs: Mapping[int, Mapping[int, Entry]]
    source: Standing | None = None

    def missing(self, trial: int, splits: Iterable[int]) -> list[int]:
        known = self.runs.get(trial, {})
        return [split for split in splits if split not in known]

    @property
    def whole_trials(self) -> list[int]:
        """Trials whose search is recorded, also where it came to nothing."""
        trials = range(self.budget.trials)
        return [trial for trial in trials if not self.missing(trial, self.budget.search)]

    @property
    def searched(self) -> bool:
        """Whether all trials of the budget are recorded: nothing is chosen before."""
        if self.source is not None:
            return self.source.searched
        return len(self.whole_trials) == self.budget.trials

    def worth(self, trial: int) -> float:
        """Mean validation score over the splits of the search, larger is better."""
        runs = [self.runs[trial][split] for split in self.budget.search]
        vals = [run.val for run in runs if run.val is not None]
        if len(vals) < len(runs):
            return -math.inf
        return sign_of(runs[0].metric) * fmean(vals)

    @cached_property
    def chosen(self) -> int | None:
        """The best trial by validation, the first of equals; ``None`` before the search ends."""
        if self.source is not None:
            return self.source.chosen
        if not self.searched:
            return None
        best = max(self.whole_trials, key=lambda trial: (self.worth(trial), -trial))
        return best if self.worth(best) > -math.inf else None

    def scores(self, trial: int | None, part: str = "test") -> dict[int, float]:
        """Scores by split, of the splits of the final runs."""
        runs = {} if trial is None else self.runs.get(trial, {})
        values = {s: getattr(runs[s], part) for s in self.budget.final if s in runs}
        return {split: value for split, value in values.items() if value is not None}

    @property
    def tests(self) -> dict[int, float]:
        return self.scores(self.chosen)

    @property
    def published(self) -> dict[int, float]:
        return self.scores(PUBLISHED)

    @property
    def done(self) -> bool:
        """Whether the chosen trial is recorded on all splits."""
        return self.chosen is not None and not self.missing(self.chosen, self.budget.final)

    @property
    def validation(self) -> float:
        """Mean validation score of the chosen trial over the final splits, larger is better."""
        if self.chosen is None:
            return -math.inf
        vals = self.scores(self.chosen, "val")
        return sign_of(self.metric) * fmean(vals.values()) if vals else -math.inf

    @property
    def metric(self) -> str:
        runs = (run for trial in self.runs.values() for run in trial.values())
        return next((run.metric for run in runs), "accuracy")

    @property
    def troubles(self) -> list[Entry]:
        runs = (run for trial in self.runs.values() for run in trial.values())
        return [run for run in runs if run.trouble]


Standings = dict[tuple[str, str], Standing]


def standings(league: League, entries: Iterable[Entry]) -> Standings:
    """Where a league stands, by contestant and data set."""
    runs: dict[tuple[str, str], dict[int, dict[int, Entry]]] = {}
    for entry in entries:
        if entry.league == league.name:
            place = runs.setdefault((entry.contestant, entry.dataset), {})
            place.setdefault(entry.trial, {}).setdefault(entry.split, entry)
    found: Standings = {}
    order = sorted(league.budgets.items(), key=lambda item: bool(item[1].takes_over))
    for name, contestant in league.contestants.items():
        for dataset, budget in order:
            source = found.get((name, budget.takes_over))
            known = runs.get((name, dataset), {})
            found[name, dataset] = Standing(contestant, dataset, budget, known, source)
    return found
