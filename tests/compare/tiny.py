"""Small data to compare models on, and records of comparisons that nobody ran."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from coopsheaf.compare.plan import FoldPlan, ModelPlan, Plan, TrialPlan
from coopsheaf.data.dataset import NodeDataset
from coopsheaf.train.records import Record


def tables(n: int = 90, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """Nodes whose class is the sign of what they hear: the columns of a node say nothing of it."""
    draw = np.random.default_rng(seed)
    sign = draw.choice([-1.0, 1.0], n)
    source = (np.arange(n) + 1) % n
    nodes = {
        "id": np.arange(n),
        "sign": sign + 0.1 * draw.normal(size=n),
        "town": draw.choice(["here", "there"], n),
        "label": np.where(sign[source] > 0, "up", "down"),
    }
    return nodes, {"source": source, "target": np.arange(n)}


def dataset(n: int = 60, splits: int = 2, task: str = "binary", **changes: Any) -> NodeDataset:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=draw)
    y = (x[:, 0] > 0).long() if task == "binary" else x[:, 0] + x[:, 1]
    order = torch.stack([torch.randperm(n, generator=draw) for _ in range(splits)])
    parts = [torch.zeros(splits, n, dtype=torch.bool).scatter_(1, order[:, a:b], True) for a, b in ((0, n // 2), (n // 2, 3 * n // 4), (3 * n // 4, n))]  # fmt: skip
    values = {
        "name": "tiny",
        "x": x,
        "edge_index": torch.stack([torch.arange(n), torch.arange(n).roll(1)]),
        "y": y,
        "train": parts[0],
        "val": parts[1],
        "test": parts[2],
        "task": task,
        "metric": "auroc" if task == "binary" else "mae",
        "class_names": ("no", "yes") if task == "binary" else (),
        "checksum": "abc",
    }
    return NodeDataset(**{**values, **changes})


def plan(models: dict[str, int], folds: int = 3, metric: str = "ap", **changes: Any) -> Plan:
    """So many trials of each model."""
    parts = tuple(FoldPlan(k, k, "abc", 60, 20, 20) for k in range(folds))
    contestants = tuple(
        ModelPlan(
            name,
            1,
            name not in ("mlp", "boosted-columns"),
            tuple(TrialPlan(f"{name}-{t}") for t in range(trials)),
        )
        for name, trials in models.items()
    )
    values = {
        "dataset": "own",
        "size": "100 nodes",
        "task": "binary",
        "metric": metric,
        "over": "folds",
        "seed": 0,
        "train_seed": 43,
        "folds": parts,
        "models": contestants,
    }
    return Plan(**{**values, **changes})


def record(model: str, split: int, trial: int, val: float | None, test: float | None, **changes: Any) -> Record:  # fmt: skip
    values = {
        "model": model,
        "dataset": "own",
        "split": split,
        "seed": 43,
        "semantics": "",
        "metric": "ap",
        "val": val,
        "test": test,
        "best_epoch": 1,
        "config_hash": f"{model}-{trial}",
        "dataset_checksum": "abc",
        "seconds": 1.0,
    }
    return Record(**{**values, **changes})
