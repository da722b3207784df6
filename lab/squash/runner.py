"""Training on NeighborsMatch: the published protocol and a short budget, resumable at any step."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from coopsheaf.data.synthetic import NeighborsMatch, neighbors_match
from coopsheaf.files import locked
from coopsheaf.train.checkpoint import load_tensors, pack, save_tensors, unpack
from coopsheaf.train.provenance import versions
from coopsheaf.train.run_info import CheckpointError
from coopsheaf.train.runner import current_commit
from lab.squash.networks import tree_network
from lab.squash.records import (
    Budget,
    SquashPoint,
    SquashRecord,
    append_squash_record,
    read_squash_records,
)
from lab.squash.settings import batch_size
from lab.squash.trees import Forests

LEARNING_RATE = 1e-3
PLATEAU = {"factor": 0.5, "patience": 10, "threshold": 1e-4, "threshold_mode": "abs"}
PATIENCE = 20  # blocks
IMPROVEMENT = 1e-4
# Gradients of a large step are added up over parts of about this many nodes, which is faster and
# takes less memory. Exact, but for batch norms: GIN has the published batches.
PART_NODES = 1 << 15


@dataclass(frozen=True)
class SquashReport:
    """What a progress bar shows."""

    block: int
    blocks: int
    step: int
    steps: int
    accuracy: float
    best: float
    cpu_seconds: float
    cap_seconds: float | None


@dataclass
class SquashState:
    """Where a run stands, tensors aside."""

    block: int = 0  # blocks finished
    step: int = 0  # optimiser steps done in the running block
    correct: int = 0  # in the running block
    seen: int = 0
    total_steps: int = 0
    total_seen: int = 0
    best: float = 0.0
    last: float = 0.0
    best_block: int = 0
    stopped: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    history: list[float] = field(default_factory=list)
    plateau: dict[str, Any] = field(default_factory=dict)


class SquashRun:
    """The training of one point.

    Args:
        point: model and depth.
        budget: how long.
        data: the examples; generated if not given.
        folder: where the state is kept; nowhere if not given. What is there is continued.
    """

    def __init__(
        self,
        point: SquashPoint,
        budget: Budget,
        *,
        data: NeighborsMatch | None = None,
        folder: Path | None = None,
    ) -> None:
        self.point, self.budget = point, budget
        self.data = neighbors_match(point.depth) if data is None else data
        torch.manual_seed(point.seed)
        self.model: nn.Module = tree_network(point.model, point.depth)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE, fused=True)
        self.plateau = ReduceLROnPlateau(self.optimizer, mode="max", **PLATEAU)  # type: ignore[arg-type]
        self.forests = Forests(point.depth)
        self.state = SquashState()
        self.passes = budget.passes(point.depth, len(self.data.train), point.step_size)
        self.path = None if folder is None else folder / "state.safetensors"
        if self.path is not None and self.path.exists():
            self._restore(self.path)

    @property
    def part_size(self) -> int:
        """Trees that go through the network at once."""
        size, _ = batch_size(self.point.model.name, self.point.depth)
        if self.point.model.name == "gin":
            return size
        return min(size, max(1, PART_NODES // self.data.num_nodes))

    def run(
        self,
        *,
        report: Callable[[SquashReport], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        checkpoint_seconds: float = 30.0,
    ) -> SquashState:
        """Train until a rule or the budget ends it, or until ``should_stop`` says so.

        In the last case ``stopped`` is empty; the state is saved and can be continued.
        """
        state, saved = self.state, time.monotonic()
        if state.stopped in ("minutes", "blocks"):
            state.stopped = ""  # the budget may have grown
        state.stopped = state.stopped or self._ended()
        while not state.stopped:
            start, cpu = time.perf_counter(), time.process_time()
            steps = self._order()  # (steps,) of (trees of a step,)
            asked = False
            while state.step < len(steps) and not asked and not self._out_of_time(cpu):
                self._step(steps[state.step])
                asked = should_stop is not None and should_stop()
                if report is not None:
                    report(self._report(len(steps), cpu))
                if time.monotonic() - saved >= checkpoint_seconds:
                    start, cpu = self._clock(start, cpu)
                    self._save()
                    saved = time.monotonic()
            self._clock(start, cpu)
            if state.step == len(steps):
                self._end_block()
                state.stopped = self._ended()
            elif not asked:
                state.stopped = "minutes"
            if asked and not state.stopped:
                break
        self._save()
        return state

    def record(self) -> SquashRecord:
        """The record of a run that has ended."""
        state, point, model = self.state, self.point, self.point.model
        best, last = self._accuracies()
        return SquashRecord(
            model=model.name,
            depth=point.depth,
            direction=model.direction,
            learner=model.learner,
            semantics=model.semantics,
            seed=point.seed,
            budget=self.budget.name,
            minutes=self.budget.minutes,
            max_blocks=self.budget.max_blocks,
            train_best=round(best, 6),
            train_last=round(last, 6),
            test=round(self.accuracy(self.data.test), 6),
            stopped=state.stopped,
            epochs=round(state.total_seen / len(self.data.train), 2),
            blocks=state.block,
            steps=state.total_steps,
            seconds=round(state.seconds, 2),
            cpu_seconds=round(state.cpu_seconds, 2),
            learning_rate=self.optimizer.param_groups[0]["lr"],
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            **provenance(),
        )

    @torch.no_grad()
    def accuracy(self, examples: Tensor) -> float:
        """The share of examples that the model gets right, in evaluation mode."""
        self.model.eval()
        correct = sum(
            int((self._logits(part).argmax(1) == self.data.labels[part]).sum())
            for part in examples.split(self.part_size)
        )
        self.model.train()
        return correct / len(examples)

    def _logits(self, examples: Tensor) -> Tensor:
        return self.model(self.data.features[examples], self.forests(len(examples)))

    def _order(self) -> tuple[Tensor, ...]:
        """The examples of each step of the running block: all of them, ``passes`` times, mixed."""
        generator = torch.Generator().manual_seed(self.point.seed * 1_000_003 + self.state.block)
        train = self.data.train
        order = torch.randperm(len(train) * self.passes, generator=generator) % len(train)
        return train[order].split(self.point.step_size)

    def _step(self, examples: Tensor) -> None:
        state = self.state
        self.optimizer.zero_grad(set_to_none=True)
        correct = torch.zeros((), dtype=torch.int64)
        total = 0.0
        for part in examples.split(self.part_size):
            logits, y = self._logits(part), self.data.labels[part]
            loss = F.cross_entropy(logits, y, reduction="sum") / len(examples)
            loss.backward()
            correct += (logits.detach().argmax(1) == y).sum()
            total += loss.item()
        if not math.isfinite(total):
            raise ValueError(
                f"the loss became {total} in step {state.total_steps + 1} of {self.point}"
            )
        self.optimizer.step()
        state.step, state.total_steps = state.step + 1, state.total_steps + 1
        state.seen, state.total_seen = state.seen + len(examples), state.total_seen + len(examples)
        state.correct += int(correct)

    def _end_block(self) -> None:
        state = self.state
        accuracy = state.correct / state.seen
        state.block, state.step, state.correct, state.seen = state.block + 1, 0, 0, 0
        state.last = accuracy
        state.history.append(round(accuracy, 6))
        if accuracy > state.best + IMPROVEMENT:
            state.best, state.best_block = accuracy, state.block
        self.plateau.step(accuracy)

    def _ended(self) -> str:
        """Which rule ends the run after the last finished block, if one does."""
        state = self.state
        if state.block == 0:
            return ""
        if state.last >= self.point.fitted_at:
            return "fitted"
        if state.block - state.best_block >= PATIENCE:
            return "no-improvement"
        if state.block >= self.budget.blocks(self.passes):
            return "blocks" if self.budget.max_blocks == state.block else "passes"
        return ""

    def _accuracies(self) -> tuple[float, float]:
        """Best and last accuracy of a block; an unfinished one counts from its middle on."""
        state = self.state
        half = self.passes * len(self.data.train) / 2
        if state.seen and (state.seen >= half or state.block == 0):
            partial = state.correct / state.seen
            return max([*state.history, partial]), partial
        return max(state.history, default=math.nan), state.last

    def _out_of_time(self, cpu: float) -> bool:
        used = self.state.cpu_seconds + time.process_time() - cpu
        return self.budget.minutes is not None and used >= 60 * self.budget.minutes

    def _clock(self, start: float, cpu: float) -> tuple[float, float]:
        now, cpu_now = time.perf_counter(), time.process_time()
        self.state.seconds += now - start
        self.state.cpu_seconds += cpu_now - cpu
        return now, cpu_now

    def _report(self, steps: int, cpu: float) -> SquashReport:
        state, cap = self.state, self.budget.minutes
        return SquashReport(
            block=state.block,
            blocks=self.budget.blocks(self.passes),
            step=state.step,
            steps=steps,
            accuracy=state.correct / max(1, state.seen),
            best=max(state.history, default=math.nan),
            cpu_seconds=state.cpu_seconds + time.process_time() - cpu,
            cap_seconds=None if cap is None else 60 * cap,
        )

    def _save(self) -> None:
        if self.path is None:
            return
        moments = {
            f"{index}.{name}": value
            for index, values in self.optimizer.state_dict()["state"].items()
            for name, value in values.items()
        }
        tensors = {**pack("model", self.model.state_dict()), **pack("optimizer", moments)}
        keep = ("best", "num_bad_epochs", "last_epoch", "_last_lr", "cooldown_counter")
        known = self.plateau.state_dict()
        self.state.plateau = {key: known[key] for key in keep if key in known}
        meta = {
            "identity": self.point.identity(self.budget),
            "state": asdict(self.state),
            "rate": self.optimizer.param_groups[0]["lr"],
        }
        # No random state: the order of a block follows from its number, and nothing else is drawn.
        save_tensors(self.path, tensors, _jsonable(meta))

    def _restore(self, path: Path) -> None:
        tensors, meta = load_tensors(path)
        if meta.get("identity") != self.point.identity(self.budget):
            raise CheckpointError(f"{path}: the state of another run; choose another --work folder")
        try:
            self.model.load_state_dict(unpack("model", tensors))
            packed = self.optimizer.state_dict()
            packed["state"] = {}
            for name, value in unpack("optimizer", tensors).items():
                index, _, key = name.partition(".")
                packed["state"].setdefault(int(index), {})[key] = value
            self.optimizer.load_state_dict(packed)
            self.optimizer.param_groups[0]["lr"] = meta["rate"]
            self.state = SquashState(**meta["state"])
            if self.state.block:
                self.plateau.load_state_dict(self.state.plateau)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise CheckpointError(f"{path}: does not fit this network ({reason})") from None


def _jsonable(meta: dict[str, Any]) -> dict[str, Any]:
    """The best value of a scheduler that has seen nothing is -inf, which JSON does not have."""
    plateau = meta["state"]["plateau"]
    if not math.isfinite(plateau.get("best", 0.0)):
        meta["state"]["plateau"] = {}
    return meta


def provenance() -> dict[str, Any]:
    """Where and with what something is computed."""
    return {
        "commit": current_commit(),
        "versions": versions(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "threads": torch.get_num_threads(),
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


@dataclass(frozen=True)
class SquashOutcome:
    """What became of one point."""

    point: SquashPoint
    record: SquashRecord
    skipped: bool


def run_points(
    points: list[SquashPoint],
    budget: Budget,
    *,
    results: Path,
    work: Path,
    progress: Callable[[SquashPoint], Any],
    should_stop: Callable[[], bool] | None = None,
    checkpoint_seconds: float = 30.0,
) -> Iterator[SquashOutcome]:
    """Run every point that has no record yet and record it; several processes may share the work.

    Args:
        points: what to run, in this order.
        budget: how long each.
        results: folder of the records.
        work: folder of the states; an unfinished run is continued, also with a larger budget.
        progress: from a point to a context manager that gives a report function.
        should_stop: asked after every step; ends the iteration.
        checkpoint_seconds: seconds between two states.
    """
    data: NeighborsMatch | None = None
    for point in points:
        folder = work / point.run_name(budget)
        with locked(folder):
            records = read_squash_records(results)
            known = [record for record in records if record.answers(point, budget)]
            if known:
                yield SquashOutcome(point, known[-1], skipped=True)
                continue
            if data is None or data.depth != point.depth:
                data = neighbors_match(point.depth)
            run = SquashRun(point, budget, data=data, folder=folder)
            with progress(point) as report:
                state = run.run(
                    report=report, should_stop=should_stop, checkpoint_seconds=checkpoint_seconds
                )
            if not state.stopped:
                return
            record = run.record()
            append_squash_record(results, record)
        yield SquashOutcome(point, record, skipped=False)
