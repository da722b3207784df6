"""Read mangled tables: each must become a sound dataset or one line that says what is wrong.

Valid small tables in every format are mangled (``mangled_tables.py``) and read in processes of
their own, which are watched: a case may take 20 s and 2 GB. Some of the cases go through the
command line. What fails is made small and written into a folder; its number gives it again::

    python benchmarks/mangle.py --cases 20000 --commands 300 --seed 0
    python benchmarks/mangle.py --seed 0 --only 4711

``README.md`` beside this file has the results.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from mangled_tables import FORMATS, Case, draw_case
from torch import Tensor

import coopsheaf.data.tables.reading.inputs as inputs
from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.load import TableData, load_tables
from coopsheaf.data.tables.schema import TableSchema

SECONDS = 20.0
GIGABYTES = 2.0
LONGEST_LINE = 1500
PLENTY = 2**36  # bytes; whoever asks for more gets nothing anywhere, and so does no harm
PACKAGE = str(Path(inputs.__file__).parents[3])


class Unsound(Exception):
    """What a case made is no dataset, or its error is none for users."""


# --- one case ----------------------------------------------------------------------------------


def try_case(case: Case, folder: Path) -> str:
    """``dataset`` or ``error``, as a case should end; anything else is raised."""
    try:
        data = load_tables(**case.write(folder), **case.options)
        check_dataset(data)
        if case.later is not None:
            check_dataset(load_tables(**case.after().write(folder), like=stored_schema(data)))
    except ValueError as error:
        check_error(error)
        return "error"
    return "dataset"


def stored_schema(data: TableData) -> TableSchema:
    """How tables were read, after it was stored with a run."""
    kept = [data.kept["tables"], data.kept["encoder"]]
    return TableSchema.from_json(*json.loads(json.dumps(kept, allow_nan=False)))


def check_error(error: ValueError) -> None:
    """Ours, of one line and not too long; not one of a library that happens to be of this type."""
    line = str(error)
    frame = traceback.extract_tb(error.__traceback__)[-1].filename
    if type(error) not in (DataError, ValueError) or not frame.startswith(PACKAGE):
        raise error
    wanted = re.search(r"malloc of size (\d+)", line)
    if wanted and int(wanted[1]) < PLENTY:
        raise Unsound(f"a small table must not need more than {GIGABYTES} GB; {line}")
    if not line or len(line.splitlines()) > 1 or len(line) > LONGEST_LINE:
        raise Unsound(
            f"an error must be one line of at most {LONGEST_LINE} characters; got {line!r}"
        )


def check_dataset(data: TableData) -> None:
    """Finite features, edges between nodes, targets that are classes, parts that do not overlap."""
    dataset = data.dataset
    for note in data.notes:
        _must(len(note.splitlines()) == 1, f"a note must be one line; got {note!r}")
    if isinstance(dataset, GraphDataset):
        for graph in dataset.graphs:
            _check_graph(graph.x, graph.edge_index, graph.edge_attr, None)
        _must(len(dataset.graph_ids) == len(dataset.graphs), "every graph must have a name")
        return
    attributes = dataset.edge_attr if isinstance(dataset, NodeDataset) else None
    _check_graph(dataset.x, dataset.edge_index, attributes, dataset.edge_weight)
    _must(len(dataset.node_ids) == len(dataset.x), "every node must have a name")
    if isinstance(dataset, NodeDataset):
        _check_targets(dataset)


def _check_graph(
    x: Tensor, edges: Tensor, attributes: Tensor | None, weight: Tensor | None
) -> None:
    _must(x.dtype == torch.float32 and bool(x.isfinite().all()), "features must be finite")
    _must(edges.dtype == torch.int64 and edges.shape[0] == 2, "edges must be (2, m) whole numbers")
    inside = not edges.numel() or (int(edges.min()) >= 0 and int(edges.max()) < len(x))
    _must(inside, "edges must join nodes")
    for values in (attributes, weight):
        if values is not None:
            right = len(values) == edges.shape[1] and bool(values.isfinite().all())
            _must(right, "weights and features of edges must be finite, one for each edge")


def _check_targets(dataset: NodeDataset) -> None:
    y, parts = dataset.y, dataset.train.int() + dataset.val.int() + dataset.test.int()
    _must(len(y) == len(dataset.x) and int(parts.max()) <= 1, "parts must not overlap")
    used = y[parts.any(0)]
    if y.is_floating_point():
        known = used.isfinite() if dataset.task == "regression" else used.isfinite() | used.isnan()
        _must(bool(known.all()), "targets must be finite")
    else:
        classes = max(2, len(dataset.class_names))
        _must(bool(((used >= 0) & (used < classes)).all()), "targets must be classes")


def _must(right: bool, rule: str) -> None:
    if not right:
        raise Unsound(rule)


# --- the command line --------------------------------------------------------------------------


def try_command(case: Case, folder: Path) -> str:
    """The same through ``coopsheaf train``: exit code 0, or 2 and one line on standard error."""
    paths = case.write(folder)
    words = [sys.executable, "-m", "coopsheaf", "train", "--epochs", "1", "--threads", "1"]
    words += ["--out", str(folder / "run"), "--results", str(folder / "results")]
    for table, path in paths.items():
        words += [f"--{table}", str(path)]
    for name, value in case.options.items():
        option = {"split": "--split-column"}.get(name, "--" + name.replace("_", "-"))
        values = value if isinstance(value, list) else [value]
        words += [option] if value is True else [option, *map(str, values)]
    if any("\0" in word or (word.startswith("-") and word[1:2] in "1 0") for word in words):
        return "not a command"  # no shell can say it
    done = subprocess.run(words, capture_output=True, timeout=120)
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode not in (0, 2) or "Traceback" in said:
        raise Unsound(f"exit code {done.returncode}: {said[-2000:]}")
    if done.returncode == 2 and len(said.splitlines()) != 1:
        raise Unsound(f"an error must be one line; got {said[-2000:]}")
    return "error" if done.returncode else "dataset"


# --- workers -----------------------------------------------------------------------------------


def work(pipe: Any, seed: int, formats: tuple[str, ...], failures: Path) -> None:
    """Take the numbers of cases and say how each of them ended."""
    torch.set_num_threads(1)
    limit = int((GIGABYTES + 1) * 2**30)  # one for the libraries
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    warnings.simplefilter("error")
    parent = os.getppid()
    while os.getppid() == parent:  # nobody is left behind when the program is ended
        if not pipe.poll(5):
            continue
        kind, number = pipe.recv()
        case = draw_case(seed, number, formats)
        start = time.perf_counter()
        trial = try_command if kind == "command" else try_case
        outcome = run_trial(trial, case)
        seconds = time.perf_counter() - start
        if outcome not in ("dataset", "error", "not a command"):
            smallest = case if kind == "command" else shrink(case, outcome)
            keep(smallest, outcome, failures / f"{kind}-{number}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        pipe.send((outcome, seconds, peak))


def run_trial(trial: Any, case: Case) -> str:
    """How a case ended, with the traceback if that was not as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return str(trial(case, Path(folder)))
        except Exception:
            return traceback.format_exc()


def shrink(case: Case, outcome: str) -> Case:
    """Leave out what the failure does not need."""
    last = outcome.strip().splitlines()[-1].split(":")[0]
    for smaller in case.smaller():
        found = run_trial(try_case, smaller)
        if found.strip().splitlines()[-1].split(":")[0] == last:
            return shrink(smaller, outcome)
    return case


def keep(case: Case, outcome: str, folder: Path) -> None:
    """The files and options of a failure."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        case.write(folder)
    except Exception as error:  # then it is the mangling that fails
        outcome += f"\nand the tables cannot be written: {error!r}"
    (folder / "case.json").write_text(json.dumps(asdict(case), indent=1), encoding="utf-8")
    (folder / "outcome.txt").write_text(outcome, encoding="utf-8", errors="replace")


class Worker:
    """A process that tries cases, one after the other, and is replaced when it dies."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self.arguments = arguments
        self.case: tuple[str, int] | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")  # the libraries are imported once
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=work, args=(other, *self.arguments), daemon=True)
        self.process.start()
        other.close()

    def give(self, case: tuple[str, int]) -> None:
        self.case, self.since = case, time.perf_counter()
        self.pipe.send(case)

    def result(self) -> tuple[str, float, float] | None:
        """How the case ended, if it has; a process that died or hangs is one of its failures."""
        assert self.case is not None
        taken = time.perf_counter() - self.since
        try:
            if self.pipe.poll(0.01):
                return self.pipe.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionError):
            self.process.join()
            return self._replace(f"the process ended with {self.process.exitcode}", taken)
        allowed = 130 if self.case[0] == "command" else 5 * SECONDS  # it says itself if it is slow
        if taken > allowed:
            self.process.kill()
            self.process.join()
            return self._replace(f"no end after {taken:.0f} s", taken)
        return None

    def _replace(self, why: str, taken: float) -> tuple[str, float, float]:
        assert self.case is not None
        seed, formats, failures = self.arguments
        kind, number = self.case
        keep(draw_case(seed, number, formats), why, failures / f"{kind}-{number}")
        self._start()
        return why, taken, 0.0

    def stop(self) -> None:
        self.process.kill()
        self.process.join()


# --- the program -------------------------------------------------------------------------------


def run_all(
    cases: list[tuple[str, int]], processes: int, arguments: tuple[Any, ...]
) -> dict[str, Any]:
    """Try all cases; what was found, in numbers."""
    waiting = list(reversed(cases))
    workers = [Worker(arguments) for _ in range(min(processes, len(cases)))]
    ends: Counter[str] = Counter()
    slowest, peak, failures = (0.0, -1), 0.0, []
    start = time.perf_counter()
    for worker in workers:
        worker.give(waiting.pop())
    busy = list(workers)
    while busy:
        for worker in list(busy):
            found = worker.result()
            if found is None:
                continue
            outcome, seconds, used = found
            kind, number = worker.case or ("", -1)
            if kind == "case":
                slowest, peak = max(slowest, (seconds, number)), max(peak, used)
                if seconds > SECONDS and outcome in ("dataset", "error"):
                    outcome = f"took {seconds:.1f} s"
            known = outcome in ("dataset", "error", "not a command")
            ends[f"{kind}: {outcome if known else 'failure'}"] += 1
            if not known:
                failures.append((kind, number))
                print(
                    f"\n{kind} {number}: {outcome.strip().splitlines()[-1][:300]}", file=sys.stderr
                )
            done = sum(ends.values())
            if done % 100 == 0:
                rate = done / (time.perf_counter() - start)
                print(f"\r{done}/{len(cases)}  {rate:.0f}/s", end="", file=sys.stderr)
            if waiting:
                worker.give(waiting.pop())
            else:
                busy.remove(worker)
    for worker in workers:
        worker.stop()
    return {
        "ends": dict(sorted(ends.items())),
        "failures": failures,
        "slowest_s": round(slowest[0], 2),
        "slowest_case": slowest[1],
        "peak_gb": round(peak, 2),
        "seconds": round(time.perf_counter() - start),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="read in process")
    parser.add_argument("--commands", type=int, default=200, help="more, through the command line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", type=int, help="one case, with its traceback")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--no-pyarrow", action="store_true", help="the plain reader; text files alone"
    )
    parser.add_argument("--failures", type=Path, default=Path("mangled"), help="where failures go")
    parser.add_argument("--json", type=Path, help="append what was found to this file")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    formats = FORMATS
    if options.no_pyarrow:
        formats = tuple(ending for ending in FORMATS if ending[1:4] in ("csv", "tsv", "txt"))
        inputs.has_pyarrow = lambda: False
    if options.only is not None:
        case = draw_case(options.seed, options.only, formats)
        print(case, run_trial(try_case, case), sep="\n")
        return 0
    first = options.first
    cases = [("case", first + i) for i in range(options.cases)]
    cases += [("command", first + options.cases + i) for i in range(options.commands)]
    found = run_all(cases, options.processes, (options.seed, formats, options.failures))
    print("", *(f"{name}: {count}" for name, count in found["ends"].items()), sep="\n")
    print(
        f"{len(found['failures'])} failures; slowest case {found['slowest_s']} s (case "
        f"{found['slowest_case']}), peak memory {found['peak_gb']} GB, {found['seconds']} s, "
        f"seed {options.seed}"
    )
    if options.json is not None:
        asked = {
            "cases": options.cases,
            "commands": options.commands,
            "seed": options.seed,
            "first": first,
        }
        with options.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asked | {"pyarrow": not options.no_pyarrow} | found) + "\n")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
