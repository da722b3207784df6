"""A small sweep, trials that take no time, and sudden deaths, for the tests of sweeps."""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from report.example import make
from train.small import node_dataset, recipe

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.sweep.plan import Plan, load_plan, make_plan
from coopsheaf.sweep.queue import TrialRow
from coopsheaf.sweep.search import Sweep
from coopsheaf.sweep.space import Space, load_space
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.runner import Outcome

SPACE = """
[grid]
source = "a small space"
[model]
hidden_channels = [2, 4]
learner = ["mlp", "sage-graph-norm"]
learner_layers = [1, 2]
[train]
lr = { low = 1e-3, high = 1e-1, log = true }
"""
FINITE = SPACE.replace("{ low = 1e-3, high = 1e-1, log = true }", "[0.001, 0.01]")


def space(folder: Path, text: str = SPACE, base: Recipe | None = None) -> Space:
    file = folder / "space.toml"
    file.write_text(text, encoding="utf-8")
    return load_space(base or recipe(epochs=2), file)


def plan(folder: Path, text: str = SPACE, *, dataset: NodeDataset | None = None, splits: tuple[int, ...] = (0, 1), **options: Any) -> Plan:  # fmt: skip
    base = recipe(epochs=2)
    data = node_dataset() if dataset is None else dataset
    return make_plan(base, space(folder, text, base), data, list(splits), **options)


class Trainer:
    """Stands for a bench: scores are a function of the recipe and the split."""

    def __init__(self, score: Callable[[Recipe, int], float | None], test: Callable[[float], float] = lambda val: 0.5) -> None:  # fmt: skip
        self.score, self.test = score, test
        self.calls: list[tuple[str, int]] = []

    def __call__(self, recipe: Recipe, dataset: NodeDataset, splits: list[int], *, should_stop: Callable[[], bool], **folders: Any) -> Iterator[Outcome]:  # fmt: skip
        for split in splits:
            if should_stop():
                return
            self.calls.append((recipe.hash(), split))
            val = self.score(recipe, split)
            test = self.test(math.nan if val is None else val)
            size = recipe.model.hidden_channels
            yield Outcome(split, make(val=val, test=test, split=split, parameters=size, seconds=1.0), False)  # fmt: skip


def closeness(recipe: Recipe, split: int) -> float:
    """Best at a learning rate of 0.01 and hidden_channels of 4."""
    return 1.0 - abs(math.log10(recipe.train.lr) + 2) / 4 - (recipe.model.hidden_channels == 2) / 4


def wait_until(condition: Callable[[], bool], seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def open_sweep(folder: Path, storage: str | None = None) -> Sweep:
    """A sweep that another process begins."""
    wait_until((folder / "sweep.json").exists)
    return Sweep(load_plan(folder), folder, storage)


def kill_one(folder: Path, after: int, killed: list[TrialRow], storage: str | None = None) -> None:
    """Kill a process in the middle of a trial, once some trials are finished."""
    with open_sweep(folder, storage) as sweep:
        while not killed:
            wait_until(lambda: sum(row.finished for row in sweep.queue.rows()) >= after)
            rows = sweep.queue.rows()
            running = [row for row in rows if row.state == "running" and row.worker and row.params]
            for row in running[:1]:
                process = int(row.worker.rpartition(":")[2])
                os.kill(process, signal.SIGSTOP)  # so that the trial does not end meanwhile
                if sweep.queue.rows()[row.number].state == "running":
                    os.kill(process, signal.SIGKILL)
                    killed.append(sweep.queue.rows()[row.number])
                else:
                    os.kill(process, signal.SIGCONT)
