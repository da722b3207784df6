"""Plain sentences from paired comparisons. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coopsheaf.data.catalogue import DATASETS
from coopsheaf.report.paired import VERDICTS, Paired
from coopsheaf.report.reference import base_name
from coopsheaf.report.rows import sign_of
from coopsheaf.report.tables import unit
from coopsheaf.report.text import escape_markdown, markdown_table
from lab.cells import advantage_cell, score_cell
from lab.contest.entries import Standing
from lab.published import PAPER


@dataclass(frozen=True)
class Finding:
    """Two settings on the same splits of one data set.

    Args:
        dataset, metric: where.
        first, second: what the two are, in a few words.
        paired: their test scores.
        source: which records, in a few words.
    """

    dataset: str
    metric: str
    first: str
    second: str
    paired: Paired
    source: str


def test_per_train(dataset: str) -> float:
    """Test nodes per training node, for the corrected interval; ½ where it is not known."""
    table = PAPER.table_with(base_name(dataset))
    if table is not None:
        return table.test_per_train
    info = DATASETS.get(dataset)
    sizes = info.published.split_sizes if info else None
    return sizes[2] / sizes[0] if sizes else 0.5


def pair(first: Standing, second: Standing, source: str) -> Finding | None:
    """The chosen trials of two contestants on their common splits; ``None`` without several."""
    if not (first.done and second.done):
        return None
    ours, theirs = first.tests, second.tests
    common = sorted(ours.keys() & theirs.keys())
    if len(common) < 2:
        return None
    a, b = (tuple(side[split] for split in common) for side in (ours, theirs))
    paired = Paired(a, b, sign_of(first.metric), test_per_train(first.dataset))
    names = (first.contestant.name, second.contestant.name)
    return Finding(first.dataset, first.metric, *names, paired, source)


def set_sentence(finding: Finding) -> str:
    """What a comparison says of CSNN on a data set, in one line."""
    factor, digits = unit(finding.metric)
    mean, half = finding.paired.mean, finding.paired.corrected_half_width
    sign = f"{factor * mean:+.{digits}f}"
    width = "" if half is None else f" ± {factor * half:.{digits}f}"
    verdict = finding.paired.verdict
    end = {
        "better": "better than the best rival",
        "worse": "worse than the best rival",
        "undecided": "undecided: the interval holds zero",
    }.get(verdict, "not known: there is one split")
    return (
        f"{finding.dataset}: CSNN is {end} ({finding.first} against {finding.second}, "
        f"{sign}{width} over {len(finding.paired.differences)} splits)."
    )


def conclusion(findings: Sequence[Finding], subject: str) -> str:
    """What all comparisons say together: yes, no, it depends, or not decided."""
    if not findings:
        return "Not measured yet."
    sets = {
        word: list(dict.fromkeys(f.dataset for f in findings if f.paired.verdict == word))
        for word in VERDICTS
    }
    better, worse = (_names(sets[word]) for word in ("better", "worse"))
    higher = sum(finding.paired.mean > 0 for finding in findings)
    tail = f" The mean of {subject} is higher in {higher} of {plural(len(findings), 'comparison')}."
    if better and worse:
        return f"It depends: {subject} is better on {better}, and worse on {worse}.{tail}"
    if better:
        return f"Yes, on {better}: there {subject} is better, and nowhere worse.{tail}"
    if worse:
        return f"No: {subject} is worse on {worse}, and nowhere better.{tail}"
    return f"Undecided: no difference is larger than its interval.{tail}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)


def finding_table(findings: Sequence[Finding]) -> str:
    """A row for each comparison."""
    head = (
        "dataset | first | second | splits | first's test | second's test"
        " | advantage of the first (95 % interval; corrected) | the first is | from"
    )
    lines = [
        (
            escape_markdown(one.dataset),
            escape_markdown(one.first),
            escape_markdown(one.second),
            str(len(one.paired.differences)),
            score_cell(one.metric, one.paired.first),
            score_cell(one.metric, one.paired.second),
            advantage_cell(one.paired, one.metric),
            one.paired.verdict,
            escape_markdown(one.source),
        )
        for one in findings
    ]
    return markdown_table(head, lines, "lllrrrrll")
