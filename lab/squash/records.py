"""Points of the NeighborsMatch experiment, their records and their tables. Imports no PyTorch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from coopsheaf.checks import check_choice, check_int
from coopsheaf.config import config_hash
from coopsheaf.files import append_line, finite, is_json
from coopsheaf.report.text import markdown_table
from coopsheaf.train.records import read_lines
from lab.squash.published import find_published
from lab.squash.settings import DIRECTIONS, TREE_MODELS, TreeModel, batch_size

FILE = "neighbors-match.jsonl"
VERSION = 1  # of networks and training; a higher one makes older records invalid
MAX_DEPTH = 8
SHORT_STEPS = 250
PLACE = "neighbors-match"  # of the table in a document


@dataclass(frozen=True)
class Budget:
    """How long a point is trained.

    The published protocol evaluates in blocks of 100 passes over the training examples (1000 at
    depth 2), ends after 50,000 passes and has no other limit. The short one has blocks of as many
    passes as make 250 optimiser steps, at least one; all its other rules are the published ones.

    Args:
        name: ``"published"`` or ``"short"``.
        minutes: most CPU minutes for a point; ``None`` for no limit.
        max_blocks: most blocks; ``None`` for what 50,000 passes make.
    """

    name: str = "short"
    minutes: float | None = 10.0
    max_blocks: int | None = None

    def __post_init__(self) -> None:
        check_choice("budget", self.name, {"published": 0, "short": 0})
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise ValueError(f"`minutes` must be a positive number; got {self.minutes!r}")
        if self.max_blocks is not None:
            check_int("max_blocks", self.max_blocks, minimum=1)

    def passes(self, depth: int, num_examples: int, step_size: int) -> int:
        """Passes over the training examples in a block."""
        if self.name == "published":
            return 1000 if depth == 2 else 100
        return max(1, SHORT_STEPS * step_size // num_examples)

    def blocks(self, passes: int) -> int:
        """Most blocks, if each has so many passes."""
        most = 50_000 // passes
        return most if self.max_blocks is None else min(most, self.max_blocks)


@dataclass(frozen=True)
class SquashPoint:
    """One model at one depth.

    Args:
        model: the network.
        depth: depth of the trees, 2 to 8.
        seed: of the parameters and of the order of examples; the examples have their own.
    """

    model: TreeModel
    depth: int
    seed: int = 11

    def __post_init__(self) -> None:
        check_int("depth", self.depth, minimum=2)
        if self.depth > MAX_DEPTH:
            raise ValueError(f"`depth` must be at most {MAX_DEPTH}; got {self.depth}")
        check_int("seed", self.seed, minimum=0)

    @property
    def fitted_at(self) -> float:
        """The running training accuracy that counts as fitted, as published for this model."""
        return 0.999 if self.model.name == "csnn" else 1.0

    @property
    def step_size(self) -> int:
        """Trees of an optimiser step."""
        size, accumulation = batch_size(self.model.name, self.depth)
        return size * accumulation

    def identity(self, budget: Budget) -> dict[str, Any]:
        """What an unfinished run must agree in to be continued: all but how long it may take."""
        return {**asdict(self), "budget": budget.name, "version": VERSION}

    def run_name(self, budget: Budget) -> str:
        """Name of the folder of its run."""
        model = self.model
        parts = [model.name, model.direction, model.learner, model.semantics]
        words = "-".join(part for part in parts if part)
        return f"{words}-r{self.depth}-{config_hash(self.identity(budget))}"


@dataclass(frozen=True)
class SquashRecord:
    """A finished point. Accuracies are shares.

    ``train_best`` and ``train_last`` are running accuracies of a block, in training mode, while the
    parameters change: what the published figures show. ``test`` is measured once, at the end.
    ``stopped`` says why it ended: ``"fitted"``, ``"no-improvement"``, ``"passes"`` (the published
    maximum), ``"blocks"`` or ``"minutes"`` (the budget).
    """

    model: str
    depth: int
    direction: str
    learner: str
    semantics: str
    seed: int
    budget: str
    minutes: float | None
    max_blocks: int | None
    train_best: float
    train_last: float
    test: float
    stopped: str
    epochs: float
    blocks: int
    steps: int
    seconds: float
    cpu_seconds: float
    learning_rate: float
    parameters: int
    version: int = VERSION
    commit: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    threads: int = 0
    time: str = ""

    @property
    def tree_model(self) -> TreeModel:
        return TreeModel(self.model, self.direction, self.learner, self.semantics)

    @property
    def point(self) -> SquashPoint:
        return SquashPoint(self.tree_model, self.depth, self.seed)

    @property
    def fitted(self) -> bool:
        return self.stopped == "fitted"

    def answers(self, point: SquashPoint, budget: Budget) -> bool:
        """Whether this record makes a run of the point with the budget needless.

        It does if a rule of the protocol ended it, or if it was allowed at least as much.
        """
        same = (self.version, self.budget, self.point) == (VERSION, budget.name, point)
        by_rule = self.stopped in ("fitted", "no-improvement", "passes")
        return same and (
            by_rule
            or (
                _limit(self.minutes) >= _limit(budget.minutes)
                and _limit(self.max_blocks) >= _limit(budget.max_blocks)
            )
        )


def _limit(value: float | None) -> float:
    return math.inf if value is None else value


def append_squash_record(folder: Path, record: SquashRecord) -> Path:
    """Append a record to the file of its kind, whole or not at all."""
    path = folder / FILE
    append_line(path, json.dumps(finite(asdict(record)), allow_nan=False), is_whole=is_json)
    return path


def read_squash_records(folder: Path) -> list[SquashRecord]:
    """All records below a folder; a last line that a killed process left half is passed over."""
    path = folder / FILE
    return read_lines(SquashRecord, [path]) if path.exists() else []


def latest(records: Iterable[SquashRecord]) -> list[SquashRecord]:
    """The last record of each point and budget, in the order of tables."""
    kept: dict[tuple[str, SquashPoint], SquashRecord] = {}
    for record in records:
        if record.version == VERSION:
            kept[(record.budget, record.point)] = record
    names, directions = list(TREE_MODELS), ["", *DIRECTIONS]

    def place(record: SquashRecord) -> tuple[Any, ...]:
        return (
            names.index(record.model),
            directions.index(record.direction),
            record.semantics,
            record.learner == "mlp",
            record.depth,
            record.budget,
            record.seed,
        )

    return sorted(kept.values(), key=place)


STOPPED = {
    "fitted": "fitted",
    "no-improvement": "20 blocks without improvement",
    "passes": "50,000 passes",
    "blocks": "cap on blocks",
    "minutes": "cap on CPU minutes",
}
HEAD = ("model", "r", "train %", "published", "test %", "passes", "steps", "CPU s", "budget", "end")


def table_rows(records: Iterable[SquashRecord]) -> list[tuple[str, ...]]:
    """One row per point, under ``HEAD``."""
    return [_row(record) for record in latest(records)]


def _row(record: SquashRecord) -> tuple[str, ...]:
    published = find_published(record.model, record.depth)
    budget = record.budget
    if record.minutes is not None:
        budget += f", {record.minutes:g} min"
    seed = "" if record.seed == 11 else f" (seed {record.seed})"
    return (
        record.tree_model.label + seed,
        str(record.depth),
        _percent(record.train_best),
        "-" if published is None else f"{100 * published:.0f}",
        _percent(record.test),
        f"{record.epochs:,.0f}",
        f"{record.steps:,}",
        f"{record.cpu_seconds:,.0f}",
        budget,
        STOPPED.get(record.stopped, record.stopped),
    )


def _percent(share: float) -> str:
    # Cut off, not rounded: 99.99 must not become 100.0.
    return f"{math.floor(share * 1000 + 1e-9) / 10:.1f}"


def depth_table(records: Iterable[SquashRecord]) -> str:
    """The table of all points for the documentation."""
    rows = table_rows(records)
    if not rows:
        return "No point has been recorded yet.\n"
    return markdown_table(" | ".join(HEAD), rows, "lrrrrrrrll")
