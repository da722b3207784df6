"""A record to change, for the tests of records and tables."""

from __future__ import annotations

from typing import Any

from coopsheaf.train.records import Record


def make(**changes: Any) -> Record:
    values: dict[str, Any] = {
        "model": "csnn",
        "dataset": "tolokers",
        "split": 0,
        "seed": 43,
        "semantics": "paper",
        "metric": "auroc",
        "val": 0.86,
        "test": 0.85,
        "best_epoch": 12,
        "config_hash": "a",
        "seconds_per_epoch": 0.5,
        "processing": {"direction": "undirected"},
    }
    return Record(**(values | changes))
