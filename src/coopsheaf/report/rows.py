"""What records say together: means over splits, and which settings to show. Imports no PyTorch.

Everything here is computed from records; nothing is typed. Standard deviations are those of the
population (divided by the number of runs). Where a model has been run with several settings, the
validation scores choose the one to show; test scores choose nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from coopsheaf.data.metrics import METRICS
from coopsheaf.report.reference import NOTHING_PRINTED, ColumnKey, Reference
from coopsheaf.train.records import Record

LOWER_IS_BETTER = tuple(name for name, metric in METRICS.items() if not metric.higher)


@dataclass(frozen=True)
class Row:
    """One model with one setting on one dataset, over its splits.

    Args:
        model, dataset, semantics, config_hash, metric, recipe: as in the records.
        model_version, dataset_checksum, parameters: as in the records.
        seed: as in the records; ``None`` where the runs differ in it.
        over: what the runs differ in: ``"splits"``, or ``"seeds"`` where a benchmark has one split.
        runs: the splits (or seeds) there are, in the order they were recorded.
        expected: how many there are in a whole benchmark; ``None`` if nobody says.
        tests, vals: scores of the runs; a score that is not defined is left out.
        test_by_run, val_by_run: the same by run.
        mean, std: of the test scores, population; ``None`` if there are none.
        val_mean: of the validation scores.
        seconds_per_epoch: mean over the runs.
        seconds: of all runs together; ``None`` if one does not say.
        best_epochs: of the runs.
        ablation: what of CSNN is not the paper's, beside its semantics; empty if nothing.
        label: model, semantics and ablation in words.
        direction, features: what was done to edges and features; empty if not recorded.
        batches: kind of mini-batches; empty where every step sees the whole graph.
        remark: what the dataset says about itself.
        machines: where the runs were made.
    """

    model: str
    dataset: str
    semantics: str
    config_hash: str
    model_version: int
    dataset_checksum: str
    metric: str
    recipe: str
    parameters: int
    seed: int | None
    over: str
    runs: tuple[int, ...]
    expected: int | None
    test_by_run: Mapping[int, float]
    val_by_run: Mapping[int, float]
    seconds_per_epoch: float | None
    seconds: float | None
    best_epochs: tuple[int, ...]
    ablation: str
    direction: str
    features: str
    batches: str
    remark: str
    machines: tuple[str, ...]

    @property
    def tests(self) -> tuple[float, ...]:
        return tuple(self.test_by_run.values())

    @property
    def vals(self) -> tuple[float, ...]:
        return tuple(self.val_by_run.values())

    @property
    def is_whole(self) -> bool:
        """Several runs, or one where there is one split and seeds take hours."""
        return len(self.runs) > 1 or self.over == "seeds"

    @property
    def mean(self) -> float | None:
        return fmean(self.tests) if self.tests else None

    @property
    def std(self) -> float | None:
        return pstdev(self.tests) if self.tests else None

    @property
    def val_mean(self) -> float | None:
        return fmean(self.vals) if self.vals else None

    @property
    def label(self) -> str:
        semantics = f"{self.semantics} semantics" if self.semantics else ""
        return ", ".join(filter(None, (self.model, semantics, self.ablation)))

    @property
    def column(self) -> ColumnKey:
        return self.dataset, self.metric, self.remark, self.dataset_checksum

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said beside the number, whatever it is compared with."""
        notes = []
        count, one = len(self.runs), self.over.removesuffix("s")
        if self.expected is None:
            notes.append(f"{count} {self.over if count > 1 else one}")
        elif count < self.expected:
            notes.append(f"{count} of {self.expected} {self.over}")
        if len(self.tests) < count:
            notes.append(f"no test score in {count - len(self.tests)} of {count} runs")
        if self.recipe == "default":
            notes.append("default settings, not tuned")
        return tuple(notes)


def summarise(records: Iterable[Record], reference: Reference = NOTHING_PRINTED) -> list[Row]:
    """One row for each model, dataset, setting, version, data and seed, as they come.

    A split that was recorded more than once counts once: the first record is kept. Benchmarks
    with one split, such as the peptides, are summarised over seeds instead.

    Args:
        records: the runs.
        reference: who says how many runs a benchmark has, and over what.
    """
    groups: dict[tuple[object, ...], dict[int, Record]] = {}
    for record in records:
        over = reference.expected_runs(record.dataset)[1]
        group = (
            record.model,
            record.dataset,
            record.semantics,
            record.config_hash,
            record.model_version,
            record.dataset_checksum,
            record.metric,
            record.dataset_remark,
            record.split if over == "seeds" else record.seed,
        )
        run = record.seed if over == "seeds" else record.split
        groups.setdefault(group, {}).setdefault(run, record)
    return [
        _summarise_group(runs, *reference.expected_runs(next(iter(runs.values())).dataset))
        for runs in groups.values()
    ]


def _summarise_group(runs: dict[int, Record], expected: int | None, over: str) -> Row:
    records = list(runs.values())
    first = records[0]
    seconds = [r.seconds_per_epoch for r in records if r.seconds_per_epoch is not None]
    machines = [f"{r.machine} (threads: {r.threads})" for r in records if r.machine]
    return Row(
        model=first.model,
        dataset=first.dataset,
        semantics=first.semantics,
        config_hash=first.config_hash,
        model_version=first.model_version,
        dataset_checksum=first.dataset_checksum,
        metric=first.metric,
        recipe=first.recipe,
        parameters=first.parameters,
        seed=None if over == "seeds" else first.seed,
        over=over,
        runs=tuple(runs),
        expected=expected,
        test_by_run={run: r.test for run, r in runs.items() if r.test is not None},
        val_by_run={run: r.val for run, r in runs.items() if r.val is not None},
        seconds_per_epoch=fmean(seconds) if seconds else None,
        seconds=_sum(record.seconds for record in records),
        best_epochs=tuple(r.best_epoch for r in records),
        ablation=ablation(first),
        direction=first.processing.get("direction", ""),
        features=first.processing.get("features", ""),
        batches=str((first.config.get("batch") or {}).get("kind") or ""),
        remark=first.dataset_remark,
        machines=tuple(dict.fromkeys(machines)),
    )


# Settings of a CSNN that make it another network than the paper's, and what to call them.
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "orthogonal": {"identity": "identity maps"},
    "scale": {"rectified": "exact zeros", "unit": "unit scales"},
    "block": {"prenorm": "pre-norm blocks"},
    "structure": {"rows": "rows of the adjacency matrix"},
    "step": {"wave": "waves"},
    "jk": dict.fromkeys(("cat", "max", "lstm"), "all layers at the end"),
}


def ablation(record: Record) -> str:
    """In words, what of a CSNN is not the paper's, beside the order of its operator."""
    if record.model != "csnn":
        return ""
    model: Mapping[str, Any] = record.config.get("model", {})
    words = (known.get(str(model.get(key)), "") for key, known in _OPTIONS.items())
    return ", ".join(filter(None, words))


def newest(records: Iterable[Record]) -> list[Record]:
    """Those of the newest version of each model."""
    kept = list(records)
    versions: dict[str, int] = {}
    for record in kept:
        versions[record.model] = max(record.model_version, versions.get(record.model, 0))
    return [record for record in kept if record.model_version == versions[record.model]]


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def select(rows: Sequence[Row]) -> list[tuple[Row, int]]:
    """One row for each label, seed and column, with the number of settings it beat.

    Only the newest version of a model counts. Of its settings, those with the most runs compete,
    and the best mean validation score wins; the first one of equals.
    """
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.label, row.seed, *row.column), []).append(row)
    chosen = []
    for group in groups.values():
        version = max(row.model_version for row in group)
        newest = [row for row in group if row.model_version == version]
        most = max(len(row.runs) for row in newest)
        rivals = [row for row in newest if len(row.runs) == most]
        chosen.append((max(rivals, key=validation), len(newest) - 1))
    return chosen


def validation(row: Row) -> float:
    """Larger is better, whatever the metric; never the test score."""
    return float("-inf") if row.val_mean is None else sign_of(row.metric) * row.val_mean


def sign_of(metric: str) -> float:
    """1 where larger is better, -1 where smaller is."""
    return -1.0 if metric in LOWER_IS_BETTER else 1.0
