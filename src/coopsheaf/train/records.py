"""Records: one JSON line per finished run. Imports no PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast

from coopsheaf.files import append_line, finite, is_json

T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """One finished run. Metrics are shares in [0, 1] (errors such as MAE are what they are).

    ``val`` and ``test`` were measured at the first epoch with the best value of what
    ``train.select`` says, the validation metric or its loss; ``test`` selected nothing.
    """

    model: str
    dataset: str
    split: int
    seed: int
    semantics: str
    metric: str
    val: float | None
    test: float | None
    best_epoch: int
    config_hash: str
    model_version: int = 1
    train: float | None = None
    recipe: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    epochs: int = 0
    seconds_per_epoch: float | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    parameters: int = 0
    commit: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""
    threads: int = 0
    dataset_checksum: str = ""
    dataset_remark: str = ""
    processing: dict[str, str] = field(default_factory=dict)
    splits: int = 0  # how many splits the dataset has
    time: str = ""
    instructions: dict[str, str] = field(default_factory=dict)  # of the processor

    @property
    def key(self) -> tuple[str, str, int, int, str, int, str]:
        """What makes a run the same run: it need not be run again."""
        return (
            self.model,
            self.dataset,
            self.split,
            self.seed,
            self.config_hash,
            self.model_version,
            self.dataset_checksum,
        )

    def to_line(self) -> str:
        return json.dumps(finite(asdict(self)), ensure_ascii=False, allow_nan=False)


class RecordError(ValueError):
    """A line that is not a record; names file and line."""


def append_record(path: Path, record: Record) -> None:
    """Append one record, whole or not at all, whatever other processes do."""
    append_line(path, record.to_line(), is_whole=is_json)


def read_records(paths: Iterable[Path]) -> list[Record]:
    """All records of some files, in order."""
    return read_lines(Record, paths)


def read_lines(kind: Callable[..., T], paths: Iterable[Path]) -> list[T]:
    """The lines of some files, each as an object of a dataclass; fields it does not have are left.

    A last line without an end, left by a process that was killed, is passed over.
    """
    known = {item.name for item in fields(cast(Any, kind))}
    found = []
    for path in paths:
        lines = path.read_bytes().split(b"\n")  # a half line may end within a letter
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                values = json.loads(line, parse_constant=lambda _: None)  # a score that is NaN
                found.append(kind(**{key: values[key] for key in values if key in known}))
            except (ValueError, TypeError) as error:
                if number == len(lines):
                    continue
                raise RecordError(f"{path}, line {number}: not a record ({error})") from None
    return found


def find_records(folder: Path) -> list[Record]:
    """All records below ``results/*.jsonl``."""
    return read_records(sorted(folder.glob("*.jsonl")))


def spell_splits(splits: tuple[int, ...]) -> str:
    """``split 0``, ``splits 0-9`` or ``splits 0, 2, 5``."""
    if len(splits) == 1:
        return f"split {splits[0]}"
    if splits == tuple(range(splits[0], splits[-1] + 1)):
        return f"splits {splits[0]}-{splits[-1]}"
    return f"splits {', '.join(map(str, splits))}"
