"""What the order of the nodes is worth: sums over neighbours and training steps.

Generated graphs of communities whose nodes are in random order, put into the order that
``coopsheaf data pack --order community`` finds, and for comparison into that in which they were
made::

    python benchmarks/node_order.py --edges 1000000 10000000 --json node_order.jsonl

Orders take turns in one process; one thread, processor time.
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
import torch.nn.functional as F
from scaling import CHANNELS, EDGES_PER_NODE, STALK_DIM, make_data, make_model, start
from shared import aligned, in_fresh_process, made_by, positive, report, write_json_lines

from coopsheaf import Graph
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.data.node_order import community_order, reorder
from coopsheaf.sheaves.kernels.sparse import neighbour_sums

NEAR = 1000  # nodes: as many as a community has


def make_step(dataset: NodeDataset, graph: Graph) -> Callable[[], None]:
    model = make_model(dataset)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    train = dataset.train[0].nonzero().squeeze(1)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(dataset.x, graph)[train], dataset.y[train]).backward()
        optimizer.step()

    return step


def measure(edges: int, repeats: int, with_steps: bool) -> dict[str, Any]:
    start(1)
    random = make_data(edges, "random")
    begin = time.thread_time()
    order = community_order(Graph(random.edge_index, random.num_nodes))
    found: dict[str, Any] = {"edges": edges, "order_s": round(time.thread_time() - begin, 2)}
    orders = {
        "random": random,
        "found": reorder(random, order),
        "made": make_data(edges, "communities"),
    }
    works: dict[str, Callable[[], Any]] = {}
    x = torch.randn(random.num_nodes, STALK_DIM * CHANNELS)
    for name, dataset in orders.items():
        graph = Graph(dataset.edge_index, dataset.num_nodes)
        gap = (graph.source - graph.target).abs()
        found[f"{name}_near"] = round(float((gap < NEAR).double().mean()), 3)
        works[f"{name}_sum"] = lambda lists=graph.by_target: neighbour_sums(x, lists)
        if with_steps:
            works[f"{name}_step"] = make_step(dataset, graph)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            begin = time.thread_time()
            work()
            if turn:  # the first is for warming up
                seconds[name].append(time.thread_time() - begin)
    return found | {f"{name}_s": round(statistics.median(t), 4) for name, t in seconds.items()}


def format_table(records: list[dict[str, Any]]) -> str:
    rows = [("edges", "to find s", "nodes", "near", "sum s", "of random", "step s", "of random")]
    for r in records:
        for name in ("random", "found", "made"):
            row = (f"{r['edges']:,}", f"{r['order_s']:.1f}", name, f"{r[f'{name}_near']:.1%}")
            for what in ("sum", "step"):
                mine, base = r.get(f"{name}_{what}_s"), r.get(f"random_{what}_s")
                known = mine is not None and base is not None
                row += (f"{mine:.3f}", f"{mine / base:.2f}") if known else ("-", "-")
            rows.append(row)
    return aligned(rows, ">><>>>>>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--edges", nargs="+", type=positive, default=[1_000_000, 10_000_000])
    add("--repeats", type=positive, default=3, help="default: 3")
    add("--steps-up-to", type=int, default=3_160_000, help="edges; larger graphs: sums alone")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON Lines")
    args = parser.parse_args()
    records = []
    for edges in args.edges:
        report(f"{edges:,} edges, {edges // EDGES_PER_NODE:,} nodes ...")
        with_steps = edges <= args.steps_up_to
        found = in_fresh_process(measure, edges, args.repeats, with_steps)
        records.append(found | made_by())
        report(f"    {json.dumps(records[-1])}")
        if args.json is not None:
            write_json_lines(args.json, records)
    print(format_table(records))


if __name__ == "__main__":
    main()
