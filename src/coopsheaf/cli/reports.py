"""``coopsheaf report`` and ``coopsheaf models``. Imports no PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from coopsheaf.checks import check_choice
from coopsheaf.cli import args
from coopsheaf.cli.passed_over import say_passed_over
from coopsheaf.files import write_atomically
from coopsheaf.models.registry import MODELS
from coopsheaf.pages.results.page import results_page
from coopsheaf.pages.results.run_files import find_runs
from coopsheaf.report.formats import FORMATS, render
from coopsheaf.report.reference import NOTHING_PRINTED, Reference
from coopsheaf.train.records import PassedOver, find_records


def report(command: args.Report) -> int:
    return write_report(command, NOTHING_PRINTED)


def write_report(command: args.Report, reference: Reference) -> int:
    """The tables of a folder of records, beside printed numbers if there are any."""
    check_choice("--format", command.format, dict.fromkeys((*FORMATS, "html")))
    if command.html and command.format == "latex":
        raise ValueError("--html and --format exclude each other; got --format latex")
    web = command.html or command.format == "html"
    if command.runs is not None and not web:
        raise ValueError(f"--runs goes with --html; got --format {command.format}")
    if command.runs is not None and not command.runs.is_dir():
        raise ValueError(f"{command.runs}: there is no such folder of runs")
    if not command.results.is_dir():
        raise ValueError(f"{command.results}: there is no such folder of records")
    passed_over = PassedOver()
    records = find_records(command.results, passed_over)
    if not records:
        bad = passed_over.reasons
        first = f"; {len(bad)} could not be used, the first: {bad[0]}" if bad else ""
        raise ValueError(f"{command.results}: holds no records; run `coopsheaf train` first{first}")
    for what, wanted, known in (
        ("--datasets", command.datasets, {record.dataset for record in records}),
        ("--models", command.models, {record.model for record in records}),
    ):
        for name in wanted or ():
            check_choice(what, name, dict.fromkeys(sorted(known)))
    options: dict[str, Any] = {
        "reference": reference,
        "datasets": command.datasets,
        "models": command.models,
        "timing": True,
    }
    if web:
        folder = Path() if command.output is None else command.output.parent
        runs = find_runs(command.runs or Path("runs"), passed_over)
        text = results_page(records, runs=runs, folder=folder, **options)
    else:
        text = render(records, command.format, **options)
    if command.output is None:
        sys.stdout.write(text)
    else:
        write_atomically(command.output, text.encode())
        sys.stdout.write(f"{len(records)} records: {command.output}\n")
    say_passed_over(passed_over.reasons)
    return 0


def models() -> int:
    """One line per model; nothing is folded, so that it can be searched."""
    head = ("name", "inductive", "directed", "graphs", "weights", "features", "what")
    rows: list[tuple[str, ...]] = [head]
    for name, info in MODELS.items():
        kinds = (info.inductive, info.directed, info.graph_level)
        flags = (*kinds, info.edge_weight, info.edge_attr)
        what = info.description + (f" ({info.paper})" if info.paper else "")
        rows.append((name, *("yes" if flag else "-" for flag in flags), what))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    sys.stdout.write(
        "\ninductive: works on other graphs than it was trained on; "
        "directed: the direction of edges counts;\n"
        "graphs: outputs for whole graphs; weights: uses edge weights; "
        "features: uses features of edges.\n"
    )
    return 0
