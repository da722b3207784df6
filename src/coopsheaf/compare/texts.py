"""A comparison in words and tables. Imports no PyTorch."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

from coopsheaf.data.metrics import METRICS
from coopsheaf.report.paired import ONE_SPLIT, Paired
from coopsheaf.report.tables import NOTHING, PERCENT
from coopsheaf.report.text import escape_markdown, markdown_table, one_line

if TYPE_CHECKING:
    from coopsheaf.compare.comparison import ComparedModel, Comparison

# Two models are called equally good if the whole interval of their difference is within so much of
# a share, or of the larger score where scores are no shares.
MARGIN = 0.01
COLUMNS = ("model", "graph", "test", "against", "verdict", "validation", "fits", "time")


def label(metric: str) -> str:
    """What people call a metric."""
    return METRICS[metric].label if metric in METRICS else metric


def sentences(comparison: Comparison) -> Iterator[str]:
    """What the table means, undecided where it is undecided."""
    with_graph, without = comparison.best(sees_graph=True), comparison.best(sees_graph=False)
    if not comparison.folds:
        yield "Nothing can be said yet: no fold has all its fits."
        return
    if with_graph is not None and without is not None:
        yield _about_graph(comparison, with_graph, without)
    trees, csnn = "boosted-neighbours", "csnn"
    if {trees, csnn} <= {model.name for model in comparison.models if model.test}:
        yield _about_trees(comparison, trees, csnn)


def _about_graph(comparison: Comparison, one: ComparedModel, other: ComparedModel) -> str:
    paired = comparison.paired(one.name, other.name)
    if paired is None:
        return "Whether the graph helps cannot be said: there is no fold with both."
    by = _amount(comparison, paired)
    means = _mean(comparison, one), _mean(comparison, other)
    pair = f"{one.name} {means[0]}, {other.name} without it {means[1]}"
    if paired.verdict == ONE_SPLIT:
        return f"On one split the graph makes a difference of {by} ({pair}), which proves nothing."
    if paired.verdict == "better":
        return f"The graph adds {by.removeprefix('+')} ({pair})."
    if paired.verdict == "worse":
        return f"The graph does harm: {by} ({pair})."
    if _is_equal(comparison, paired):
        return f"The graph adds nothing to speak of: {by} ({pair})."
    return f"Whether the graph helps is undecided: {by} ({pair})."


def _about_trees(comparison: Comparison, trees: str, csnn: str) -> str:
    paired = comparison.paired(trees, csnn)
    who = "boosted trees with neighbour means"
    if paired is None:
        return f"{who.capitalize()} and CSNN have no fold in common."
    by = _amount(comparison, paired)
    if paired.verdict == ONE_SPLIT:
        return f"{who.capitalize()} differ from CSNN by {by} on it."
    if paired.verdict == "better":
        return f"{who.capitalize()} are better than CSNN: {by}."
    if paired.verdict == "worse":
        return f"CSNN is better than {who}, which are at {by}."
    if _is_equal(comparison, paired):
        return f"{who.capitalize()} are as good as CSNN: {by}."
    return f"Whether {who} are as good as CSNN is undecided: {by}."


def _is_equal(comparison: Comparison, paired: Paired) -> bool:
    """Whether the whole interval is within the margin."""
    half = paired.corrected_half_width
    if half is None:
        return False
    scores = (*paired.first, *paired.second)
    unit = 1.0 if comparison.metric in PERCENT else max(map(abs, scores))
    return abs(paired.mean) + half <= MARGIN * unit


def number(metric: str, value: float) -> str:
    """A score: four decimals of a share, four digits of anything else."""
    return f"{value:.4f}" if metric in PERCENT else f"{value:.4g}"


def _signed(metric: str, value: float) -> str:
    text = number(metric, value)
    if float(text) == 0:
        return "+" + text.removeprefix("-")
    return text if value < 0 else "+" + text


def _amount(comparison: Comparison, paired: Paired) -> str:
    """``+0.0412 ± 0.0121 AP``: positive where the first is better."""
    metric, half = comparison.metric, paired.corrected_half_width
    text = _signed(metric, paired.mean)
    return f"{text if half is None else f'{text} ± {number(metric, half)}'} {label(metric)}"


def _mean(comparison: Comparison, model: ComparedModel) -> str:
    return NOTHING if model.mean is None else number(comparison.metric, model.mean)


# --- tables ---------------------------------------------------------------------------------------


def heading(comparison: Comparison) -> str:
    """What was compared, in a line."""
    plan = comparison.plan
    total, there = len(plan.folds), len(comparison.folds)
    some = f"{there} of {total}" if there < total else str(total)
    first = plan.folds[0]
    trials = max(len(model.trials) for model in plan.models)
    over = _plural(plan.over, total)
    return (
        f"{plan.dataset} ({plan.size}): {label(plan.metric)} over {some} {over}, "
        f"{first.train}/{first.val}/{first.test} to train, validate and test in the first; "
        f"{trials} {_plural('trials', trials)} each"
    )


def _plural(word: str, count: int) -> str:
    return word.removesuffix("s") if count == 1 else word


def head(comparison: Comparison) -> list[str]:
    """The headings of the columns."""
    names = {
        "test": f"test {label(comparison.metric)}",
        "against": f"against {comparison.reference or NOTHING} (95 %)",
    }
    return [names.get(column, column) for column in COLUMNS]


def rows(comparison: Comparison) -> list[list[str]]:
    """The cells, a row for each model."""
    reference, metric = comparison.reference, comparison.metric
    lines = []
    for model in comparison.models:
        own = model.name == reference
        paired = None if own or reference is None else comparison.paired(model.name, reference)
        spread = "" if model.std is None else f" ± {number(metric, model.std)}"
        against = _amount(comparison, paired).removesuffix(f" {label(metric)}") if paired else ""
        lines.append(
            [
                model.name,
                "yes" if model.sees_graph else "no",
                _mean(comparison, model) + spread,
                against or NOTHING,
                paired.verdict if paired else NOTHING,
                NOTHING if model.val_mean is None else number(metric, model.val_mean),
                str(model.fits),
                _spell_time(model.seconds),
            ]
        )
    return lines


def _spell_time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def remarks(comparison: Comparison) -> list[str]:
    """What has to be said beside the numbers."""
    plan, found = comparison.plan, []
    missing = plan.fits - sum(model.fits for model in comparison.models)
    if missing:
        found.append(f"{missing} of {plan.fits} fits are missing")
    for model in comparison.models:
        if model.failed:
            found.append(f"{model.name}: {model.failed} of {model.fits} fits came to nothing")
    return [*found, *plan.remarks]


def explanation(comparison: Comparison) -> str:
    """How to read the table."""
    return (
        "mean ± population deviation; in each fold validation chose among the trials. Differences "
        "are paired, positive where the row is better; intervals of 95 %, each by itself, are "
        "corrected for training sets that overlap (Nadeau and Bengio, 2003)"
    )


def to_text(comparison: Comparison) -> str:
    """For a screen."""
    table = [head(comparison), *rows(comparison)]
    widths = [max(len(row[k]) for row in table) for k in range(len(COLUMNS))]
    lines = [one_line(heading(comparison)), ""]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines += ["", f"({explanation(comparison)})"]
    lines += [f"NOTE: {one_line(remark)}" for remark in remarks(comparison)]
    return "\n".join([*lines, "", comparison.sentence])


def to_markdown(comparison: Comparison) -> str:
    """For a document."""
    cells = [[escape_markdown(cell) for cell in row] for row in rows(comparison)]
    table = markdown_table(" | ".join(head(comparison)), cells, "llrrlrrr")
    notes = "".join(f"\n- {escape_markdown(remark)}" for remark in remarks(comparison))
    said = escape_markdown(comparison.sentence)
    return f"{escape_markdown(heading(comparison))}.\n\n{table}\n**{said}**\n" + (
        f"{notes}\n" if notes else ""
    )


def to_html(comparison: Comparison) -> str:
    """For a notebook; whatever names are, they are shown as text."""

    def cells(kind: str, row: list[str]) -> str:
        return "".join(f"<{kind}>{html.escape(one_line(cell))}</{kind}>" for cell in row)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows(comparison))
    notes = "".join(f"<li>{html.escape(one_line(r))}</li>" for r in remarks(comparison))
    return (
        f"<p>{html.escape(one_line(heading(comparison)))}</p>"
        f"<table><thead><tr>{cells('th', head(comparison))}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
        f"<p><strong>{html.escape(one_line(comparison.sentence))}</strong></p>"
        f"<p><small>{html.escape(explanation(comparison))}</small></p>"
        + (f"<ul>{notes}</ul>" if notes else "")
    )
