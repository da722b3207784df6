"""``python -m lab tables``: the paper's tables beside our runs."""

from __future__ import annotations

from pathlib import Path

from cli.program import Program
from report.example import make

from coopsheaf.train.records import append_record


def test_the_paper_stands_beside_our_runs(laboratory: Program) -> None:
    append_record(Path("results/csnn-tolokers.jsonl"), make())
    for kind in ("markdown", "latex", "html"):
        assert "85.45" in laboratory.ok("tables", "--format", kind)
    assert "holds no records" in laboratory("tables", "--results", ".").error


def test_documents_are_filled(laboratory: Program) -> None:
    Path("page.md").write_text("a\n<!-- summary: begin -->\n<!-- summary: end -->\nb\n")
    Path("results").mkdir()
    assert "results: holds no records" in laboratory("tables", "--document", "page.md").error
    for split in range(2):
        append_record(Path("results/csnn-tolokers.jsonl"), make(split=split))
    assert laboratory.ok("tables", "--document", "page.md") == "page.md: summary\n"
    assert (
        "| tolokers | AUROC, % | 85.00 ± 0.00 | 2 of 10 | 85.45 ± 0.53 |"
        in Path("page.md").read_text()
    )
    assert (
        "goes with --results alone"
        in laboratory("tables", "--format", "html", "--document", "page.md").error
    )
    assert "nowhere.md: cannot be read" in laboratory("tables", "--document", "nowhere.md").error
    Path("plain.md").write_text("nothing to fill")
    assert (
        "where NAME is one of summary, best-setting,"
        in laboratory("tables", "--document", "plain.md").error
    )
