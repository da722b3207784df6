"""Records: one JSON line per finished run. Imports no PyTorch."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from coopsheaf.files import append_line, finite, is_json
from coopsheaf.schema import Kind, brief_text, find_fault, keys, of_hint

T = TypeVar("T")
OnBad = Callable[[str], None]
"""Is told why something was passed over, in one line."""

LONGEST_LINE = 1 << 24  # bytes


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
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
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
    together: int = 0  # how many runs were trained in one pass; 0 for a run alone

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


class PassedOver:
    """Collects what was passed over, each once however often it was met."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def __call__(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)


def warn_of_line(reason: str) -> None:
    """Warn of a line that was passed over, for callers in Python."""
    warnings.warn(reason, stacklevel=3)


def append_record(path: Path, record: Record) -> None:
    """Append one record, whole or not at all, whatever other processes do."""
    append_line(path, record.to_line(), is_whole=is_json)


def read_records(paths: Iterable[Path], bad: OnBad | None = None) -> list[Record]:
    """All records of some files, in order; see :func:`read_lines`."""
    return read_lines(Record, paths, bad)


def read_lines(kind: Callable[..., T], paths: Iterable[Path], bad: OnBad | None = None) -> list[T]:
    """The lines of some files, each as an object of a dataclass; fields it does not have are left.

    A last line without an end, left by a process that was killed, is passed over.

    Args:
        kind: the dataclass; its types say what a line must hold.
        paths: the files.
        bad: is told of every line that cannot be used, by file, line and reason, and the others
            are read on; without it the first one is a :class:`RecordError`.
    """
    known = {item.name for item in fields(cast(Any, kind))}
    wanted = _kind_of(kind)
    found = []
    for path in paths:
        for number, line, is_last in _lines(path, bad):
            try:
                values = _parse(line, wanted)
            except (ValueError, RecursionError) as error:
                if not is_last:
                    _tell(bad, f"{path}, line {number}: not a record ({_one_line(error)})")
                continue
            found.append(kind(**{key: values[key] for key in values if key in known}))
    return found


def find_records(folder: Path, bad: OnBad | None = None) -> list[Record]:
    """All records below ``results/*.jsonl``; see :func:`read_lines`."""
    return read_records(sorted(folder.glob("*.jsonl")), bad)


def _lines(path: Path, bad: OnBad | None) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of a file that hold something, their numbers, and which has no end."""
    try:
        lines = path.read_bytes().split(b"\n")  # a half line may end within a letter
    except OSError as error:
        _tell(bad, f"{path}: cannot be read ({error.strerror})")
        return
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line, number == len(lines)


def _parse(line: bytes, wanted: Kind) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"it has more than {LONGEST_LINE >> 20} MB")
    values = json.loads(line, parse_constant=lambda _: None)  # a score that is NaN
    fault = find_fault(values, wanted)
    if fault is not None:
        raise ValueError(fault)
    return cast(dict[str, Any], values)


def _kind_of(record: Callable[..., Any]) -> Kind:
    """What a line must hold, read off the types of a dataclass."""
    hints = get_type_hints(record)
    required: dict[str, Kind] = {}
    optional: dict[str, Kind] = {}
    for item in fields(cast(Any, record)):
        is_optional = item.default is not MISSING or item.default_factory is not MISSING
        kind = of_hint(hints[item.name])
        (optional if is_optional else required)[item.name] = item.metadata.get("kind", kind)
    return keys(required, optional)


def _tell(bad: OnBad | None, reason: str) -> None:
    if bad is None:
        raise RecordError(reason)
    bad(reason)


def _one_line(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else brief_text(str(error))


def spell_splits(splits: tuple[int, ...]) -> str:
    """``split 0``, ``splits 0-9`` or ``splits 0, 2, 5``."""
    if len(splits) == 1:
        return f"split {splits[0]}"
    if splits == tuple(range(splits[0], splits[-1] + 1)):
        return f"splits {splits[0]}-{splits[-1]}"
    return f"splits {', '.join(map(str, splits))}"
