"""What a run is worth, in the terminal: all metrics, a report by class, who was taken for whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coopsheaf.cli import show
from coopsheaf.data.metrics import METRICS
from coopsheaf.schema import brief_text
from coopsheaf.train.run import Run
from coopsheaf.train.summary import Summary

WIDEST = 12  # classes of a table of true and predicted ones that fits a terminal
PARTS = {"train": "training", "val": "validation", "test": "test", "new": "new"}


def show_summaries(run: Run, parts: Mapping[str, Summary], report: str) -> None:
    """All metrics of some parts, and for one of them a report by class.

    Args:
        run: the run.
        parts: what is known of each part, by its name.
        report: the part whose classes are reported.
    """
    if not parts:
        return
    show.table(
        ["metric", "better", *(PARTS[part] for part in parts)],
        [
            [
                METRICS[name].label + (" (selected)" if name == run.task.metric else ""),
                "higher" if METRICS[name].higher else "lower",
                *(number(summary.metrics.get(name)) for summary in parts.values()),
            ]
            for name in next(iter(parts.values())).metrics
        ],
    )
    for line in describe_decision(run):
        show.say(line)
    if report in parts:
        _show_classes(run, parts[report].confusion, PARTS[report])


def number(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.4f}"


def describe_decision(run: Run) -> list[str]:
    """How outputs became probabilities and classes, a line each."""
    decision, lines = run.decision, []
    if decision.calibrated:
        shift = f" and shift {decision.shift[0]:+.3f}" if run.task.kind == "binary" else ""
        lines.append(
            f"probabilities are calibrated on validation: temperature {1 / decision.scale:.3f}"
            f"{shift}"
        )
    if decision.rule:
        name = _names(run, 2)[1]
        chosen = "" if decision.rule == str(decision.threshold) else f" ({decision.rule})"
        lines.append(f"{name!r} is predicted above {decision.threshold:.4f}{chosen}")
    return [*lines, *(f"NOTE: {note}" for note in decision.notes)]


def _names(run: Run, count: int) -> list[str]:
    names = run.class_names or tuple(map(str, range(count)))
    return [brief_text(name, 30) for name in names]


def _show_classes(run: Run, counts: Sequence[Sequence[int]], part: str) -> None:
    """Precision, recall and F1 of every class; then rows of true and columns of predicted ones."""
    if not counts:
        return
    names = _names(run, len(counts))
    found = [sum(row[k] for row in counts) for k in range(len(counts))]
    rows = []
    for k, name in enumerate(names):
        hits, true = counts[k][k], sum(counts[k])
        rows.append(
            [
                name,
                _ratio(hits, found[k]),
                _ratio(hits, true),
                _ratio(2 * hits, found[k] + true),
                f"{true:,}",
                f"{found[k]:,}",
            ]
        )
    heads = ["class", "precision", "recall", "F1", "true", "predicted"]
    show.table(heads, rows, f"{part} part, by class")
    if len(counts) <= WIDEST:
        show.table(
            ["true \\ predicted", *names],
            [[name, *(f"{n:,}" for n in row)] for name, row in zip(names, counts, strict=True)],
            f"{part} part",
        )


def _ratio(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else "-"
