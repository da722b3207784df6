"""What mini-batches cost in quality: every scheme against the whole graph, on real graphs.

Trains the published settings of CSNN on tolokers and minesweeper, on the whole graph and on batches
of each kind, and evaluates on the whole graph::

    python benchmarks/minibatch.py --epochs 300 --data-dir DATA --json minibatch.jsonl

Each run has a process of its own. An epoch on batches is several steps, so batches need fewer
epochs; the best one is recorded beside its score. ``--table FILE`` prints the table of an earlier
run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from scaling import start_afresh
from shared import made_by
from train_step import (
    MB,
    aligned,
    in_fresh_process,
    positive,
    read_json_lines,
    report,
    write_json_lines,
)

from coopsheaf.data.registry import load_dataset
from coopsheaf.memory import keep_freed_memory, peak_bytes, resident_bytes
from coopsheaf.train.recipes import load_recipe
from coopsheaf.train.run import run_split

# What is set on top of the recipe of the dataset. Five layers of minesweeper look 35 hops far:
# sampled neighbours, and a halo, are the whole graph there.
SCHEMES: dict[str, dict[str, tuple[str, ...]]] = {
    "tolokers": {
        "whole": (),
        "clusters": ("batch.kind=clusters",),
        "nodes": ("batch.kind=nodes",),
        "neighbours": ("batch.kind=neighbours", "batch.fanouts=10,10,5,5"),
    },
    "minesweeper": {
        "whole": (),
        "clusters": ("batch.kind=clusters",),
        "clusters, 2": ("batch.kind=clusters", "batch.size=2"),
        "nodes": ("batch.kind=nodes",),
    },
}
WITHIN = 0.01  # of the metric of the whole graph: one point


def measure(
    dataset: str,
    scheme: str,
    split: int,
    changes: tuple[str, ...],
    data_dir: str | None,
    threads: int,
) -> dict[str, Any]:
    torch.set_num_threads(threads)
    keep_freed_memory()  # as the command line does
    empty = resident_bytes()
    recipe = load_recipe(f"csnn/{dataset}")
    for change in (*SCHEMES[dataset][scheme], *changes):
        recipe = recipe.set(change)
    data = load_dataset(dataset, data_dir, direction=recipe.data.direction)
    start_afresh()
    run, result = run_split(recipe, data, split)
    batches = run.info.get(
        "batches", {"steps": 1, "edges_kept": 1.0, "nodes_per_step": data.num_nodes}
    )
    return {
        "dataset": dataset,
        "scheme": scheme,
        "split": split,
        "metric": data.metric,
        **{f"{part}": round(score, 6) for part, score in result.scores.items()},
        "best_epoch": result.best_epoch,
        "epochs": result.epochs,
        "steps": batches["steps"],
        "nodes_per_step": batches["nodes_per_step"],
        "edges_kept": round(batches["edges_kept"], 4),
        "seconds": round(result.seconds, 1),
        "peak_mb": round((peak_bytes() - empty) / MB, 1),
        "config_hash": recipe.hash(),
        "settings": [*SCHEMES[dataset][scheme], *changes],
    }


def format_table(records: list[dict[str, Any]]) -> str:
    """Means over splits, in points, and how far from the whole graph."""
    what = ("dataset", "scheme", "splits", "edges kept", "val", "test", "off by", "best epoch")
    rows = [(*what, "steps", "s", "peak MB", "")]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for r in records:
        groups.setdefault((r["dataset"], r["scheme"]), []).append(r)

    def mean(group: list[dict[str, Any]], key: str) -> float:
        return statistics.fmean(r[key] for r in group)

    for (dataset, scheme), group in groups.items():
        whole = groups.get((dataset, "whole"), [])
        splits = {r["split"] for r in group}
        same = [r for r in whole if r["split"] in splits]
        off, verdict = "-", ""
        if same and scheme != "whole":
            gap = mean(group, "test") - mean(same, "test")
            off = f"{100 * gap:+.2f}"
            verdict = "within a point" if gap >= -WITHIN else ""
        left = (dataset, scheme, str(len(group)), f"{mean(group, 'edges_kept'):.1%}")
        scores = (f"{100 * mean(group, 'val'):.2f}", f"{100 * mean(group, 'test'):.2f}", off)
        costs = (f"{mean(group, 'best_epoch'):.0f}", f"{mean(group, 'steps'):.0f}")
        costs += (f"{mean(group, 'seconds'):,.0f}", f"{mean(group, 'peak_mb'):,.0f}")
        rows.append((*left, *scores, *costs, verdict))
    return aligned(rows, "<<>>>>>>>>><")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--datasets", nargs="+", choices=SCHEMES, default=[*SCHEMES], help="default: both")
    add("--schemes", nargs="+", help="default: all of the dataset")
    add("--splits", nargs="+", type=int, default=[0], help="default: 0")
    add("--epochs", type=positive, help="at most so many; default: the recipe's")
    add("--set", nargs="+", default=[], metavar="SECTION.FIELD=VALUE", help="change all recipes")
    add("--data-dir", type=Path, help="folder of the dataset files")
    add("--threads", type=positive, default=1, help="default: 1")
    add("--json", type=Path, metavar="FILE", help="write the results as JSON Lines")
    add("--table", type=Path, metavar="FILE", help="only print the table of an earlier run")
    args = parser.parse_args()
    if args.table is not None:
        print(format_table(read_json_lines(args.table)))
        return
    changes = (*args.set, *((f"train.epochs={args.epochs}",) if args.epochs else ()))
    data_dir = None if args.data_dir is None else str(args.data_dir)
    records: list[dict[str, Any]] = []
    for dataset in args.datasets:
        for scheme in SCHEMES[dataset]:
            if args.schemes is not None and scheme not in args.schemes:
                continue
            for split in args.splits:
                report(f"{dataset}, split {split}: {scheme} ...")
                options = (dataset, scheme, split, changes, data_dir, args.threads)
                records.append(in_fresh_process(measure, *options) | made_by())
                report(f"    {json.dumps(records[-1])}")
                if args.json is not None:
                    write_json_lines(args.json, records)  # a run cut short is not lost
    print(format_table(records))


if __name__ == "__main__":
    main()
