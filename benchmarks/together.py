"""How much faster many runs of one graph are in one pass than one by one.

Takes turns in one process between an epoch of R runs alone, each with its own network, step and
evaluation, and an epoch of the same R runs in one pass, in processor time::

    python benchmarks/together.py --data csnn/texas:10 csnn/amherst41:5 mlp/texas:10 --epochs 30
    python benchmarks/together.py --scores csnn/texas --seeds 20

The second trains whole runs of many seeds both ways and compares their scores. ``README.md`` beside
this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from shared import aligned, positive, report, write_json_lines

from coopsheaf.data.dataset import PARTS, NodeDataset
from coopsheaf.memory import keep_freed_memory
from coopsheaf.sheaves.kernels import describe_kernel
from coopsheaf.train.beforehand import task_of
from coopsheaf.train.data import load_data
from coopsheaf.train.engine import Plain, make_fabric
from coopsheaf.train.evaluation import evaluate_together
from coopsheaf.train.loop import _make_optimizer, train_epoch
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import recipe_for
from coopsheaf.train.run import run_split
from coopsheaf.train.together.loop import Pass, Rows
from coopsheaf.train.together.run import Job, make_stack, members_of, run_together
from coopsheaf.train.world import World

WARMUP = 3


class Alone:
    """R runs, one after the other: the steps and evaluations of the ordinary loop."""

    def __init__(self, jobs: list[Job], dataset: NodeDataset) -> None:
        recipe = jobs[0].recipe
        self.config, self.task = recipe.train, task_of(recipe.train, dataset)
        self.world = World(make_fabric(self.config, "cpu"))
        self.members = members_of(jobs, dataset)
        self.optimizers = [_make_optimizer(member.network, self.config) for member in self.members]

    def epoch(self, number: int) -> None:
        for member, optimizer in zip(self.members, self.optimizers, strict=True):
            given = member.network, member.feed, self.task
            train_epoch(*given, optimizer, self.world, self.config, None, number)
            evaluate_together(*given, self.world, PARTS)


class Together:
    """The same runs in one pass."""

    def __init__(self, jobs: list[Job], dataset: NodeDataset) -> None:
        recipe = jobs[0].recipe
        task, self.members = task_of(recipe.train, dataset), members_of(jobs, dataset)
        x, self.stack = make_stack(recipe, task, self.members)
        self.rows, self.work = (
            Rows(self.members, task, self.stack),
            Pass(self.members, task, self.stack, x, Plain(recipe.train.precision)),
        )
        self.generators = [torch.Generator().manual_seed(job.recipe.train.seed) for job in jobs]

    def epoch(self, number: int) -> None:
        self.work.train(self.generators)
        self.rows.step()
        self.work.evaluate(self.generators)


def measure(name: str, runs: int, epochs: int) -> dict[str, Any]:
    """Processor time of an epoch of all runs, alone and together: medians of turns."""
    recipe, dataset = find(name)
    jobs = [
        Job(seeded(recipe, k // dataset.num_splits), k % dataset.num_splits) for k in range(runs)
    ]
    ways = {"alone": Alone(jobs, dataset), "together": Together(jobs, dataset)}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(1, WARMUP + epochs + 1):
        for way, work in ways.items():
            start = time.process_time()
            work.epoch(number)
            taken[way].append(time.process_time() - start)
    alone, together = ([1000 * t for t in taken[way][WARMUP:]] for way in ways)
    ratio = statistics.median(a / b for a, b in zip(alone, together, strict=True))
    return {
        "name": name,
        "runs": runs,
        "epochs": epochs,
        "alone_ms": statistics.median(alone),
        "together_ms": statistics.median(together),
        "ratio": ratio,
        "kernel": describe_kernel(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def compare_scores(name: str, seeds: int) -> dict[str, Any]:
    """Scores of whole runs of many seeds on the first split, alone and together."""
    recipe, dataset = find(name)
    recipes = [seeded(recipe, k) for k in range(seeds)]
    ended = run_together([Job(one, 0) for one in recipes], dataset)
    assert ended is not None
    found = {"together": [one.result.scores for one in ended], "alone": []}
    for k, one in enumerate(recipes):
        found["alone"].append(run_split(one, dataset, 0)[1].scores)
        report(f"{name}: seed {k + 1} of {seeds} alone")
    line: dict[str, Any] = {"name": name, "seeds": seeds}
    for part in ("val", "test"):
        a, b = ([scores[part] for scores in found[way]] for way in ("alone", "together"))
        error = math.sqrt((statistics.variance(a) + statistics.variance(b)) / seeds)
        line[part] = {
            "alone": [statistics.fmean(a), statistics.stdev(a)],
            "together": [statistics.fmean(b), statistics.stdev(b)],
            "difference": statistics.fmean(b) - statistics.fmean(a),
            "standard_error": error,
        }
    return line


def find(name: str) -> tuple[Recipe, Any]:
    recipe = recipe_for(*name.split("/", 1))
    return recipe, load_data(recipe.data, None)


def seeded(recipe: Recipe, more: int) -> Recipe:
    return replace(recipe, train=replace(recipe.train, seed=recipe.train.seed + more))


def table(lines: list[dict[str, Any]]) -> str:
    head = ("model/dataset", "runs", "alone, ms", "together, ms", "ratio")
    rows = [
        (
            line["name"],
            str(line["runs"]),
            f"{line['alone_ms']:.1f}",
            f"{line['together_ms']:.1f}",
            f"{line['ratio']:.1f}",
        )
        for line in lines
    ]
    return aligned([head, *rows], "<>>>>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=[], metavar="MODEL/DATASET:RUNS")
    parser.add_argument("--epochs", type=positive, default=30)
    parser.add_argument("--scores", nargs="*", default=[], metavar="MODEL/DATASET")
    parser.add_argument("--seeds", type=positive, default=20)
    parser.add_argument("--json", type=Path, help="write the numbers there, a line each")
    args = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    lines = []
    for item in args.data:
        name, _, runs = item.partition(":")
        lines.append(measure(name, int(runs or 10), args.epochs))
        report(table(lines[-1:]).splitlines()[1])
    if lines:
        print(table(lines))
    for name in args.scores:
        lines.append(compare_scores(name, args.seeds))
        print(lines[-1])
    if args.json is not None:
        write_json_lines(args.json, lines)


if __name__ == "__main__":
    main()
