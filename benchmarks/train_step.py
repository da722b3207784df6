"""Time and memory of a CSNN training step, with and without a message per edge.

Runs full training steps (forward, loss, backward, Adam) with the published settings of three
benchmarks on generated graphs of their sizes, once per kernel of the diffusion operator::

    python benchmarks/train_step.py --threads 1 2 --repeats 3 --json FILE

``README.md`` beside this file has the protocol and the results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import coopsheaf
from coopsheaf.kernels import use_kernel
from coopsheaf.nn import MLPLearner, ProjectedSAGELearner

KERNELS = ("edgewise", "factored")
SEED = 0
WARMUP_STEPS = 2  # timing starts after these; the first one is compared between the kernels
MEMORY_STEPS = 2  # Adam's moments exist from the second step on
TOLERANCE = 1e-3  # relative, of the loss and the gradient norm in single precision
MB = 2**20


def skewed_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """Each pair (u, v) drawn with odds w_u w_v for log-normal weights w, ``(2, num_pairs)``.

    The spread and the cap give about the degrees of tolokers (median 30, mean 88, largest 2,138);
    pairing every node once with a drawn partner leaves hardly anybody isolated, as there.
    """
    quantiles = (torch.arange(num_nodes, dtype=torch.float64) + 0.5) / num_nodes
    weights = (1.65 * torch.special.ndtri(quantiles)).clamp(max=4.9).exp()
    weights = weights[torch.randperm(num_nodes)]

    def draw(count: int) -> Tensor:
        return torch.multinomial(weights, 2 * count, replacement=True).view(2, count)

    partners = torch.multinomial(weights, num_nodes, replacement=True)
    return fill_up(torch.stack([torch.arange(num_nodes), partners]), draw, num_nodes, num_pairs)


def grid_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """A square grid in which every cell touches the eight around it, ``(2, num_pairs)``."""
    cell = torch.arange(num_nodes).view(math.isqrt(num_nodes), -1)
    right = cell[:, :-1], cell[:, 1:]
    down = cell[:-1], cell[1:]
    diagonal = cell[:-1, :-1], cell[1:, 1:]
    other_diagonal = cell[:-1, 1:], cell[1:, :-1]
    sides = zip(right, down, diagonal, other_diagonal, strict=True)
    return torch.stack([torch.cat([part.flatten() for part in side]) for side in sides])


def text_pairs(num_nodes: int, num_pairs: int) -> Tensor:
    """A chain of words, and links between words a few places apart, ``(2, num_pairs)``."""

    def draw(count: int) -> Tensor:
        first = torch.randint(num_nodes, (count,))
        gap = 1 + torch.empty(count).geometric_(0.25).long()
        return torch.stack([first, (first + gap).clamp(max=num_nodes - 1)])

    words = torch.arange(num_nodes)
    return fill_up(torch.stack([words[:-1], words[1:]]), draw, num_nodes, num_pairs)


def fill_up(pairs: Tensor, draw: Callable[[int], Tensor], num_nodes: int, total: int) -> Tensor:
    """Draw until there are ``total`` distinct pairs u < v: no loops, no pair twice."""
    codes = torch.empty(0, dtype=torch.int64)
    while True:
        low, high = pairs.amin(0), pairs.amax(0)
        codes = torch.cat([codes, (low * num_nodes + high)[low < high]]).unique()
        if codes.numel() == total:
            return torch.stack([codes // num_nodes, codes % num_nodes])
        pairs = draw(total - codes.numel())


@dataclass(frozen=True)
class Setting:
    """A graph's size and the hyper-parameters published for it."""

    pairs: Callable[[int, int], Tensor]  # generates the edges
    num_nodes: int
    num_pairs: int
    both_ways: bool
    sizes: tuple[int, int, int, int]  # features, channels, layers, outputs
    model: dict[str, Any]
    optimizer: dict[str, float]

    def make_graph(self) -> coopsheaf.Graph:
        pairs = self.pairs(self.num_nodes, self.num_pairs)
        assert pairs.shape == (2, self.num_pairs)
        edge_index = torch.cat([pairs, pairs.flip(0)], dim=1) if self.both_ways else pairs
        return coopsheaf.Graph(edge_index, self.num_nodes)

    def make_model(self) -> coopsheaf.CSNN:
        return coopsheaf.CSNN(*self.sizes, input_dropout=0.2, dropout=0.2, **self.model)


SAGE_5X64, SAGE_3X32 = ProjectedSAGELearner(64, 5), ProjectedSAGELearner(32, 3)

SETTINGS = {
    "tolokers": Setting(
        skewed_pairs, num_nodes=11_758, num_pairs=519_000, both_ways=True, sizes=(10, 32, 2, 1),
        model={"stalk_dim": 3, "learner": MLPLearner(32), "left_weights": False},
        optimizer={"lr": 0.02, "weight_decay": 1e-8},
    ),
    "minesweeper": Setting(
        grid_pairs, num_nodes=10_000, num_pairs=39_402, both_ways=True, sizes=(7, 32, 5, 1),
        model={"stalk_dim": 3, "learner": SAGE_5X64, "left_weights": False, "norm": "layer"},
        optimizer={"lr": 0.002, "weight_decay": 1e-7},
    ),
    "roman-empire": Setting(
        text_pairs, num_nodes=22_662, num_pairs=32_927, both_ways=False, sizes=(300, 32, 5, 18),
        model={"stalk_dim": 4, "learner": SAGE_3X32},
        optimizer={"lr": 0.02, "weight_decay": 1e-7},
    ),
}  # fmt: skip


class Training:
    """A graph with features and labels, and one model and optimiser per kernel, all alike."""

    def __init__(self, name: str, kernels: tuple[str, ...], threads: int) -> None:
        torch.set_num_threads(threads)
        setting = SETTINGS[name]
        torch.manual_seed(SEED)
        self.graph = setting.make_graph()
        in_channels, _, _, out_channels = setting.sizes
        self.x = torch.randn(setting.num_nodes, in_channels)
        self.y = torch.randint(max(2, out_channels), (setting.num_nodes,))
        self.models, self.optimizers = {}, {}
        for kernel in kernels:
            torch.manual_seed(SEED)
            model = self.models[kernel] = setting.make_model()
            self.optimizers[kernel] = torch.optim.Adam(model.parameters(), **setting.optimizer)

    def step(self, kernel: str) -> float:
        """One full training step; returns the loss."""
        model, optimizer = self.models[kernel], self.optimizers[kernel]
        optimizer.zero_grad(set_to_none=True)
        with use_kernel(kernel):
            out = model(self.x, self.graph)
            if out.shape[1] == 1:
                y = self.y.to(out.dtype)
                loss = F.binary_cross_entropy_with_logits(out.squeeze(1), y)
            else:
                loss = F.cross_entropy(out, self.y)
            loss.backward()
        optimizer.step()
        return loss.item()

    def first_steps(self) -> dict[str, float]:
        """The first step of each kernel, with the same dropout; raises if they do not agree."""
        losses, norms = {}, {}
        for kernel, model in self.models.items():
            torch.manual_seed(SEED)
            losses[kernel] = self.step(kernel)
            norms[kernel] = float(torch.nn.utils.get_total_norm(p.grad for p in model.parameters()))
        for what, values in (("losses", losses), ("gradient norms", norms)):
            low, high = min(values.values()), max(values.values())
            if not high - low <= TOLERANCE * abs(high):
                raise RuntimeError(f"the kernels compute different functions: {what} {values}")
        return losses


def measure_time(
    graph: str, kernels: tuple[str, ...], threads: int, repeats: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Median milliseconds of a step and loss of the first step, per kernel."""
    training = Training(graph, kernels, threads)
    losses = training.first_steps()
    for _ in range(WARMUP_STEPS - 1):
        for kernel in kernels:
            training.step(kernel)
    seconds: dict[str, list[float]] = {kernel: [] for kernel in kernels}
    for _ in range(repeats):
        for kernel in kernels:
            start = time.perf_counter()
            training.step(kernel)
            seconds[kernel].append(time.perf_counter() - start)
    return {kernel: 1000 * statistics.median(times) for kernel, times in seconds.items()}, losses


def measure_memory(graph: str, kernel: str, threads: int) -> tuple[float, float]:
    """Peak megabytes of a step: above the prepared process, and of the whole process."""
    training = Training(graph, (kernel,), threads)
    with suppress(OSError):  # Linux can forget the peak of the preparation; others cannot
        Path("/proc/self/clear_refs").write_text("5")
    before = peak_bytes()
    for _ in range(MEMORY_STEPS):
        training.step(kernel)
    peak = peak_bytes()
    return (peak - before) / MB, peak / MB


def peak_bytes() -> int:
    """Peak resident memory of this process.

    Linux's VmHWM starts anew with every program; ``ru_maxrss`` may come from the parent process.
    """
    status = Path("/proc/self/status")
    line = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    if line is not None:
        return 1024 * int(line[1])
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def in_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a new interpreter that has not allocated anything yet."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(function, *args).result()
        except BrokenProcessPool:
            call = f"{function.__name__}{args}"
            raise SystemExit(f"error: the process of {call} died: out of memory?") from None


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One record per graph, number of threads and kernel."""
    records = []
    for graph, threads in itertools.product(args.graphs, args.threads):
        memory = {}
        for kernel in args.kernels:
            report(f"{graph}, {threads} thread(s): memory of {kernel} ...")
            memory[kernel] = in_fresh_process(measure_memory, graph, kernel, threads)
        report(f"{graph}, {threads} thread(s): time of {', '.join(args.kernels)} ...")
        step_ms, losses = in_fresh_process(measure_time, graph, args.kernels, threads, args.repeats)
        for kernel in args.kernels:
            record = {"graph": graph, "kernel": kernel, "threads": threads}
            record["step_ms"] = round(step_ms[kernel], 1)
            record["peak_mb"], record["total_mb"] = (round(mb, 1) for mb in memory[kernel])
            records.append(record | {"loss": round(losses[kernel], 6)})
            report(f"    {json.dumps(records[-1])}")  # a run cut short is not lost
    return records


def report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def format_table(records: list[dict[str, Any]]) -> str:
    """The records in aligned columns, with the ratios to edgewise under the same conditions."""
    yardsticks = {(r["graph"], r["threads"]): r for r in records if r["kernel"] == "edgewise"}
    rows = [("graph", "threads", "kernel", "step ms", "faster", "peak MB", "less", "total", "loss")]
    for r in records:
        edgewise = yardsticks.get((r["graph"], r["threads"]), r)
        faster, less = (
            "-" if edgewise is r else f"{edgewise[key] / r[key]:.1f}x"
            for key in ("step_ms", "peak_mb")
        )
        step, peak, total = (f"{r[key]:,.0f}" for key in ("step_ms", "peak_mb", "total_mb"))
        left = (r["graph"], str(r["threads"]), r["kernel"], step, faster)
        rows.append((*left, peak, less, total, f"{r['loss']:.4f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [zip(row, "<><>>>>>>", widths, strict=True) for row in rows]
    return "\n".join("  ".join(f"{text:{a}{w}}" for text, a, w in row) for row in cells)


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
    add("--kernels", nargs="+", choices=KERNELS, default=KERNELS, help="default: both")
    add("--threads", nargs="+", type=positive, default=[cores], help="default: all cores")
    add("--repeats", type=positive, default=5, help="timed steps per kernel; default: 5")
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
    print(format_table(records))
    if args.json is not None:
        write_json_lines(args.json, records)


if __name__ == "__main__":
    main()
