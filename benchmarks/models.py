"""Time and memory of a training step of every model of the registry, relative to CSNN.

Each model trains with its recipe for the dataset (its marked default where it has none) on a
generated graph of the size of minesweeper or tolokers, in a process of its own::

    python benchmarks/models.py --threads 1 --repeats 3 --json FILE

With one thread processor time is counted, so that other programs on the machine hardly matter.
``README.md`` beside this file has the results. ``--table FILE`` prints the table of an earlier run,
in the form of the runtime table of the paper; ``--document docs/models.md`` writes it there, too.

Recipes differ in width and depth. ``--alike`` measures the sheaf networks of one size, stalks of
dimension 3 with 32 channels and two layers, so that what differs is the sheaf; its table goes to
``docs/kinship.md``. ``--most-gb`` and ``--most-seconds`` stop a network that takes more memory, or
more processor time for its steps; its record says so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import signal
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from shared import call_in, made_by
from train_step import (
    MB,
    SEED,
    SETTINGS,
    positive,
    read_json_lines,
    report,
    write_json_lines,
)

from coopsheaf.memory import peak_bytes
from coopsheaf.models.kinship import sheaf_systems
from coopsheaf.models.registry import MODELS, make_settings
from coopsheaf.report.tables import NOTHING
from coopsheaf.report.text import markdown_table
from coopsheaf.train.recipe import Recipe, default_recipe
from coopsheaf.train.recipes import recipe_for
from coopsheaf.train.task import Task
from lab.documents import fill_files
from lab.published import PAPER

GRAPHS = ("minesweeper", "tolokers")
PLACE = "model-costs"  # in docs/models.md
SHEAF_PLACE = "sheaf-costs"  # in docs/kinship.md
ALIKE = "alike"  # in place of a recipe: all of one size
# What a process has loaded before it is forked: to import takes longer than to measure.
LOADED = ["models", "coopsheaf.models.csnn", "coopsheaf.zoo.plain.network", "coopsheaf.train.task"]


class Most(NamedTuple):
    """What a network may take before it is stopped; ``None`` for anything."""

    gb: int | None = None
    seconds: int | None = None

    def watch(self) -> None:
        """From now on this process ends what it does with an error where it takes more."""
        if self.gb is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (self.gb * 2**30, resource.RLIM_INFINITY))
        if self.seconds is not None:
            signal.signal(signal.SIGPROF, self._stop)
            signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def _stop(self, *about: object) -> None:
        raise RuntimeError(f"more than {self.seconds} s")

    def reason(self, error: RuntimeError) -> str | None:
        """Why it was stopped, if this error says so."""
        if "allocate memory" in str(error):
            return f"more than {self.gb} GB"
        return str(error) if str(error).startswith("more than") else None


def alike(name: str, dataset: str) -> Recipe:
    """Stalks of dimension 3, 32 channels, two layers: 96 numbers at every node, as is said."""
    size: dict[str, Any] = {"hidden_channels": 32, "num_layers": 2, "stalk_dim": 3}
    if name == "copresheaf":  # as many heads as channels, of as many numbers as a stalk
        size = {"hidden_channels": 96, "num_layers": 2, "num_heads": 32}
    elif name == "bunn":
        size |= {"hidden_channels": 96, "num_bundles": 32}
    return replace(default_recipe(name, dataset), name=ALIKE, model=make_settings(name, **size))


def measure_model(
    name: str,
    dataset: str,
    threads: int,
    repeats: int,
    same_size: bool = False,
    most: Most = Most(),  # noqa: B008 -- it never changes
) -> dict[str, Any]:
    """Median seconds of a training step, its peak memory above the prepared process, and sizes."""
    torch.set_num_threads(threads)
    torch.manual_seed(SEED)
    setting = SETTINGS[dataset]
    recipe = alike(name, dataset) if same_size else recipe_for(name, dataset)
    in_channels, _, _, out_channels = setting.sizes
    graph = setting.make_graph()
    x = torch.randn(setting.num_nodes, in_channels)
    y = torch.randint(2, (setting.num_nodes,))
    model = recipe.model.build(in_channels, out_channels, num_nodes=setting.num_nodes)
    kind = torch.optim.Adam if recipe.train.optimizer == "adam" else torch.optim.AdamW
    optimizer = kind(model.parameters(), lr=recipe.train.lr, fused=True)
    task = Task("binary", "auroc")
    clock = time.process_time if threads == 1 else time.perf_counter

    def step() -> float:
        start = clock()
        optimizer.zero_grad(set_to_none=True)
        task.loss(model(x, graph), y).backward()
        optimizer.step()
        return clock() - start

    with suppress(OSError):  # Linux can forget the peak of the preparation; others cannot
        Path("/proc/self/clear_refs").write_text("5")
    before = peak_bytes()
    what = {"model": name, "graph": dataset, "threads": threads, "recipe": recipe.name}
    most.watch()
    try:
        step()  # Adam's moments and what the graph remembers exist from the second step on
        seconds = [step() for _ in range(repeats)]
    except ValueError as error:  # two hops of a dense graph, for one
        return {**what, "refused": str(error)}
    except RuntimeError as error:
        if most.reason(error) is None:
            raise
        return {**what, "refused": most.reason(error)}
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        **what,
        "step_s": round(statistics.median(seconds), 4),
        "peak_mb": round((peak_bytes() - before) / MB, 1),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def format_table(records: list[dict[str, Any]]) -> str:
    """One line per model: step and memory as multiples of CSNN's, beside the paper's seconds."""
    own = {(r["graph"], r["threads"]): r for r in records if r["model"] == "csnn"}
    head = ("graph", "threads", "model", "step s", "of csnn", "paper", "peak MB", "of csnn")
    rows = [(*head, "parameters", "settings")]
    for r in records:
        if "refused" in r:
            rows.append((r["graph"], str(r["threads"]), r["model"], *["refused"] * 6, ""))
            continue
        base = own.get((r["graph"], r["threads"]))
        time_ratio = f"{r['step_s'] / base['step_s']:.2f}x" if base else "-"
        memory_ratio = f"{r['peak_mb'] / base['peak_mb']:.2f}x" if base else "-"
        column = (r["graph"], "auroc", "", "")
        printed, theirs = PAPER.runtime(r["model"], column), PAPER.runtime("csnn", column)
        paper = f"{printed.seconds / theirs.seconds:.2f}x" if printed and theirs else "-"
        settings = {"default": "default, not tuned", ALIKE: "all alike"}.get(r["recipe"], "recipe")
        left = (r["graph"], str(r["threads"]), r["model"], f"{r['step_s']:.3f}", time_ratio, paper)
        rows.append((*left, f"{r['peak_mb']:,.0f}", memory_ratio, f"{r['parameters']:,}", settings))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [zip(row, "<><>>>>>><", widths, strict=True) for row in rows]
    lines = ("  ".join(f"{text:{a}{w}}" for text, a, w in row).rstrip() for row in cells)
    return "\n".join(lines)


def document_table(records: list[dict[str, Any]]) -> str:
    """The same for the page of models: multiples of CSNN's step and memory, and what is refused."""
    by_place = {(r["model"], r["graph"]): r for r in records if r["threads"] == 1}
    lines = []
    for name in dict.fromkeys(r["model"] for r in records):
        graph = "any" if MODELS[name].inductive else "one graph"
        cells = [_share(by_place, name, g, key) for g in GRAPHS for key in ("step_s", "peak_mb")]
        lines.append((f"`{name}`", graph, *cells))
    columns = [f"{what}, {g}" for g in GRAPHS for what in ("step", "memory")]
    return markdown_table(" | ".join(["name", "used on", *columns]), lines, "llrrrr")


def _share(by_place: dict[tuple[str, str], Any], name: str, graph: str, key: str) -> str:
    found, base = by_place.get((name, graph)), by_place.get(("csnn", graph))
    if found is None or base is None:
        return NOTHING
    if "refused" in found:
        return found["refused"] if found["refused"].startswith("more than") else "refused"
    return f"{found[key] / base[key]:.2f} ×"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--models", nargs="+", choices=MODELS, help="default: all")
    add("--graphs", nargs="+", choices=GRAPHS, default=[*GRAPHS], help="default: both")
    add("--threads", nargs="+", type=positive, default=[1], help="default: 1")
    add("--repeats", type=positive, default=3, help="timed steps per model; default: 3")
    add("--alike", action="store_true", help="sheaf networks, all of one size")
    add("--most-gb", type=positive, metavar="N", help="stop a network that needs more memory")
    add("--most-seconds", type=positive, metavar="N", help="stop one whose steps take longer")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON Lines")
    add("--table", type=Path, metavar="FILE", help="only print the table of an earlier run")
    add("--document", type=Path, metavar="FILE", help="with --table: write it into this document")
    args = parser.parse_args()
    if args.table is not None:
        records = read_json_lines(args.table)
        print(format_table(records))
        if args.document is not None:
            place = SHEAF_PLACE if records[0]["recipe"] == ALIKE else PLACE
            fill_files([args.document], {place: document_table(records)})
        return
    names = args.models or [*(sheaf_systems() if args.alike else MODELS)]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    records = []
    for graph in args.graphs:
        for threads in args.threads:
            for name in dict.fromkeys(["csnn", *names]):
                report(f"{graph}, {threads} thread(s): {name} ...")
                how = (
                    name,
                    graph,
                    threads,
                    args.repeats,
                    args.alike,
                    Most(args.most_gb, args.most_seconds),
                )
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    measured = call_in(pool, measure_model, *how)
                records.append(measured | made_by())
                report(f"    {json.dumps(records[-1])}")
                if args.json is not None:
                    write_json_lines(args.json, records)  # a run cut short is not lost
    print(format_table(records))


if __name__ == "__main__":
    main()
