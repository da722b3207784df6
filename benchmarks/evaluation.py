"""What an evaluation costs beside a training epoch, and how often ``"auto"`` evaluates.

Takes turns in one process between an epoch of training and an evaluation of the loop, on the
graphs of ``settings.py`` and on many small graphs (molecules' sizes), processor time::

    python benchmarks/evaluation.py --graphs texas tolokers many --repeats 5

``README.md`` beside this file has the results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from settings import SETTINGS
from shared import (
    SEED,
    aligned,
    in_fresh_process,
    made_by,
    positive,
    read_json_lines,
    write_json_lines,
)
from torch_geometric.data import Data

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.memory import keep_freed_memory
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.evaluation import epochs_between, evaluate_together, regular_parts
from coopsheaf.train.feed import Feed, GraphFeed, NodeFeed
from coopsheaf.train.loop import _make_optimizer, train_epoch
from coopsheaf.train.task import Task
from coopsheaf.train.world import World, make_fabric

MANY = "many"  # small graphs
MANY_GRAPHS, MANY_NODES, MANY_EDGES = 512, 150, 310  # about peptides' sizes, a thirtieth of them


def node_data(name: str) -> NodeDataset:
    """A graph of ``settings.py`` with random features, labels and a half/quarter/quarter split."""
    setting = SETTINGS[name]
    n, outputs = setting.num_nodes, setting.sizes[3]
    part = torch.randperm(n) * 4 // n
    task, metric = ("binary", "auroc") if outputs == 1 else ("multiclass", "accuracy")
    return NodeDataset(
        name=f"{name}-sized",
        x=torch.randn(n, setting.sizes[0]),
        edge_index=setting.make_graph().edge_index,
        y=torch.randint(max(2, outputs), (n,)),
        train=(part < 2)[None],
        val=(part == 2)[None],
        test=(part == 3)[None],
        task=task,
        metric=metric,
    )


def graph_data() -> GraphDataset:
    """Many random graphs with ten labels each; 70 % of them for training."""
    graphs = [
        Data(
            x=torch.randn(MANY_NODES, 9),
            edge_index=torch.randint(MANY_NODES, (2, MANY_EDGES)),
            y=torch.randint(2, (1, 10)).float(),
        )
        for _ in range(MANY_GRAPHS)
    ]
    train, val = int(0.7 * MANY_GRAPHS), int(0.85 * MANY_GRAPHS)
    parts = torch.arange(MANY_GRAPHS).tensor_split([train, val])
    return GraphDataset("many", graphs, *parts, "multilabel", "ap")


def make_feed(name: str) -> tuple[Feed, torch.nn.Module, Task]:
    device, dtype = torch.device("cpu"), torch.float32
    torch.manual_seed(SEED)
    if name == MANY:
        many = graph_data()
        settings = make_settings("csnn", hidden_channels=32, num_layers=4, stalk_dim=3)
        model = settings.build(9, 10, graph_level=True)
        feed = GraphFeed(many, batch_size=128, seed=SEED, device=device, dtype=dtype)
        return feed, model, Task(many.task, many.metric)
    data = node_data(name)
    feed = NodeFeed(data, 0, device=device, dtype=dtype)
    return feed, SETTINGS[name].make_model(), Task(data.task, data.metric)


def measure(name: str, repeats: int) -> dict[str, Any]:
    """Milliseconds of an epoch and of an evaluation, in turns, and what ``"auto"`` makes of it."""
    torch.set_num_threads(1)
    keep_freed_memory()
    feed, model, task = make_feed(name)
    config = TrainConfig(epochs=2000, eval_every="auto")
    world = World(make_fabric(config, "cpu"))
    optimizer, parts = _make_optimizer(model, config), regular_parts(feed, config)
    clock = time.thread_time
    seconds: dict[str, list[float]] = {"epoch": [], "evaluation": []}
    for number in range(repeats + 2):
        for what, times in seconds.items():
            start = clock()
            if what == "epoch":
                train_epoch(model, feed, task, optimizer, world, config, None, number)
            else:
                evaluate_together(model, feed, task, world, parts)
            times.append(clock() - start)
    epoch, evaluation = (1000 * statistics.median(times[2:]) for times in seconds.values())
    every = epochs_between(config, lambda: feed.evaluation_share(model, parts))
    return {
        "graph": name,
        "epoch_ms": round(epoch, 2),
        "evaluation_ms": round(evaluation, 2),
        "ratio": round(evaluation / epoch, 3),
        "parts": list(parts),
        "auto": every,
        "auto_share": round(evaluation / (evaluation + every * epoch), 3),
    }


def format_table(records: list[dict[str, Any]]) -> str:
    rows = [("graph", "epoch ms", "evaluation ms", "ratio", "auto: every", "share of time")]
    for r in records:
        times = (f"{r['epoch_ms']:,.1f}", f"{r['evaluation_ms']:,.1f}", f"{r['ratio']:.2f}")
        rows.append((r["graph"], *times, str(r["auto"]), f"{r['auto_share']:.0%}"))
    return aligned(rows, "<>>>>>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add, names = parser.add_argument, [*SETTINGS, MANY]
    add("--graphs", nargs="+", choices=names, default=names, help="default: all")
    add("--repeats", type=positive, default=5, help="timed turns; default: 5")
    add("--json", type=Path, metavar="FILE", help="also write the results as JSON Lines")
    add("--table", type=Path, metavar="FILE", help="only print the table of an earlier run")
    args = parser.parse_args()
    if args.table is not None:
        print(format_table(read_json_lines(args.table)))
        return
    records = []
    for name in args.graphs:
        records.append(in_fresh_process(measure, name, args.repeats) | made_by())
        print(json.dumps(records[-1]), flush=True)
        if args.json is not None:
            write_json_lines(args.json, records)
    print(format_table(records))


if __name__ == "__main__":
    main()
