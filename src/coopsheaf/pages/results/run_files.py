"""What the folders of runs tell a report: curves, and pages beside them. Imports no PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coopsheaf.train.run_info import read_run_info

EXPLORER = "explorer.html"
"""The page beside ``run.json`` that shows what the run's network does."""

RunKey = tuple[str, str, int, int, str, int, str]


@dataclass(frozen=True)
class RunFile:
    """A finished run on disk.

    Args:
        folder: where it is.
        key: as :attr:`coopsheaf.train.records.Record.key`: which record it belongs to.
        history: rows of epoch, loss and the scores on train, val and test; ``nan`` if not known.
        best_epoch: the epoch that was kept.
        explorer: its page, if there is one.
    """

    folder: Path
    key: RunKey
    history: tuple[tuple[float, ...], ...]
    best_epoch: int
    explorer: Path | None


def find_runs(folder: Path) -> list[RunFile]:
    """All finished runs below a folder, sorted by their paths; those under way are passed over."""
    found = (_read(path) for path in sorted(folder.rglob("run.json")))
    return [run for run in found if run is not None]


def _read(path: Path) -> RunFile | None:
    info = read_run_info(path.parent)
    try:
        if info["status"] != "finished":
            return None
        result = info["result"]
        explorer = path.with_name(EXPLORER)
        return RunFile(
            folder=path.parent,
            key=(
                str(info["model"]),
                str(info["dataset"]),
                int(info["split"]),
                int(info["seed"]),
                str(info["config_hash"]),
                int(info["model_version"]),
                str(info["dataset_checksum"]),
            ),
            history=tuple(tuple(_number(value) for value in row) for row in result["history"]),
            best_epoch=int(result["best_epoch"]),
            explorer=explorer if explorer.is_file() else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path}: not a run of coopsheaf ({reason})") from None


def _number(value: Any) -> float:
    """JSON has no NaN: null stands for it."""
    return math.nan if value is None else float(value)
