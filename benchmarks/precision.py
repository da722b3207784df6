"""What bfloat16 does to scores: runs that differ in `train.precision` alone, paired over splits.

The runs are those of the command line, and what is recorded already is skipped::

    for p in 32 bf16; do
        coopsheaf bench csnn/texas csnn/chameleon csnn/squirrel csnn/tolokers --splits 0-9 \\
            --set train.precision=$p --threads 1 --results benchmarks/results/precision
        coopsheaf bench csnn/minesweeper --splits 0,1 --set train.epochs=300 \\
            --set train.precision=$p --threads 1 --results benchmarks/results/precision
    done
    python benchmarks/precision.py

``README.md`` beside this file has the results.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import mean, median

from shared import aligned

from coopsheaf.report.intervals import interval
from coopsheaf.train.records import Record, find_records

RECORDS = Path(__file__).parent / "results" / "precision"
HEADER = ("dataset", "splits", "single", "bf16", "difference", "95 %", "verdict", "s/epoch")


def pairs(records: list[Record]) -> dict[str, list[tuple[Record, Record]]]:
    """Single and half of each split whose other settings are the same, by dataset."""
    found: dict[tuple[object, ...], dict[str, Record]] = defaultdict(dict)
    for record in records:
        train = dict(record.config["train"])
        precision = str(train.pop("precision", "32"))
        # The name of a recipe says what was overridden.
        rest = repr(sorted((record.config | {"train": train, "recipe": ""}).items()))
        found[record.dataset, rest, record.split][precision] = record
    together: dict[str, list[tuple[Record, Record]]] = defaultdict(list)
    for (dataset, *_), both in found.items():
        if {"32", "bf16"} <= both.keys():
            together[str(dataset)].append((both["32"], both["bf16"]))
    return together


def row(dataset: str, found: list[tuple[Record, Record]]) -> tuple[str, ...]:
    differences = [100 * (half.test - single.test) for single, half in found]
    middle = mean(differences)
    scores = [100 * mean(record.test for record in side) for side in zip(*found, strict=True)]
    sides = list(zip(*found, strict=True))
    seconds = [median(record.seconds_per_epoch for record in side) for side in sides]
    bounds = interval(differences)
    width, verdict = "-", "-"
    if bounds is not None:
        width = f"± {(bounds[1] - bounds[0]) / 2:.2f}"
        verdict = "worse" if bounds[1] < 0 else "not clearly worse"
    shown = (f"{scores[0]:.2f}", f"{scores[1]:.2f}", f"{middle:+.2f}", width, verdict)
    return dataset, str(len(found)), *shown, f"{seconds[0]:.3f}, {seconds[1]:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=RECORDS, help="of the records")
    found = pairs(find_records(parser.parse_args().folder))
    if not found:
        raise SystemExit("error: there are no two records that differ in `train.precision` alone")
    rows = [HEADER, *(row(name, found[name]) for name in sorted(found))]
    print(aligned(rows, "<>>>>><>"))


if __name__ == "__main__":
    main()
