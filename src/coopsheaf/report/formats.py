"""Tables as Markdown or LaTeX. Imports no PyTorch.

Names of models and datasets may be anything a user typed: each format escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from coopsheaf.checks import check_choice
from coopsheaf.report.reference import NOTHING_PRINTED, Reference
from coopsheaf.report.tables import NO_RESULTS, Cell, Table, layout
from coopsheaf.report.text import escape_markdown, one_line
from coopsheaf.train.records import Record


def render(
    records: Iterable[Record],
    format: str = "markdown",
    *,
    reference: Reference = NOTHING_PRINTED,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    timing: bool = False,
) -> str:
    """The tables of some records as text.

    Args:
        records: the runs.
        format: ``"markdown"``, ``"latex"`` (needs the package booktabs).
        reference, datasets, models, timing: see :func:`coopsheaf.report.tables.layout`.
    """
    write = check_choice("format", format, FORMATS)
    return write(records, reference=reference, datasets=datasets, models=models, timing=timing)


def to_markdown(tables: Sequence[Table]) -> str:
    """GitHub's Markdown, padded so that it also reads well as plain text."""
    return "\n".join(_markdown_table(table) for table in tables) or f"{NO_RESULTS}\n"


def _markdown_table(table: Table) -> str:
    def text(cell: Cell) -> str:
        return escape_markdown(cell.text) + "".join(f" [{number}]" for number in cell.notes)

    head = [
        f"{text(cell)} ({escape_markdown(metric)})"
        for cell, metric in zip(table.datasets, table.metrics, strict=True)
    ]
    rows = [["Model", "Source", *head]]
    rows += [
        [escape_markdown(line.model), line.source, *map(text, line.cells)] for line in table.lines
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [f"### {escape_markdown(table.title)}", ""]
    for number, row in enumerate(rows):
        padded = [
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(f"| {' | '.join(padded)} |")
        if number == 0:
            rules = ["-" * w if k < 2 else "-" * (w - 1) + ":" for k, w in enumerate(widths)]
            lines.append(f"| {' | '.join(rules)} |")
    lines.append("")
    lines += [f"- [{k}] {escape_markdown(note)}" for k, note in enumerate(table.notes, start=1)]
    lines += [f"- {escape_markdown(remark)}" for remark in table.remarks]
    return "\n".join([*lines, ""])


def to_latex(tables: Sequence[Table]) -> str:
    """Floating tables for a document that uses the package booktabs."""
    text = "\n".join(_latex_table(table) for table in tables)
    return "% needs \\usepackage{booktabs}\n" + (text or f"% {NO_RESULTS}\n")


def _latex_table(table: Table) -> str:
    def text(cell: Cell) -> str:
        marks = ",".join(map(str, cell.notes))
        return _escape_latex(cell.text) + (f"\\textsuperscript{{{marks}}}" if marks else "")

    lines = [
        "\\begin{table}",
        "  \\centering",
        f"  \\caption{{{_escape_latex(table.title)}}}",
        f"  \\begin{{tabular}}{{ll{'c' * len(table.datasets)}}}",
        "    \\toprule",
        f"    Model & Source & {' & '.join(map(text, table.datasets))} \\\\",
        f"    & & {' & '.join(map(_escape_latex, table.metrics))} \\\\",
        "    \\midrule",
    ]
    for line in table.lines:
        cells = [_escape_latex(line.model), line.source, *map(text, line.cells)]
        lines.append(f"    {' & '.join(cells)} \\\\")
    lines += ["    \\bottomrule", "  \\end{tabular}"]
    notes = [
        f"\\textsuperscript{{{k}}}~{_escape_latex(note)}"
        for k, note in enumerate(table.notes, start=1)
    ]
    notes += map(_escape_latex, table.remarks)
    if notes:
        lines.append(f"  \\par\\smallskip\\footnotesize {'. '.join(notes)}.")
    return "\n".join([*lines, "\\end{table}", ""])


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "×": r"$\times$",
        "–": r"--",
    }
)


def _escape_latex(text: str) -> str:
    return one_line(text).translate(_LATEX)


def _markdown(records: Iterable[Record], **options: Any) -> str:
    return to_markdown(layout(records, **options))


def _latex(records: Iterable[Record], **options: Any) -> str:
    return to_latex(layout(records, **options))


FORMATS: dict[str, Callable[..., str]] = {"markdown": _markdown, "latex": _latex}
