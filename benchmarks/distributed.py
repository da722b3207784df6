"""What a second process brings: training nodes per second of one process and of two.

Every process has one thread and its share of every step, batches of clusters of a generated graph;
one process alone does the same work with the same batches per process::

    python benchmarks/distributed.py --json distributed.jsonl

The two are measured in turns, so that whatever else the machine does meets both. The machine must
have a core for each process. ``--table FILE`` prints the table of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from scaling import make_model
from shared import made_by
from train_step import SEED, aligned, positive, read_json_lines, report, write_json_lines

from coopsheaf.data.communities import heterophilic_communities
from coopsheaf.data.pack import read_pack, write_pack
from coopsheaf.memory import keep_freed_memory
from coopsheaf.scale import make_batch_feed
from coopsheaf.scale.clusters import partition
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.loop import train_epoch
from coopsheaf.train.task import Task
from coopsheaf.train.world import World, make_fabric

WANTED = 1.6


def train(folder: Path, size: int, epochs: int) -> dict[str, Any] | None:
    """One process: epochs as the training loop does them, the first one aside."""
    torch.set_num_threads(1)
    keep_freed_memory()  # as the command line does
    config = TrainConfig()
    fabric = make_fabric(config, "cpu")
    world = World(fabric)
    dataset = read_pack(folder / "pack")
    model = make_model(dataset)
    feed = make_batch_feed(
        dataset,
        0,
        BatchConfig("clusters", size=size),
        seed=SEED,
        device=fabric.device,
        dtype=torch.float32,
        rank=world.rank,
        world_size=world.size,
        folder=folder / "partitions",
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    wrapped, optimizer = fabric.setup(model, optimizer)
    task = Task(dataset.task, dataset.metric)
    seconds, losses = [], []
    for epoch in range(epochs + 1):
        world.sum(0.0)  # all start together
        begin = time.perf_counter()
        losses.append(train_epoch(wrapped, feed, task, optimizer, world, config, None, epoch))
        seconds.append(time.perf_counter() - begin)
    same = world.gather([parameter.detach() for parameter in model.parameters()])
    if not world.is_first:
        return None
    return {
        "processes": world.size,
        "steps": len(feed.items(0)),
        "epoch_s": round(statistics.median(seconds[1:]), 3),
        "nodes_per_s": round(int(dataset.train[0].sum()) / statistics.median(seconds[1:]), 1),
        "losses": [round(loss, 5) for loss in losses],
        "same_parameters": all(
            torch.equal(one, other)
            for parameters in same
            for one, other in zip(same[0], parameters, strict=True)
        ),
    }


def launch(processes: int, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    words = [__file__, "--inside", str(folder), "--size", str(args.size)]
    words += ["--epochs", str(args.epochs)]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    done = subprocess.run(
        [sys.executable, *(start if processes > 1 else []), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"error: {processes} process(es) failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=args.scratch) as name:
        folder = Path(name)
        data = heterophilic_communities(args.nodes, 10 * args.nodes, seed=SEED)
        pack = read_pack(write_pack(data, folder / "pack"))
        parts = max(1, args.nodes // 500)
        partition(pack.graph, parts, seed=SEED, folder=folder / "partitions")
        for turn in range(args.turns):
            for processes in (1, 2):
                report(f"turn {turn + 1}: {processes} process(es) ...")
                found = launch(processes, folder, args)
                what = {"nodes": args.nodes, "size": args.size, "turn": turn}
                records.append({**what, **found, **made_by()})
                report(f"    {json.dumps(records[-1])}")
                if args.json is not None:
                    write_json_lines(args.json, records)
    return records


def format_table(records: list[dict[str, Any]]) -> str:
    rows = [("processes", "turns", "steps", "epoch s", "training nodes per s", "same parameters")]
    speeds = {}
    for processes in (1, 2):
        group = [r for r in records if r["processes"] == processes]
        speeds[processes] = statistics.median(r["nodes_per_s"] for r in group)
        epoch = statistics.median(r["epoch_s"] for r in group)
        same = "yes" if all(r["same_parameters"] for r in group) else "NO"
        counts = (str(processes), str(len(group)), str(group[0]["steps"]))
        rows.append((*counts, f"{epoch:.2f}", f"{speeds[processes]:,.0f}", same))
    ratio = speeds[2] / speeds[1]
    verdict = "met" if ratio >= WANTED else "missed"
    return f"{aligned(rows, '>>>>><')}\n\ntwo over one: {ratio:.2f} (at least {WANTED}: {verdict})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--nodes", type=positive, default=100_000, help="ten edges each; default: 100000")
    add("--size", type=positive, default=10, help="clusters of 500 nodes per process and step")
    add("--epochs", type=positive, default=3, help="timed ones; default: 3")
    add("--turns", type=positive, default=3, help="default: 3")
    add("--scratch", type=Path, help="folder for the graph; default: the system's temporary folder")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON Lines")
    add("--table", type=Path, metavar="FILE", help="only print the table of an earlier run")
    add("--inside", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside is not None:
        found = train(args.inside, args.size, args.epochs)
        if found is not None:
            print(json.dumps(found))
        return
    records = measure(args) if args.table is None else read_json_lines(args.table)
    print(format_table(records))


if __name__ == "__main__":
    main()
