"""What a seed does: settings that were run with several. Imports no PyTorch.

The first seed of some settings is the one that stands in all tables; the others choose nothing and
are compared with it here alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, pstdev

from coopsheaf.report.rows import Row, summarise
from coopsheaf.report.tables import unit
from coopsheaf.report.text import escape_markdown, markdown_table
from coopsheaf.train.records import Record
from lab.cells import dataset_cell, score_cell
from lab.published import PAPER


def first_seeds(records: Iterable[Record]) -> list[Record]:
    """Of runs that differ in their seed alone, those of the seed that was recorded first.

    Benchmarks with one split are summarised over seeds; there all of them count.
    """
    first: dict[tuple[object, ...], int] = {}
    return [
        record
        for record in records
        if PAPER.expected_runs(record.dataset)[1] == "seeds"
        or first.setdefault(_settings(record), record.seed) == record.seed
    ]


def _settings(run: Record | Row) -> tuple[object, ...]:
    data = (run.dataset, run.dataset_checksum, run.metric)
    return (run.model, run.model_version, run.semantics, run.config_hash, *data)


@dataclass(frozen=True)
class SeedSpread:
    """The same settings with several seeds, on the same splits."""

    rows: tuple[Row, ...]

    @property
    def means(self) -> list[float]:
        """The test score of each seed, averaged over the splits."""
        return [fmean(row.test_by_run[split] for split in self.splits) for row in self.rows]

    @property
    def splits(self) -> list[int]:
        """Those that all seeds were run on."""
        common = set.intersection(*(set(row.test_by_run) for row in self.rows))
        return sorted(common)

    @property
    def within_split(self) -> float:
        """The deviation over the seeds on one split, averaged over the splits."""
        return fmean(pstdev(row.test_by_run[split] for row in self.rows) for split in self.splits)

    @property
    def largest(self) -> float:
        """The largest distance of two seeds on one split."""
        scores = ([row.test_by_run[split] for row in self.rows] for split in self.splits)
        return max(max(values) - min(values) for values in scores)


def seed_spreads(records: Iterable[Record]) -> list[SeedSpread]:
    """All settings that were run with several seeds on common splits."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in summarise(records, PAPER):
        if row.over == "splits":
            groups.setdefault(_settings(row), []).append(row)
    spreads = [SeedSpread(tuple(rows)) for rows in groups.values() if len(rows) > 1]
    return [spread for spread in spreads if spread.splits]


def seed_table(records: Iterable[Record]) -> str:
    """Beside the deviation over splits, what seeds alone do."""
    lines = []
    for spread in seed_spreads(records):
        first = spread.rows[0]
        factor, digits = unit(first.metric)
        lines.append(
            (
                dataset_cell(first),
                escape_markdown(first.model),
                ", ".join(str(row.seed) for row in spread.rows),
                str(len(spread.splits)),
                score_cell(first.metric, [first.test_by_run[split] for split in spread.splits]),
                ", ".join(f"{factor * mean:.{digits}f}" for mean in spread.means),
                f"{factor * pstdev(spread.means):.{digits}f}",
                f"{factor * spread.within_split:.{digits}f}",
                f"{factor * spread.largest:.{digits}f}",
            )
        )
    head = (
        "dataset | model | seeds | splits | first seed, ± over splits | mean of each seed"
        " | ± of these means | ± over seeds on one split | largest move of one split"
    )
    return markdown_table(head, lines, "lllrrrrrr") if lines else "None.\n"
