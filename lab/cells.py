"""Cells of the tables of measurements, and what their marks mean. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from statistics import fmean, pstdev
from typing import TypeVar

from coopsheaf.report.paired import Paired
from coopsheaf.report.rows import Row
from coopsheaf.report.tables import NOTHING, format_score, protocol_differences, unit
from coopsheaf.report.text import escape_markdown
from lab.agenda import how_cut
from lab.compare import standard_error
from lab.published import PAPER

K = TypeVar("K", bound=Hashable)


def dataset_cell(row: Row) -> str:
    return escape_markdown(row.dataset) + (" †" if row.remark else "")


def data_cell(row: Row) -> str:
    return ", ".join(filter(None, (row.direction, row.features))) or NOTHING


def name_cell(row: Row) -> str:
    return escape_markdown(row.model) + untuned(row)


def untuned(row: Row) -> str:
    """A mark for settings that nobody chose for this dataset, or of less than published size."""
    if row.recipe == "default":
        return " (default settings)"
    cut = how_cut(row.model, row.dataset, row.recipe)
    return f" ({cut} than published)" if cut else ""


def count_cell(row: Row) -> str:
    return f"{len(row.runs)} of {row.expected}" if row.expected else str(len(row.runs))


def score_cell(metric: str, values: Sequence[float]) -> str:
    """Mean and population deviation."""
    if not values:
        return NOTHING
    return format_score(metric, fmean(values), pstdev(values) if len(values) > 1 else None)


def paper_cell(row: Row) -> str:
    """The printed number, marked where it was measured in another way."""
    entry = PAPER.beside(row.model, row.column)
    if entry is None:
        return NOTHING
    mark = " ‡" if protocol_differences(row, entry) else ""
    return format_score(entry.metric, entry.value, entry.deviation) + mark


def gap_cell(row: Row) -> str:
    """The distance from the paper, in the unit of the table and in standard errors."""
    entry, error = PAPER.beside(row.model, row.column), standard_error(row)
    if entry is None or row.mean is None:
        return NOTHING
    factor, digits = unit(row.metric)
    gap = row.mean - entry.value
    text = _signed(factor * gap, digits)
    return f"{text} ({_signed(gap / error, 1)} s.e.)" if error else text


def advantage_cell(paired: Paired, metric: str) -> str:
    """An advantage with its two intervals, in the unit of the table."""
    factor, digits = unit(metric)
    text = _signed(factor * paired.mean, digits)
    half, corrected = paired.half_width, paired.corrected_half_width
    if half is None or corrected is None:
        return text
    return f"{text} ± {factor * half:.{digits}f}; ± {factor * corrected:.{digits}f}"


def _signed(value: float, digits: int) -> str:
    """With its sign; nothing is +0, also from below."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def legend(rows: Iterable[Row], *, paper: bool = True) -> str:
    """What the marks mean, each once, with all that it is said of."""
    kept = list(rows)
    remarks = _gather((row.remark, row.dataset) for row in kept if row.remark)
    lines = [f"† {', '.join(datasets)}: {remark}" for remark, datasets in remarks.items()]
    if paper:
        differences = _gather(_differences(kept))
        lines += [
            f"‡ {model} on {', '.join(datasets)}: {text}"
            for (model, text), datasets in differences.items()
        ]
    return "".join(f"\n{escape_markdown(line)}.\n" for line in lines)


def _differences(rows: Iterable[Row]) -> Iterator[tuple[tuple[str, str], str]]:
    """Model, difference and dataset, wherever the paper measured in another way."""
    for row in rows:
        entry = PAPER.beside(row.model, row.column)
        for text in protocol_differences(row, entry) if entry else ():
            yield (row.model, text), row.dataset


def _gather(pairs: Iterable[tuple[K, str]]) -> dict[K, list[str]]:
    """The second parts of equal first parts, each once, in the order of appearance."""
    found: dict[K, dict[str, None]] = {}
    for key, name in pairs:
        found.setdefault(key, {})[name] = None
    return {key: list(names) for key, names in found.items()}
