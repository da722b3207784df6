"""Time and memory of a CSNN training step, against its own matrix products and against others.

Runs full training steps (forward, loss, backward, Adam) with published settings on generated graphs
of the sizes of benchmarks, in several implementations::

    python benchmarks/train_step.py --threads 1 2 --repeats 3 --json FILE

All sides keep freed memory for the next step (:func:`coopsheaf.keep_freed_memory`);
``--allocator plain`` measures all of them without. ``--cpu-time`` counts processor time, for busy
machines. ``--table FILE ...`` prints the tables of earlier runs. ``README.md`` beside this file has
the protocol and the results.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from settings import SETTINGS as SETTINGS
from shared import (
    MB,
    call_in,
    fresh_process,
    in_fresh_process,
    positive,
    read_json_lines,
    report,
    write_json_lines,
)
from shared import SEED as SEED  # for the other programs here
from shared import aligned as aligned
from step_tables import format_tables
from steps import (
    CSNNS,
    FLOOR,
    KERNELS,
    OURS,
    Training,
    drop_tiny_numbers,
    has_native,
    keep_memory,
    make_steps,
    versions,
    why_not,
)

import coopsheaf
from coopsheaf.memory import peak_bytes
from coopsheaf.train.runner import current_commit

WARMUP_STEPS = 2  # untimed steps of each network; one is enough for
SLOW = 5.0  # what takes more seconds than this
MEMORY_STEPS = 2  # Adam's moments exist from the second step on
MEMORY_RUNS = 3  # where freed pieces lie differs from process to process by a tenth
TOLERANCE = 1e-3  # relative, of the loss and the gradient norm in single precision
ROUNDED = 3e-2  # the same with products in bfloat16, which has 8 bits
SHORT = 0.05  # of steps below so many seconds several make a turn


class Side:
    """A fresh process that holds some networks and takes a step of one when it is told to."""

    def __init__(
        self, graph: str, kernels: tuple[str, ...], args: argparse.Namespace, threads: int
    ) -> None:
        self.pool = fresh_process()
        ours = kernels == () or kernels[0] in OURS
        self.names = (*kernels, FLOOR) if ours else kernels
        options = (args.allocator, args.clock)
        found = call_in(self.pool, prepare, graph, kernels, threads, ours, *options)
        self.kept: bool = found[0]
        self.found: dict[str, tuple[float, float]] = found[1]

    def turn(self, name: str) -> float:
        """Seconds of one step."""
        seconds: float = call_in(self.pool, take_step, name)
        return seconds

    def close(self) -> None:
        self.pool.shutdown()


_STEPS: dict[str, Callable[[], None]] = {}  # of the process of a side,
_CLOCK: list[Callable[[], float]] = []  # and what it looks at


def prepare(
    graph: str, kernels: tuple[str, ...], threads: int, floor: bool, allocator: str, clock: str
) -> tuple[bool, dict[str, tuple[float, float]]]:
    kept = keep_memory(allocator)
    _CLOCK.append(time.process_time if clock == "cpu" else time.perf_counter)
    steps, found = make_steps(graph, kernels, threads, floor=floor)
    drop_tiny_numbers()
    _STEPS.update(steps)
    return kept, found


def take_step(name: str) -> float:
    """Seconds of a step; of short ones the mean of several."""
    clock, step, count = _CLOCK[0], _STEPS[name], 0
    start = clock()
    while count == 0 or clock() - start < SHORT:
        step()
        count += 1
    return (clock() - start) / count


def measure_time(
    graph: str, kernels: tuple[str, ...], threads: int, args: argparse.Namespace
) -> tuple[dict[str, float], dict[str, float], bool]:
    """Median milliseconds of a step of each kernel and of the floor, losses without dropout."""
    ours = tuple(kernel for kernel in kernels if kernel in OURS)
    others = tuple(kernel for kernel in kernels if kernel not in OURS)
    sides = [Side(graph, some, args, threads) for some in (ours, others)]
    found = {kernel: both for side in sides for kernel, both in side.found.items()}
    check_agreement(found)
    turns = [(name, side) for side in sides for name in side.names]
    for name, side in turns:
        for _ in range(WARMUP_STEPS):
            if side.turn(name) > SLOW:
                break
    seconds: dict[str, list[float]] = {name: [] for name, _ in turns}
    for _ in range(args.repeats):
        for name, side in turns:
            seconds[name].append(side.turn(name))
    for side in sides:
        side.close()
    medians = {name: 1000 * statistics.median(times) for name, times in seconds.items()}
    losses = {kernel: loss for kernel, (loss, _) in found.items()}
    return medians, losses, all(side.kept for side in sides)


def check_agreement(found: dict[str, tuple[float, float]]) -> None:
    """Implementations of CSNN have the same parameters: losses and gradients must agree."""
    same = {kernel: found[kernel] for kernel in CSNNS if kernel in found}
    for what, place in (("losses", 0), ("gradient norms", 1)):
        values = [both[place] for kernel, both in same.items() if kernel != "bf16"]
        middle = statistics.median(values) if values else math.nan
        for kernel, both in same.items():
            value, off = both[place], ROUNDED if kernel == "bf16" else TOLERANCE
            far = bool(values) and not abs(value - middle) <= off * abs(middle)
            if far or not math.isfinite(value):
                raise SystemExit(f"error: the kernels compute different functions: {what} {found}")


def measure_memory(graph: str, kernel: str, threads: int, allocator: str) -> tuple[float, float]:
    """Peak megabytes of a step: above the prepared process, and of the whole process."""
    keep_memory(allocator)
    training = Training(graph, (kernel,), threads)
    drop_tiny_numbers()
    if kernel == "compiled":  # what compiling takes is not the step's
        training.step(kernel)
        training.optimizers[kernel].zero_grad(set_to_none=True)
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):  # Linux can forget the peak of the preparation; others cannot
        Path("/proc/self/clear_refs").write_text("5")
    before = peak_bytes()
    for _ in range(MEMORY_STEPS):
        training.step(kernel)
    peak = peak_bytes()
    return (peak - before) / MB, peak / MB


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One record per graph, number of threads and kernel."""
    records: list[dict[str, Any]] = []
    for graph, threads in itertools.product(args.graphs, args.threads):
        memory = {}
        for kernel in args.kernels if args.memory else ():
            report(f"{graph}, {threads} thread(s): memory of {kernel} ...")
            options = (graph, kernel, threads, args.allocator)
            found = [in_fresh_process(measure_memory, *options) for _ in range(MEMORY_RUNS)]
            memory[kernel] = sorted(found)[MEMORY_RUNS // 2]
        report(f"{graph}, {threads} thread(s): time of {', '.join(args.kernels)} ...")
        step_ms, losses, kept = measure_time(graph, args.kernels, threads, args)
        for kernel in args.kernels:
            record: dict[str, Any] = {"graph": graph, "kernel": kernel, "threads": threads}
            record["allocator"], record["clock"] = "kept" if kept else "plain", args.clock
            record["step_ms"] = round(step_ms[kernel], 2)
            record["floor_ms"] = round(step_ms[FLOOR], 2)
            if kernel in memory:
                record["peak_mb"], record["total_mb"] = (round(mb, 1) for mb in memory[kernel])
            if kernel == "bf16":
                record["by"] = "native" if has_native() else "factored"
            record |= {"loss": round(losses[kernel], 6), "versions": versions(kernel)}
            record["commit"] = current_commit()  # of the sources that were imported
            records.append(record)
            report(f"    {json.dumps(record)}")
        if args.json is not None:
            write_json_lines(args.json, records)  # a run cut short is not lost
    return records


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, cores = parser.add_argument, os.cpu_count() or 1
    add("--graphs", nargs="+", choices=SETTINGS, default=[*SETTINGS], help="default: all")
    add("--kernels", nargs="+", choices=KERNELS, help="default: all that can run here")
    add("--threads", nargs="+", type=positive, default=[cores], help="default: all cores")
    add("--repeats", type=positive, default=5, help="timed steps per kernel; default: 5")
    add("--allocator", choices=("kept", "plain"), default="kept", help="of all sides")
    add("--cpu-time", dest="clock", action="store_const", const="cpu", default="wall",
        help="processor time of the stepping process; with one thread")  # fmt: skip
    add("--no-memory", dest="memory", action="store_false", help="measure time alone")
    add("--json", type=Path, metavar="FILE", help="also write the results as JSON Lines")
    add("--table", type=Path, nargs="+", metavar="FILE", help="only print tables of earlier runs")
    args = parser.parse_args()
    if args.clock == "cpu" and args.table is None and set(args.threads) != {1}:
        parser.error("argument --cpu-time: adds up all threads; it goes with --threads 1")
    wanted, args.kernels = args.kernels or KERNELS, []
    for kernel in wanted if args.table is None else ():
        reason = why_not(kernel)
        if reason is None:
            args.kernels.append(kernel)
        else:
            report(f"{kernel} is left out: {reason}")
    if not args.kernels and args.table is None:
        parser.error("argument --kernels: none of them can run here")
    for name in ("graphs", "kernels", "threads"):
        setattr(args, name, tuple(dict.fromkeys(getattr(args, name))))
    # Now rather than after minutes of measuring.
    if args.json is not None and (args.json.is_dir() or not args.json.parent.is_dir()):
        parser.error(f"argument --json: must be a file in an existing directory; got {args.json}")
    return args


def main() -> None:
    args = parse_args()
    if args.table is not None:
        print(format_tables([r for path in args.table for r in read_json_lines(path)]))
        return
    records = measure(args)
    print(
        f"coopsheaf {coopsheaf.__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, repeats {args.repeats}, "
        f"sources {Path(coopsheaf.__file__).parent}\n"
    )
    print(format_tables(records))


if __name__ == "__main__":
    main()
