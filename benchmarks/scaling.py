"""How time and memory of a CSNN grow with the graph: from 10⁵ to 10⁷ edges.

Full-batch training steps (d = 3, 32 channels, 2 layers, MLP learners) on generated heterophilic
graphs of ten edges per node, against bare sparse products of the same width and number; outputs of
the whole graph chunk by chunk; and training on batches of clusters of a mapped pack::

    python benchmarks/scaling.py --json scaling.jsonl --figure scaling.svg

``--packs`` generates packs of 10⁶ to 10⁸ edges without ever holding one in memory, trains on their
batches and computes the outputs of all nodes; it goes on where it was interrupted::

    python benchmarks/scaling.py --packs --scratch FOLDER --json packs.jsonl

Each measurement has a process of its own. With one thread processor time is counted, so that other
programs on the machine hardly matter. ``--table FILE`` prints the tables of an earlier run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from scaling_packs import PLANS, SIZES, measure_pack, pack_table, remove_pack, write_big_pack
from shared import made_by
from train_step import (
    MB,
    SEED,
    aligned,
    in_fresh_process,
    positive,
    read_json_lines,
    report,
    write_json_lines,
)

from coopsheaf import CSNN, Graph
from coopsheaf.data.communities import heterophilic_communities
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.memory import forget_peak, keep_freed_memory, peak_bytes, resident_bytes
from coopsheaf.scale import infer, make_batch_feed
from coopsheaf.sheaves.kernels import factored, sparse
from coopsheaf.train.batches import BatchConfig

EDGES = (100_000, 316_000, 1_000_000, 3_160_000, 10_000_000)
EDGES_PER_NODE = 10
CHANNELS, STALK_DIM, LAYERS = 32, 3, 2
WARM = 2.0  # seconds of steps before the measured ones
ORDERS = (
    "communities",
    "random",
)  # of the nodes: neighbours near each other in memory, or anywhere


def make_data(edges: int, order: str = "random") -> NodeDataset:
    shuffle = order == "random"
    return heterophilic_communities(edges // EDGES_PER_NODE, edges, shuffle=shuffle, seed=SEED)


def make_model(dataset: NodeDataset, *, again: bool = False) -> CSNN:
    torch.manual_seed(SEED)
    sizes = (dataset.num_features, CHANNELS, LAYERS, dataset.out_channels)
    return CSNN(*sizes, stalk_dim=STALK_DIM, dropout=0.2, checkpoint_layers=again)


def start(threads: int) -> tuple[Callable[[], float], int]:
    """The clock, and the memory of a process that has done nothing yet."""
    torch.set_num_threads(threads)
    keep_freed_memory()  # as the command line does
    return (time.process_time if threads == 1 else time.perf_counter), resident_bytes()


def start_afresh() -> None:
    """Let the peak be that of what follows, where the system can; give back what is free."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    forget_peak()


def count_products(step: Callable[[], None]) -> int:
    """How often a step multiplies by the adjacency, forward and backward."""
    count, real = 0, factored.neighbour_sums

    def counted(*arguments: Any) -> torch.Tensor:
        nonlocal count
        count += 1
        return real(*arguments)

    with mock.patch.object(factored, "neighbour_sums", counted):
        step()
    return count


def measure_steps(
    edges: int, order: str, threads: int, repeats: int, again: bool
) -> dict[str, Any]:
    """Seconds of a training step and of its sparse products; peak memory above an empty process."""
    clock, empty = start(threads)
    begin = clock()
    dataset = make_data(edges, order)
    generate = clock() - begin
    graph = Graph(dataset.edge_index, dataset.num_nodes)
    prepared = peak_bytes()
    x, y, train = dataset.x, dataset.y, dataset.train[0].nonzero().squeeze(1)
    del dataset.__dict__["edge_index"]  # the graph has it
    model = make_model(dataset, again=again)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x, graph)[train], y[train]).backward()
        optimizer.step()

    start_afresh()
    products = count_products(step)
    step()  # Adam's moments exist from the second step on
    ready = clock() + WARM
    while clock() < ready:  # small graphs: until memory is laid out as it stays
        step()
    peak = peak_bytes()
    sent = torch.randn(dataset.num_nodes, STALK_DIM * CHANNELS)

    def multiply() -> None:
        for k in range(products):  # as often along the edges as against them
            sparse.neighbour_sums(sent, graph.by_source if k % 2 else graph.by_target)

    seconds: dict[str, list[float]] = {"step": [], "products": []}
    for _ in range(repeats):
        for name, work in (("step", step), ("products", multiply)):
            begin = clock()
            work()
            seconds[name].append(clock() - begin)
    step_s, products_s = (statistics.median(times) for times in seconds.values())
    return {
        "step_s": round(step_s, 4),
        "products_s": round(products_s, 4),
        "products": products,
        "ratio": round(step_s / products_s, 3),
        "peak_mb": round((peak - empty) / MB, 1),
        "total_mb": round(peak / MB, 1),
        "prepare_mb": round((prepared - empty) / MB, 1),
        "generate_s": round(generate, 2),
    }


def measure_outputs(edges: int, threads: int) -> dict[str, Any]:
    """Outputs of the whole graph at once and chunk by chunk: how far apart, and at what cost."""
    clock, empty = start(threads)
    dataset = make_data(edges)
    graph = Graph(dataset.edge_index, dataset.num_nodes)
    model = make_model(dataset).eval()
    found: dict[str, Any] = {}
    outputs = []
    for name in ("chunks", "whole"):
        start_afresh()
        begin = clock()
        with torch.no_grad():
            out = infer(model, dataset.x, graph) if name == "chunks" else model(dataset.x, graph)
        outputs.append(out)
        found[f"{name}_s"] = round(clock() - begin, 4)
        found[f"{name}_mb"] = round((peak_bytes() - empty) / MB, 1)
    found["difference"] = float((outputs[0] - outputs[1]).abs().max())
    return found


def write_data(edges: int, folder: str) -> None:
    write_pack(make_data(edges), folder)


def measure_batches(edges: int, folder: str, kind: str, steps: int, threads: int) -> dict[str, Any]:
    """Training steps on batches of a pack, then outputs of the whole graph: time and memory."""
    clock, empty = start(threads)
    dataset = read_pack(folder)
    model = make_model(dataset)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    begin = clock()
    feed = make_batch_feed(
        dataset,
        0,
        BatchConfig(kind),
        seed=SEED,
        device=torch.device("cpu"),
        dtype=torch.float32,
        folder=Path(folder).parent / "partitions",
    )
    summary = feed.summary(model)
    prepare = clock() - begin
    begin, done = clock(), 0
    for logits, y in feed.steps(model, 0):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(logits, y).backward()
        optimizer.step()
        done += 1
        if done == steps:
            break
    step_s = (clock() - begin) / done
    begin = clock()
    model.eval()
    logits, y = feed.outputs(model)["val"]
    return {
        **summary,
        "prepare_s": round(prepare, 2),
        "step_s": round(step_s, 4),
        "epoch_s": round(step_s * summary["steps"], 2),
        "evaluation_s": round(clock() - begin, 2),
        "val": round(float((logits.argmax(1) == y).double().mean()), 4),
        "steps_done": done,
        "peak_mb": round((peak_bytes() - empty) / MB, 1),
        "total_mb": round(peak_bytes() / MB, 1),
    }


def slope(records: list[dict[str, Any]], key: str) -> float:
    """Least squares of log ``key`` against log edges."""
    points = [(math.log(r["edges"]), math.log(r[key])) for r in records]
    if len({a for a, _ in points}) < 2:
        return float("nan")
    x, y = (statistics.fmean(column) for column in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def format_tables(records: list[dict[str, Any]]) -> str:
    """The measurements, then what they were to show."""
    kinds: dict[str, list[dict[str, Any]]] = {
        "steps": [],
        "outputs": [],
        "batches": [],
        "packs": [],
    }
    for r in records:
        kinds[r["what"]].append(r)
    blocks, goals = [], [("goal", "is", "target", "")]

    def judge(goal: str, value: float, limit: float, unit: str = "") -> None:
        verdict = "met" if value <= limit else "missed"
        goals.append((goal, f"{value:.3g}{unit}", f"at most {limit:g}{unit}", verdict))

    for order in ORDERS:
        steps = [r for r in kinds["steps"] if r["order"] == order]
        if not steps:
            continue
        rows = [
            ("edges", "nodes", "step s", "products s", "number", "ratio", "peak MB", "total MB")
        ]
        for r in steps:
            sizes = (f"{r['edges']:,}", f"{r['edges'] // EDGES_PER_NODE:,}")
            times = (f"{r['step_s']:.3f}", f"{r['products_s']:.3f}", str(r["products"]))
            memory = (f"{r['peak_mb']:,.0f}", f"{r['total_mb']:,.0f}")
            rows.append((*sizes, *times, f"{r['ratio']:.2f}", *memory))
        where = "random order" if order == "random" else "the order of their communities"
        title = f"full-batch training steps, nodes in {where}"
        blocks.append(f"{title}\n" + aligned(rows, ">>>>>>>>"))
        ratios = [r["ratio"] for r in steps]
        judge(f"largest over smallest ratio, {order}", max(ratios) / min(ratios), 1.5)
        judge(f"slope of memory, {order}", slope(steps, "peak_mb"), 1.05)
        judge(f"largest memory, {order}", max(r["total_mb"] for r in steps) / 1024, 16, " GB")
    if kinds["outputs"]:
        rows = [("edges", "whole s", "chunks s", "whole MB", "chunks MB", "difference")]
        for r in kinds["outputs"]:
            times = (f"{r['whole_s']:.3f}", f"{r['chunks_s']:.3f}")
            memory = (f"{r['whole_mb']:,.0f}", f"{r['chunks_mb']:,.0f}")
            rows.append((f"{r['edges']:,}", *times, *memory, f"{r['difference']:.1e}"))
        blocks.append("outputs of the whole graph\n" + aligned(rows, ">>>>>>"))
        judge("difference of chunks", max(r["difference"] for r in kinds["outputs"]), 1e-5)
    if kinds["batches"]:
        head = ("edges", "kind", "steps", "nodes", "kept", "step s", "epoch s", "evaluation s")
        rows = [(*head, "val", "peak MB", "total MB")]
        for r in kinds["batches"]:
            first = (f"{r['edges']:,}", r["kind"], f"{r['steps']:,}", f"{r['nodes_per_step']:,}")
            times = (f"{r['step_s']:.3f}", f"{r['epoch_s']:.0f}", f"{r['evaluation_s']:.1f}")
            memory = (f"{r['peak_mb']:,.0f}", f"{r['total_mb']:,.0f}")
            rows.append((*first, f"{r['edges_kept']:.1%}", *times, f"{r['val']:.3f}", *memory))
        blocks.append("training on batches of a pack\n" + aligned(rows, "><>>>>>>>>>"))
        judge("memory of batches", max(r["total_mb"] for r in kinds["batches"]) / 1024, 4, " GB")
    for order in PLANS:
        packs = [r for r in kinds["packs"] if r["order"] == order]
        if not packs:
            continue
        blocks.append(pack_table(packs, order))
        if all("train_s_per_million" in r for r in packs):
            judge(f"slope of an epoch, {order}", slope(packs, "train_s"), 1.1)
        else:
            judge(f"slope of a step, {order}", slope(packs, "step_s"), 1.1)
        judge(f"slope of outputs, {order}", slope(packs, "infer_s"), 1.1)
        own = max(max(r["train_own_mb"], r["infer_own_mb"]) for r in packs)
        judge(f"own memory of packs, {order}", own / 1024, 8, " GB")
    return "\n\n".join([*blocks, aligned(goals, "<>><")])


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Time and memory against edges, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    def points(what: str, **like: str) -> list[dict[str, Any]]:
        chosen = (r for r in records if r["what"] == what)
        chosen = (r for r in chosen if all(r[key] == value for key, value in like.items()))
        return sorted(chosen, key=lambda r: r["edges"])

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for order, colour in zip(ORDERS, ("C0", "C1"), strict=True):
        steps = points("steps", order=order)
        edges = [r["edges"] for r in steps]
        left.loglog(edges, [r["step_s"] for r in steps], "o-", c=colour, label=f"step, {order}")
        alone = [r["products_s"] for r in steps]
        left.loglog(edges, alone, "s--", c=colour, label="its sparse products alone")
    left.set_ylabel("seconds")
    steps, batches = points("steps", order=ORDERS[0]) or points("steps"), points("batches")
    edges = [r["edges"] for r in steps]
    right.loglog(edges, [r["peak_mb"] / 1024 for r in steps], "o-", label="whole graph")
    if batches:
        sizes = [r["peak_mb"] / 1024 for r in batches]
        right.loglog([r["edges"] for r in batches], sizes, "s-", label="batches, mapped")
    right.set_ylabel("peak memory, GB above an empty process")
    for axes in (left, right):
        axes.set_xlabel("edges (each counted once)")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add(
        "--edges",
        nargs="+",
        type=positive,
        default=[*EDGES],
        help="default: 10⁵ to 10⁷, five sizes",
    )
    add("--threads", type=positive, default=1, help="default: 1")
    add("--repeats", type=positive, default=3, help="timed steps per size; default: 3")
    add("--order", nargs="+", choices=ORDERS, default=[*ORDERS], help="of nodes; default: both")
    add("--checkpoint-layers", action="store_true", help="compute layers again on the way back")
    add("--skip", nargs="+", choices=("steps", "outputs", "batches"), default=[], help="leave out")
    add(
        "--kind", choices=("clusters", "neighbours", "nodes"), default="clusters", help="of batches"
    )
    add("--steps", type=positive, default=20, help="steps on batches; default: 20")
    add(
        "--packs",
        nargs="*",
        type=positive,
        metavar="EDGES",
        help="only measure packs that are generated on disk; default: 10⁶, 10⁷ and 10⁸ edges",
    )
    add("--keep", action="store_true", help="leave the packs of --packs where they are")
    add("--scratch", type=Path, help="folder for packs; default: the system's temporary folder")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON Lines")
    add("--figure", type=Path, metavar="FILE", help="draw them: a .svg, .pdf or .png file")
    add("--table", type=Path, metavar="FILE", help="only print the tables of an earlier run")
    args = parser.parse_args()
    if args.table is not None:
        records = read_json_lines(args.table)
    else:
        records = measure(args) if args.packs is None else measure_packs(args)
    print(format_tables(records))
    if args.figure is not None:
        draw(records, args.figure)


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One record per size and kind of measurement; a run cut short is not lost."""
    records: list[dict[str, Any]] = []

    def keep(what: str, edges: int, found: dict[str, Any]) -> None:
        records.append(
            {"what": what, "edges": edges, "threads": args.threads, **found, **made_by()}
        )
        report(f"    {json.dumps(records[-1])}")
        if args.json is not None:
            write_json_lines(args.json, records)

    for edges in sorted(set(args.edges)):
        report(f"{edges:,} edges ...")
        if "steps" not in args.skip:
            for order in args.order:
                options = (edges, order, args.threads, args.repeats, args.checkpoint_layers)
                found = in_fresh_process(measure_steps, *options)
                again = args.checkpoint_layers
                keep("steps", edges, {"order": order, "checkpoint_layers": again, **found})
        if "outputs" not in args.skip:
            keep("outputs", edges, in_fresh_process(measure_outputs, edges, args.threads))
        if "batches" not in args.skip:
            with tempfile.TemporaryDirectory(dir=args.scratch) as folder:
                pack = str(Path(folder) / "pack")
                in_fresh_process(write_data, edges, pack)
                options = (edges, pack, args.kind, args.steps, args.threads)
                keep("batches", edges, in_fresh_process(measure_batches, *options))
    return records


def run_pack(folder: str, order: str) -> dict[str, Any]:
    return measure_pack(folder, order, start, make_model)


def measure_packs(args: argparse.Namespace) -> list[dict[str, Any]]:
    """One record per size and order; what is recorded or generated already is not done again."""
    known = args.json is not None and args.json.exists()
    records = read_json_lines(args.json) if known else []
    done = {(r["drawn"], r["order"]) for r in records if r["what"] == "packs"}
    place = args.scratch or Path(tempfile.gettempdir())
    for edges in sorted(set(args.packs or SIZES)):
        for order in args.order:
            if (edges, order) in done:
                continue
            report(f"{edges:,} edges in a pack, {order} ...")
            folder = str(place / f"scaling-{order}-{edges}")
            made = in_fresh_process(write_big_pack, folder, edges, EDGES_PER_NODE, order)
            found = in_fresh_process(run_pack, folder, order)
            records.append(
                {"what": "packs", "drawn": edges, "threads": 1, **found, **made, **made_by()}
            )
            report(f"    {json.dumps(records[-1])}")
            if args.json is not None:
                write_json_lines(args.json, records)
            if not args.keep:
                remove_pack(folder)
    return records


if __name__ == "__main__":
    main()
