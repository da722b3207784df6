"""Tables as Markdown, LaTeX or a web page. Imports no PyTorch.

Names of models and datasets may be anything a user typed: each format escapes them.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence

from coopsheaf.bench.layout import Cell, Table, layout
from coopsheaf.bench.records import Record
from coopsheaf.checks import check_choice

NO_RESULTS = "There are no results yet."


def render(
    records: Iterable[Record],
    format: str = "markdown",
    *,
    published: bool = True,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    timing: bool = False,
) -> str:
    """The tables of some records as text.

    Args:
        records: the runs.
        format: ``"markdown"``, ``"latex"`` (needs the package booktabs) or ``"html"`` (a page of
            its own).
        published, datasets, models, timing: see :func:`coopsheaf.bench.layout.layout`.
    """
    write = check_choice("format", format, FORMATS)
    return write(
        layout(records, published=published, datasets=datasets, models=models, timing=timing)
    )


def to_markdown(tables: Sequence[Table]) -> str:
    """GitHub's Markdown, padded so that it also reads well as plain text."""
    return "\n".join(_markdown_table(table) for table in tables) or f"{NO_RESULTS}\n"


def _markdown_table(table: Table) -> str:
    def text(cell: Cell) -> str:
        return _escape_markdown(cell.text) + "".join(f" [{number}]" for number in cell.notes)

    head = [
        f"{text(cell)} ({_escape_markdown(metric)})"
        for cell, metric in zip(table.datasets, table.metrics, strict=True)
    ]
    rows = [["Model", "Source", *head]]
    rows += [
        [_escape_markdown(line.model), line.source, *map(text, line.cells)] for line in table.lines
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [f"### {_escape_markdown(table.title)}", ""]
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
    lines += [f"- [{k}] {_escape_markdown(note)}" for k, note in enumerate(table.notes, start=1)]
    lines += [f"- {_escape_markdown(remark)}" for remark in table.remarks]
    return "\n".join([*lines, ""])


def _escape_markdown(text: str) -> str:
    escaped = html.escape(_one_line(text), quote=False)
    for character in "\\|*_`[]~#!":
        escaped = escaped.replace(character, "\\" + character)
    return escaped


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
    return _one_line(text).translate(_LATEX)


_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --paper: #ffffff; --rule: #8e8e93; --ours: #eaf2fb; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf0; --paper: #17171a; --rule: #6c6c72; --ours: #1e2d40; }
}
body { margin: 2rem auto; padding: 0 1rem; max-width: 75rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.5 system-ui, sans-serif; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.7rem; text-align: right; white-space: nowrap; }
th:first-child, .source { text-align: left; }
thead { border-block: 2px solid var(--ink); }
tbody { border-bottom: 2px solid var(--ink); }
tbody tr + tr { border-top: 1px solid var(--rule); }
tbody th { font-weight: normal; }
tr.ours { background: var(--ours); }
tr.ours th, tr.ours td { font-weight: 600; }
thead small { display: block; font-weight: normal; }
section { margin-bottom: 3rem; }
.notes { max-width: 50rem; font-size: 0.875rem; overflow-wrap: anywhere; }
""".strip()  # noqa: E501


def to_html(tables: Sequence[Table]) -> str:
    """One page that needs nothing else: no script, no network."""
    body = html_fragment(tables) or f"<p>{NO_RESULTS}</p>"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Results</title>\n<style>\n{_STYLE}\n</style>\n</head>\n"
        f"<body>\n<h1>Results</h1>\n{body}\n</body>\n</html>\n"
    )


def html_fragment(tables: Sequence[Table]) -> str:
    """The tables alone, to be put into another page."""
    return "\n".join(map(_html_table, tables))


def _html_table(table: Table) -> str:
    def text(cell: Cell) -> str:
        marks = ",".join(map(str, cell.notes))
        return _escape_html(cell.text) + (f"<sup>{marks}</sup>" if marks else "")

    title = _escape_html(table.title)
    head = "".join(
        f'<th scope="col">{text(cell)}<small>{_escape_html(metric)}</small></th>'
        for cell, metric in zip(table.datasets, table.metrics, strict=True)
    )
    lines = [
        f"<section>\n<h2>{title}</h2>",
        f'<div class="scroll" role="region" tabindex="0" aria-label="{title}">',
        '<table>\n<thead>\n<tr><th scope="col">Model</th>'
        f'<th scope="col" class="source">Source</th>{head}</tr>\n</thead>\n<tbody>',
    ]
    for line in table.lines:
        cells = "".join(f"<td>{text(cell)}</td>" for cell in line.cells)
        lines.append(
            f'<tr class="{line.source}"><th scope="row">{_escape_html(line.model)}</th>'
            f'<td class="source">{line.source}</td>{cells}</tr>'
        )
    lines.append('</tbody>\n</table>\n</div>\n<div class="notes">')
    if table.notes:
        items = "".join(f"<li>{_escape_html(note)}</li>" for note in table.notes)
        lines.append(f"<ol>{items}</ol>")
    lines += [f"<p>{_escape_html(remark)}</p>" for remark in table.remarks]
    return "\n".join([*lines, "</div>\n</section>"])


def _escape_html(text: str) -> str:
    return html.escape(_one_line(text))


def _one_line(text: str) -> str:
    """Without line breaks and other control characters, which no table can hold."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
}
