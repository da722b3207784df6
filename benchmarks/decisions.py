"""What class weights, calibration and a chosen threshold do to rare positives.

The tables of ``examples/06_fraud.py``, drawn, split and trained with ten seeds. Threshold and
calibration are chosen on validation, all figures are of the test part. Run with: python
benchmarks/decisions.py [SEEDS]; writes ``results/decisions.json`` and prints the table of
``docs/decisions.md``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from statistics import fmean, stdev

from coopsheaf.data import load_tables
from coopsheaf.data.fraud import fraud_tables
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split

RESULTS = Path(__file__).parent / "results" / "decisions.json"
METRICS = {"ap": "AP", "f1": "F1", "ece": "calibration error"}
BASE = {"lr": 0.02, "epochs": 40}
ROWS = {
    "default": {},
    "threshold by F1": {"threshold": "f1"},
    "class weights, nothing else": {"class_weights": True, "calibrate": False},
    "class weights, calibrated, threshold by F1": {"class_weights": True, "threshold": "f1"},
}


def measure(seed: int) -> dict[str, dict[str, float]]:
    """The metrics of every row with one seed, of tables, split and training alike."""
    with tempfile.TemporaryDirectory() as folder:
        data = load_tables(
            *fraud_tables(seed=seed).write(folder),
            target="fraud",
            id="account",
            undirected=True,
            self_loops="remove",
            duplicates="merge",
            seed=seed,
        )
    model = make_settings("csnn", num_layers=2, hidden_channels=16, stalk_dim=2, dropout=0.2)
    found = {}
    for row, settings in ROWS.items():
        train = TrainConfig(**BASE, seed=seed, **settings)  # type: ignore[arg-type]
        run, _ = run_split(Recipe("csnn", model, train=train), data.dataset)
        metrics = run.summary["test"].metrics
        found[row] = {name: round(metrics[name], 6) for name in METRICS}
    return found


def table(seeds: dict[str, dict[str, dict[str, float]]]) -> str:
    """Mean and standard deviation over the seeds, as Markdown."""
    lines = ["| | " + " | ".join(METRICS.values()) + " |", "|---|" + "---|" * len(METRICS)]
    for row in ROWS:
        cells = []
        for name in METRICS:
            values = [found[row][name] for found in seeds.values()]
            cells.append(f"{fmean(values):.3f} ± {stdev(values):.3f}")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seeds = {}
    for seed in range(count):
        seeds[str(seed)] = measure(seed)
        sys.stderr.write(f"seed {seed}: {seeds[str(seed)]}\n")
    if count == 10:
        RESULTS.write_text(json.dumps(seeds, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(table(seeds) + "\n")
