"""Numbers that others have printed, to stand beside ours. Imports no PyTorch.

The library brings none: :data:`NOTHING_PRINTED` makes tables of our own runs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ColumnKey = tuple[str, str, str, str]  # dataset, metric, remark, checksum

# Other files of a dataset are run on its splits.
_VARIANTS = ("-directed", "-corrected", "-substitute", "-partial", "-generated")

# Words of a dataset's remark that forbid a comparison.
_NOT_COMPARABLE = ("substitute", "partial", "missing", "not comparable")


@dataclass(frozen=True)
class Protocol:
    """Where a row of a table comes from, and which standard deviation it prints.

    Args:
        source: who ran it, as far as is known.
        std: ``"population"`` or ``"sample"``; empty where nobody says.
    """

    source: str
    std: str


@dataclass(frozen=True)
class PaperTable:
    """One table of results.

    Args:
        name: what it is called here.
        title: what it is.
        metrics: its columns, as our registry names the datasets, with their metrics.
        runs: runs behind a number.
        over: what the runs differ in, ``"splits"`` or ``"seeds"``.
        homophily: the row "edge homophily", as printed.
        caption_best: in how many columns the caption calls CSNN the best; ``None`` if in none.
        test_per_train: test nodes per training node of a split.
    """

    name: str
    title: str
    metrics: Mapping[str, str]
    runs: int
    over: str
    homophily: Mapping[str, float]
    caption_best: int | None = None
    test_per_train: float = 0.5


@dataclass(frozen=True)
class Published:
    """One printed number.

    Args:
        table: name of its table in ``TABLES``.
        model: the registry's name of the model, or one made in the same way.
        label: the model as the paper prints it.
        column: the heading it stands under, as our registry names that dataset.
        dataset: the dataset it was measured on, as far as is known.
        metric: ``"accuracy"``, ``"auroc"``, ``"ap"``, ``"mae"`` or ``"mrr"``.
        mean, std: as printed: hundredths.
        runs: runs behind it.
        protocol: where it comes from.
        direction: of the edges, as the settings of data name it; empty where nobody says.
        remark: what a table must say beside it.
    """

    table: str
    model: str
    label: str
    column: str
    dataset: str
    metric: str
    mean: float
    std: float
    runs: int
    protocol: Protocol
    direction: str = ""
    remark: str = ""

    @property
    def value(self) -> float:
        """The mean as our records have it: a share in [0, 1], or the error itself."""
        return self.mean / 100

    @property
    def features(self) -> str:
        """What was done to the features; empty where nobody says."""
        # Of this table, all whose loaders are known divide each node's features by their sum.
        known = self.table == "geom-gcn" and (self.direction or self.model == "mlp")
        return "row-normalized" if known else ""

    @property
    def deviation(self) -> float:
        """The standard deviation as printed, in the unit of ``value``."""
        return self.std / 100

    @property
    def population_deviation(self) -> float | None:
        """``deviation`` over the number of runs, not one less; ``None`` if its kind is unknown."""
        if not self.protocol.std:
            return None
        factor = ((self.runs - 1) / self.runs) ** 0.5 if self.protocol.std == "sample" else 1.0
        return self.deviation * factor


@dataclass(frozen=True)
class Runtime:
    """Seconds per epoch as printed: mean over ten epochs on one of several GPUs.

    ``best_baseline`` is the paper's bold print: of the baselines in that table, the one with the
    best score on that dataset.
    """

    model: str
    dataset: str
    seconds: float
    best_baseline: bool


@dataclass(frozen=True)
class Reference:
    """Printed numbers, and what they say about benchmarks.

    Args:
        tables: by name.
        entries: the numbers in them.
        runtimes: seconds per epoch.
        same_nodes: datasets with the same nodes as another: its numbers may stand beside them.
    """

    tables: Mapping[str, PaperTable] = field(default_factory=dict)
    entries: tuple[Published, ...] = ()
    runtimes: tuple[Runtime, ...] = ()
    same_nodes: Mapping[str, str] = field(default_factory=dict)

    def find(self, model: str, dataset: str) -> Published | None:
        """The printed number of a model on a dataset, or on one with the same nodes."""
        for name in (dataset, self.same_nodes.get(dataset)):
            for entry in self.entries:
                if entry.model == model and entry.dataset == name:
                    return entry
        return None

    def runtime(self, model: str, column: ColumnKey) -> Runtime | None:
        """The printed seconds per epoch beside a column."""
        for entry in self.runtimes if is_comparable(column) else ():
            if (entry.model, entry.dataset) == (model, column[0]):
                return entry
        return None

    def beside(self, model: str, column: ColumnKey) -> Published | None:
        """The printed number beside a column; none beside data that is not the paper's."""
        entry = self.find(model, column[0])
        fits = entry is not None and entry.metric == column[1] and is_comparable(column)
        return entry if fits else None

    def expected_runs(self, dataset: str) -> tuple[int | None, str]:
        """How many runs a whole benchmark has, and what they differ in."""
        table = self.table_with(base_name(dataset))
        return (None, "splits") if table is None else (table.runs, table.over)

    def table_with(self, dataset: str) -> PaperTable | None:
        """The table that has this column."""
        return next((table for table in self.tables.values() if dataset in table.metrics), None)

    def table_of(self, column: ColumnKey) -> PaperTable | None:
        """The table in which a column of ours has its place."""
        dataset, metric, _, _ = column
        known = any(entry.dataset == dataset for entry in self.entries)
        table = self.table_with(base_name(dataset)) if known and is_comparable(column) else None
        return table if table is not None and table.metrics[base_name(dataset)] == metric else None

    def empty_column(self, dataset: str) -> ColumnKey | None:
        """The column of a dataset that has printed numbers and no runs of ours."""
        for entry in self.entries:
            if entry.dataset == dataset:
                return dataset, entry.metric, "", ""
        return None


NOTHING_PRINTED = Reference()


def is_comparable(column: ColumnKey) -> bool:
    """Whether printed numbers may stand beside: never beside substitute or partial data."""
    return not any(word in column[2].lower() for word in _NOT_COMPARABLE)


def base_name(dataset: str) -> str:
    """The dataset that this one is another file of."""
    for suffix in _VARIANTS:
        if dataset.endswith(suffix):
            return dataset.removesuffix(suffix)
    return dataset
