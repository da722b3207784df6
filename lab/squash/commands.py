"""``python -m lab squash`` and ``python -m lab noisy-path``: the over-squashing experiments."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from coopsheaf.checks import check_choice
from coopsheaf.cli import show
from coopsheaf.cli.stopping import stoppable
from lab import args
from lab.documents import fill_files
from lab.squash.records import (
    HEAD,
    MAX_DEPTH,
    PLACE,
    Budget,
    SquashPoint,
    depth_table,
    read_squash_records,
    table_rows,
)
from lab.squash.settings import (
    DIRECTIONS,
    LEARNERS,
    SEMANTICS,
    TREE_MODELS,
    TreeModel,
)


def squash(command: args.Squash) -> int:
    points = _points(command)
    budget = _budget(command)
    _check_figure(command.figure)
    if not command.report:
        done = _run(command, points, budget)
        if done < len(points):
            sys.stderr.write("stopped; the same command continues where it was\n")
            return 130
    records = read_squash_records(command.results)
    if not records:
        raise ValueError(f"{command.results}: holds no points yet; run without --report first")
    show.table(HEAD, table_rows(records), "NeighborsMatch: best training accuracy by depth r")
    if command.figure is not None:
        from coopsheaf.figures.influence import save
        from lab.squash.figures import depth_figure

        show.say(f"figure: {save(depth_figure(records), command.figure)}")
    if command.document is not None:
        _fill(command.document, PLACE, depth_table(records))
    return 0


def _fill(document: Path, place: str, table: str) -> None:
    fill_files([document], {place: table})
    show.say(f"table: {document}")


def _run(command: args.Squash, points: list[SquashPoint], budget: Budget) -> int:
    from coopsheaf.cli.training import set_threads
    from lab.squash.runner import run_points

    set_threads(command.threads)
    done = 0
    with stoppable() as stopped:
        for outcome in run_points(
            points,
            budget,
            results=command.results,
            work=command.work,
            progress=_progress,
            should_stop=stopped,
        ):
            record, done = outcome.record, done + 1
            state = "recorded already" if outcome.skipped else f"{record.cpu_seconds:.0f} CPU s"
            show.say(
                f"{record.tree_model.label}, r = {record.depth}: train {record.train_best:.4f}  "
                f"test {record.test:.4f}  {record.stopped} ({state})"
            )
    return done


def _points(command: args.Squash) -> list[SquashPoint]:
    names = command.models or tuple(TREE_MODELS)
    for what, wanted, known in (
        ("--models", names, TREE_MODELS),
        ("--directions", command.directions, DIRECTIONS),
        ("--learners", command.learners, LEARNERS),
        ("--semantics", command.semantics, SEMANTICS),
    ):
        if not wanted:
            raise ValueError(f"{what} must name at least one of {', '.join(known)}")
        for name in wanted:
            check_choice(what, name, known)
    models: dict[TreeModel, None] = {}
    for name in names:
        if name != "csnn":
            models[TreeModel(name)] = None
            continue
        for parts in product(command.directions, command.learners, command.semantics):
            models[TreeModel(name, *parts)] = None
    depths = _parse_depths(command.depths)
    return [SquashPoint(model, depth, command.seed) for depth in depths for model in models]


def _parse_depths(text: str) -> list[int]:
    depths: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"--depths must look like 3, 2-5 or 2,4; got {text!r}")
        low, high = int(first), int(last or first)
        if not 2 <= low <= high <= MAX_DEPTH:
            raise ValueError(
                f"--depths must go from low to high, between 2 and {MAX_DEPTH}; got {text!r}"
            )
        depths |= dict.fromkeys(range(low, high + 1))
    return list(depths)


def _budget(command: args.Squash) -> Budget:
    check_choice("--budget", command.budget, {"short": 0, "published": 0})
    minutes = command.minutes
    if minutes is None and command.budget == "short":
        minutes = Budget().minutes
    return Budget(command.budget, minutes)


def _check_figure(path: Any) -> None:
    """Before the work, not after it."""
    if path is None:
        return
    if find_spec("matplotlib") is None:
        raise ValueError("--figure needs matplotlib: pip install 'coopsheaf[viz]'")
    if path.suffix.lower() not in (".svg", ".pdf", ".png"):
        raise ValueError(f"--figure must end in .svg, .pdf or .png; got {path.name!r}")


@contextmanager
def _progress(point: SquashPoint) -> Iterator[Callable[[Any], None]]:
    """A live line on a terminal; now and then a plain one elsewhere."""
    live = sys.stderr.isatty()
    last = [time.monotonic() - 8.0]  # the first line after two seconds
    label = f"{point.model.label}, r = {point.depth}"

    def report(state: Any) -> None:
        now = time.monotonic()
        if now - last[0] < (0.2 if live else 10.0):
            return
        last[0] = now
        cap = "" if state.cap_seconds is None else f" of {state.cap_seconds:.0f}"
        line = (
            f"{label}: block {state.block + 1}/{state.blocks}, step {state.step}/{state.steps}  "
            f"accuracy {state.accuracy:.4f}  best {state.best:.4f}  "
            f"{state.cpu_seconds:.0f}{cap} CPU s"
        )
        sys.stderr.write(f"\r\x1b[K{line}" if live else line + "\n")
        sys.stderr.flush()

    try:
        yield report
    finally:
        if live:
            sys.stderr.write("\r\x1b[K")


@dataclass
class _Ticker:
    """Progress of the noisy path."""

    seed: int
    steps: int
    last: float = 0.0

    def __call__(self, step: int, loss: float) -> None:
        if time.monotonic() - self.last >= 5.0:
            self.last = time.monotonic()
            sys.stderr.write(f"seed {self.seed}: step {step}/{self.steps}  loss {loss:.4f}\n")


def noisy_path(command: args.NoisyPath) -> int:
    if command.seeds < 1:
        raise ValueError(f"--seeds must be at least 1; got {command.seeds}")
    check_choice("--learner", command.learner, LEARNERS)
    check_choice("--semantics", command.semantics, SEMANTICS)
    _check_figure(command.figure)
    from coopsheaf.cli.training import set_threads
    from lab.noisy_path import (
        PATH_PLACE,
        SOURCE,
        PathConfig,
        append_path_result,
        path_table,
        read_path_results,
        run_path,
    )
    from lab.squash.runner import provenance

    set_threads(command.threads)
    config = PathConfig(
        hidden_channels=command.hidden_channels,
        num_values=command.values,
        learner=command.learner,
        semantics=command.semantics,
        steps=command.steps,
    )
    known = {r.seed: r for r in read_path_results(command.results) if r.config == config}
    results = []
    with stoppable() as stopped:
        for seed in range(command.seeds):
            result = known.get(seed)
            if result is None:
                result = run_path(
                    config, seed, report=_Ticker(seed, config.steps), should_stop=stopped
                )
                if result is None:
                    sys.stderr.write("stopped; finished seeds are recorded\n")
                    return 130
                append_path_result(command.results, result, provenance())
            results.append(result)
    for title, rows in (
        (
            "Significance of each node for node 0 after the last layer",
            [(r, r.significance[-1][0], r.ratio) for r in results],
        ),
        (
            "The same from values to logits",
            [(r, r.at_output, r.output_ratio) for r in results],
        ),
        (
            "How far the logits move when the value of a node is swapped, maps learned anew",
            [(r, r.swapped, r.swap_ratio) for r in results],
        ),
    ):
        head = ["seed", "accuracy", *(f"node {j}" for j in range(SOURCE + 1)), "3 : max(1, 2)"]
        cells = [
            [
                str(result.seed),
                f"{result.accuracy:.3f}",
                *(f"{value:.3g}" for value in at_target),
                f"{ratio:.2f}",
            ]
            for result, at_target, ratio in rows
        ]
        show.table(head, cells, title)
        enough = sum(ratio >= 10 for _, _, ratio in rows)
        show.say(f"node 3 outweighs nodes 1 and 2 ten times in {enough} of {len(rows)} seeds")
    if command.figure is not None:
        from coopsheaf.figures.influence import save
        from lab.squash.figures import path_figure

        show.say(f"figure: {save(path_figure(results[0]), command.figure)}")
    if command.document is not None:
        _fill(command.document, PATH_PLACE, path_table(read_path_results(command.results)))
    return 0
