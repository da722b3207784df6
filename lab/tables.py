"""``python -m lab tables``: the paper's tables beside our runs. Imports no PyTorch."""

from __future__ import annotations

import sys

from coopsheaf.cli import args as user_args
from coopsheaf.cli.reports import write_report
from lab import args
from lab.documents import fill_files
from lab.published import PAPER
from lab.reproduction import contents, load_evidence


def tables(command: args.Tables) -> int:
    if command.document:
        return _fill_documents(command)
    report = user_args.Report(
        results=command.results,
        format=command.format,
        runs=command.runs,
        output=command.output,
        datasets=command.datasets,
        models=command.models,
    )
    return write_report(report, PAPER)


def _fill_documents(command: args.Tables) -> int:
    others = (command.output, command.runs, command.datasets, command.models)
    if any(others) or command.format != "markdown":
        raise ValueError("--document goes with --results alone: its places say what belongs there")
    evidence = load_evidence(command.results)
    if not evidence.records:
        raise ValueError(f"{command.results}: holds no records; run `coopsheaf bench` first")
    for document, places in fill_files(command.document, contents(evidence)).items():
        sys.stdout.write(f"{document}: {', '.join(places)}\n")
    return 0
