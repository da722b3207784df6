"""What the folders of runs tell a report: curves, and pages beside them. Imports no PyTorch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coopsheaf.schema import find_fault, keys
from coopsheaf.train.records import OnBad
from coopsheaf.train.run_info import read_run_info
from coopsheaf.train.run_schema import REQUIRED, RESULT

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


def find_runs(folder: Path, bad: OnBad | None = None) -> list[RunFile]:
    """All finished runs below a folder, sorted by their paths; those under way are passed over.

    Args:
        folder: where to look.
        bad: is told of every ``run.json`` that is none, and the others are read on; without it the
            first one is a ``ValueError``.
    """
    found = []
    for path in sorted(folder.rglob("run.json")):
        try:
            run = _read(path)
        except ValueError as error:
            if bad is None:
                raise
            bad(str(error))
            continue
        if run is not None:
            found.append(run)
    return found


def _read(path: Path) -> RunFile | None:
    info = read_run_info(path.parent)
    fault = find_fault(info, keys({"status": REQUIRED["status"]}))
    if fault is None and info["status"] != "finished":
        return None
    fault = fault or find_fault(info, _WANTED)
    if fault is not None:
        raise ValueError(f"{path}: not a run of coopsheaf ({fault})")
    result, explorer = info["result"], path.with_name(EXPLORER)
    return RunFile(
        folder=path.parent,
        key=tuple(info[key] for key in _KEY),
        history=tuple(tuple(_number(value) for value in row) for row in result["history"]),
        best_epoch=result["best_epoch"],
        explorer=explorer if explorer.is_file() else None,
    )


_KEY = ("model", "dataset", "split", "seed", "config_hash", "model_version", "dataset_checksum")
_WANTED = keys(
    {"result": keys({key: RESULT[key] for key in ("history", "best_epoch")})}
    | {key: REQUIRED[key] for key in _KEY}
)


def _number(value: Any) -> float:
    """JSON has no NaN: null stands for it."""
    return math.nan if value is None else float(value)
