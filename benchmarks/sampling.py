"""What a batch costs by itself, from graphs of 10⁵ to 4·10⁶ nodes::

    python benchmarks/sampling.py [--nodes 100000 1000000 4000000] [--json FILE]

The edges among 1,024 random nodes, a sample around 512 of them (5 and 5 neighbours) and the halo of
two hops around 64, of random graphs with ten edges per node; one thread, processor time, medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from shared import aligned, in_fresh_process, made_by, positive, report, write_json_lines

from coopsheaf import Graph
from coopsheaf.scale import sample_neighbours, surround


def measure(nodes: int, repeats: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    graph = Graph(torch.randint(nodes, (2, 10 * nodes), generator=rng), nodes)
    seconds: dict[str, list[float]] = {"subgraph": [], "sample": [], "halo": []}
    for turn in range(repeats + 3):
        some = torch.randint(nodes, (1024,), generator=rng).unique()
        works: dict[str, Callable[[], Any]] = {
            "subgraph": lambda some=some: graph.subgraph(some),
            "sample": lambda some=some: sample_neighbours(graph, some[:512], [5, 5], seed=0),
            "halo": lambda some=some: surround(graph, some[:64], (("in", "in"),)),
        }
        for name, work in works.items():
            begin = time.thread_time()
            work()
            if turn >= 3:
                seconds[name].append(time.thread_time() - begin)
    medians = {f"{name}_ms": round(1e3 * statistics.median(t), 3) for name, t in seconds.items()}
    return {"nodes": nodes, **medians}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--nodes", nargs="+", type=positive, default=[100_000, 1_000_000, 4_000_000])
    add("--repeats", type=positive, default=20, help="default: 20")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON Lines")
    args = parser.parse_args()
    records = []
    for nodes in args.nodes:
        report(f"{nodes:,} nodes ...")
        records.append(in_fresh_process(measure, nodes, args.repeats) | made_by())
        report(f"    {json.dumps(records[-1])}")
        if args.json is not None:
            write_json_lines(args.json, records)
    rows = [("nodes", "subgraph ms", "sample ms", "halo ms")]
    names = ("subgraph_ms", "sample_ms", "halo_ms")
    rows += [(f"{r['nodes']:,}", *(f"{r[name]:.2f}" for name in names)) for r in records]
    print(aligned(rows, ">>>>"))


if __name__ == "__main__":
    main()
