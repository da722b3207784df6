"""Time and memory of a CSNN training step, against its own matrix products and against others.

Runs full training steps (forward, loss, backward, Adam) with the published settings of three
benchmarks on generated graphs of their sizes, in several implementations::

    python benchmarks/train_step.py --threads 1 2 --repeats 3 --json FILE

``README.md`` beside this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import math
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from settings import SETTINGS, Setting
from torch import Tensor, nn

import coopsheaf
from coopsheaf.memory import keep_freed_memory, peak_bytes
from coopsheaf.sheaves.kernels import use_kernel

# What is measured: implementations of CSNN, and PyG's GCN of the same width and depth and of the
# size that the paper compares with.
OURS = ("edgewise", "factored", "compiled")
CSNNS = ("baseline", *OURS)
GCNS = {"gcn": (None, None), "gcn-512": (512, 4)}  # width, layers
KERNELS = (*CSNNS, *GCNS)
FLOOR = "floor"
SEED = 0
WARMUP_STEPS = 2  # untimed steps of each network; one is enough for
SLOW = 5.0  # what takes more seconds than this
MEMORY_STEPS = 2  # Adam's moments exist from the second step on
TOLERANCE = 1e-3  # relative, of the loss and the gradient norm in single precision
MB = 2**20


def make_network(kernel: str, setting: Setting) -> nn.Module:
    if kernel == "baseline":
        return setting.make_baseline()
    if kernel in GCNS:
        return setting.make_gcn(*GCNS[kernel])
    return setting.make_model()


class Training:
    """A graph with features and labels, and one network and optimiser per kernel."""

    def __init__(self, name: str, kernels: tuple[str, ...], threads: int) -> None:
        torch.set_num_threads(threads)
        self.setting = SETTINGS[name]
        torch.manual_seed(SEED)
        self.graph = self.setting.make_graph()
        self.edge_index = self.graph.edge_index
        in_channels, _, _, out_channels = self.setting.sizes
        self.x = torch.randn(self.setting.num_nodes, in_channels)
        self.y = torch.randint(max(2, out_channels), (self.setting.num_nodes,))
        self.models, self.optimizers = {}, {}
        for kernel in kernels:
            torch.manual_seed(SEED)
            model = make_network(kernel, self.setting)
            # Ours trains with the fused Adam; the others with the ordinary one.
            fused = {} if kernel == "baseline" or kernel in GCNS else {"fused": True}
            adam = torch.optim.Adam(model.parameters(), **self.setting.optimizer, **fused)
            self.optimizers[kernel] = adam
            self.models[kernel] = torch.compile(model) if kernel == "compiled" else model

    def loss(self, kernel: str) -> Tensor:
        model = self.models[kernel]
        ours = kernel in OURS
        with use_kernel("edgewise" if kernel == "edgewise" else "factored"):
            out = model(self.x, self.graph if ours else self.edge_index)
        if out.shape[1] == 1:
            return F.binary_cross_entropy_with_logits(out.squeeze(1), self.y.to(out.dtype))
        return F.cross_entropy(out, self.y)

    def step(self, kernel: str) -> None:
        """One full training step."""
        self.optimizers[kernel].zero_grad(set_to_none=True)
        self.loss(kernel).backward()
        self.optimizers[kernel].step()

    def check(self) -> dict[str, tuple[float, float]]:
        """Loss and norm of its gradient of each network, before training and without dropout."""
        found = {}
        for kernel, model in self.models.items():
            model.eval()
            loss = self.loss(kernel)
            loss.backward()
            gradients = [p.grad for p in model.parameters()]
            found[kernel] = loss.item(), float(torch.nn.utils.get_total_norm(gradients))
            self.optimizers[kernel].zero_grad(set_to_none=True)
            model.train()
        return found


class Floor:
    """The matrix products of the CSNN, each on its own: forward, and both of its derivatives.

    The derivative by the input features, which nobody asks for, is left out.
    """

    def __init__(self, setting: Setting) -> None:
        self.products = []
        for k, (rows, inputs, outputs) in enumerate(setting.products()):
            matrices = torch.randn(rows, inputs), torch.randn(outputs, inputs)
            self.products.append((*matrices, torch.randn(rows, outputs), k > 0))

    def step(self) -> None:
        for x, weight, grad, for_input in self.products:
            torch.mm(x, weight.T)
            torch.mm(grad.T, x)
            if for_input:
                torch.mm(grad, weight)


class Side:
    """A fresh process that holds some networks and takes a step of one when it is told to.

    Ours train with freed memory kept (:func:`coopsheaf.keep_freed_memory`, as the library's own
    commands do), the others as an ordinary program would; the floor is on our side.
    """

    def __init__(self, graph: str, kernels: tuple[str, ...], threads: int, *, ours: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(1, mp_context=context)
        self.names = (*kernels, FLOOR) if ours else kernels
        found = call_in(self.pool, prepare, graph, kernels, threads, ours)
        self.found: dict[str, tuple[float, float]] = found

    def turn(self, name: str) -> float:
        """Seconds of one step."""
        seconds: float = call_in(self.pool, take_step, name)
        return seconds

    def close(self) -> None:
        self.pool.shutdown()


_STEPS: dict[str, Callable[[], None]] = {}  # of the process of a side


def prepare(
    graph: str, kernels: tuple[str, ...], threads: int, ours: bool
) -> dict[str, tuple[float, float]]:
    if ours:
        keep_freed_memory()
    training = Training(graph, kernels, threads)
    for kernel in kernels:
        _STEPS[kernel] = lambda kernel=kernel: training.step(kernel)
    if ours:
        _STEPS[FLOOR] = Floor(training.setting).step
    return training.check()


def take_step(name: str) -> float:
    return timed(_STEPS[name])


def measure_time(
    graph: str, kernels: tuple[str, ...], threads: int, repeats: int
) -> tuple[dict[str, float], dict[str, float], float]:
    """Median milliseconds of a step and loss without dropout per kernel; those of the products."""
    ours = tuple(kernel for kernel in kernels if kernel in OURS)
    others = tuple(kernel for kernel in kernels if kernel not in OURS)
    sides = [Side(graph, ours, threads, ours=True), Side(graph, others, threads, ours=False)]
    found = {kernel: both for side in sides for kernel, both in side.found.items()}
    check_agreement(found)
    turns = [(name, side) for side in sides for name in side.names]
    for name, side in turns:
        for _ in range(WARMUP_STEPS):
            if side.turn(name) > SLOW:
                break
    seconds: dict[str, list[float]] = {name: [] for name, _ in turns}
    for _ in range(repeats):
        for name, side in turns:
            seconds[name].append(side.turn(name))
    for side in sides:
        side.close()
    medians = {name: 1000 * statistics.median(times) for name, times in seconds.items()}
    return medians, {kernel: loss for kernel, (loss, _) in found.items()}, medians.pop(FLOOR)


def check_agreement(found: dict[str, tuple[float, float]]) -> None:
    """Implementations of CSNN have the same parameters: losses and gradients must agree."""
    for what, place in (("losses", 0), ("gradient norms", 1)):
        same = [found[kernel][place] for kernel in CSNNS if kernel in found]
        spread = max(same, default=0.0) - min(same, default=0.0)
        agree = all(map(math.isfinite, same)) and spread <= TOLERANCE * abs(max(same, default=0.0))
        if not agree:
            raise SystemExit(f"error: the kernels compute different functions: {what} {found}")


def timed(step: Callable[[], None]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure_memory(graph: str, kernel: str, threads: int) -> tuple[float, float]:
    """Peak megabytes of a step: above the prepared process, and of the whole process."""
    if kernel in OURS:
        keep_freed_memory()
    training = Training(graph, (kernel,), threads)
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


def in_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new interpreter that has not allocated anything yet."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return call_in(pool, function, *args)


def call_in(pool: ProcessPoolExecutor, function: Callable[..., Any], *args: Any) -> Any:
    try:
        return pool.submit(function, *args).result()
    except BrokenProcessPool:
        call = f"{function.__name__}{args}"
        raise SystemExit(f"error: the process of {call} died: out of memory?") from None


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One record per graph, number of threads and kernel."""
    records = []
    for graph, threads in itertools.product(args.graphs, args.threads):
        memory = {kernel: (float("nan"), float("nan")) for kernel in args.kernels}
        for kernel in args.kernels if args.memory else ():
            report(f"{graph}, {threads} thread(s): memory of {kernel} ...")
            memory[kernel] = in_fresh_process(measure_memory, graph, kernel, threads)
        report(f"{graph}, {threads} thread(s): time of {', '.join(args.kernels)} ...")
        step_ms, losses, floor_ms = measure_time(graph, args.kernels, threads, args.repeats)
        for kernel in args.kernels:
            record: dict[str, Any] = {"graph": graph, "kernel": kernel, "threads": threads}
            record["step_ms"], record["floor_ms"] = round(step_ms[kernel], 1), round(floor_ms, 1)
            if args.memory:
                record["peak_mb"], record["total_mb"] = (round(mb, 1) for mb in memory[kernel])
            records.append(record | {"loss": round(losses[kernel], 6)})
            report(f"    {json.dumps(records[-1])}")  # a run cut short is not lost
    return records


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# (kernel, other kernel or None for the floor, quantity) and, per graph, what the ratio must be:
# at least x ("+"), at most x ("-").
TARGETS: list[tuple[str, str | None, str, dict[str, tuple[str, float]]]] = [
    ("factored", None, "step_ms", {"minesweeper": ("-", 2.5), "roman-empire": ("-", 2.5)}),
    ("compiled", None, "step_ms", {"minesweeper": ("-", 2.0), "roman-empire": ("-", 2.0)}),
    ("baseline", "factored", "step_ms",
     {"tolokers": ("+", 15), "minesweeper": ("+", 3.5), "roman-empire": ("+", 2.5)}),
    ("baseline", "factored", "peak_mb",
     {"tolokers": ("+", 5), "minesweeper": ("+", 2), "roman-empire": ("+", 1.5)}),
    ("factored", "gcn", "step_ms",
     {"tolokers": ("-", 1), "minesweeper": ("-", 3.5), "roman-empire": ("-", 3.5)}),
    ("gcn-512", "factored", "step_ms",
     {"tolokers": ("+", 1), "minesweeper": ("+", 1), "roman-empire": ("+", 1)}),
]  # fmt: skip


def format_tables(records: list[dict[str, Any]]) -> str:
    """The records in aligned columns, then the ratios that were aimed at."""
    rows = [("graph", "threads", "kernel", "step ms", "/ floor", "peak MB", "total", "loss")]
    for r in records:
        memory = [f"{r[key]:,.0f}" if key in r else "-" for key in ("peak_mb", "total_mb")]
        left = (r["graph"], str(r["threads"]), r["kernel"], f"{r['step_ms']:,.0f}")
        rows.append((*left, f"{r['step_ms'] / r['floor_ms']:.2f}", *memory, f"{r['loss']:.4f}"))
    ratios = [("graph", "threads", "ratio", "is", "target", "")]
    found = {(r["graph"], r["threads"], r["kernel"]): r for r in records}
    for graph, threads in dict.fromkeys((r["graph"], r["threads"]) for r in records):
        for kernel, other, key, wanted in TARGETS:
            a, b = (found.get((graph, threads, name), {}) for name in (kernel, other or kernel))
            value, against = a.get(key), b.get("floor_ms" if other is None else key)
            if graph not in wanted or value is None or against is None:
                continue
            sign, target = wanted[graph]
            ratio = value / against
            met = ratio >= target if sign == "+" else ratio <= target
            name = f"{kernel} / {other or 'floor'}, {'time' if key == 'step_ms' else 'memory'}"
            goal = f"{'at least' if sign == '+' else 'at most'} {target:g}"
            verdict = "met" if met else "missed"
            ratios.append((graph, str(threads), name, f"{ratio:.2f}", goal, verdict))
    return f"{aligned(rows, '<><>>>>>')}\n\n{aligned(ratios, '<><>><')}"


def aligned(rows: list[tuple[str, ...]], sides: str) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [zip(row, sides, widths, strict=True) for row in rows]
    lines = ["  ".join(f"{text:{a}{w}}" for text, a, w in row) for row in cells]
    return "\n".join(line.rstrip() for line in lines)


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """What :func:`write_json_lines` wrote."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_json_lines(path: Path, records: list[dict[str, Any]]) -> None:
    """Write one JSON object per line; the file appears whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text("".join(json.dumps(record) + "\n" for record in records))
    os.replace(draft, path)


def positive(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a positive integer; got {text!r}")
    return int(text)


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, cores = parser.add_argument, os.cpu_count() or 1
    add("--graphs", nargs="+", choices=SETTINGS, default=[*SETTINGS], help="default: all")
    add("--kernels", nargs="+", choices=KERNELS, default=KERNELS, help="default: all")
    add("--threads", nargs="+", type=positive, default=[cores], help="default: all cores")
    add("--repeats", type=positive, default=5, help="timed steps per kernel; default: 5")
    add("--no-memory", dest="memory", action="store_false", help="measure time alone")
    add("--json", type=Path, metavar="FILE", help="also write the results as JSON Lines")
    args = parser.parse_args()
    for name in ("graphs", "kernels", "threads"):
        setattr(args, name, tuple(dict.fromkeys(getattr(args, name))))
    # Now rather than after minutes of measuring.
    if args.json is not None and (args.json.is_dir() or not args.json.parent.is_dir()):
        parser.error(f"argument --json: must be a file in an existing directory; got {args.json}")
    return args


def main() -> None:
    args = parse_args()
    records = measure(args)
    print(
        f"coopsheaf {coopsheaf.__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, repeats {args.repeats}\n"
    )
    print(format_tables(records))
    if args.json is not None:
        write_json_lines(args.json, records)


if __name__ == "__main__":
    main()
