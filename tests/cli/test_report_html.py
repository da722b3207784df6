"""``coopsheaf report --html``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli.program import SMALL, Program, subprogram, write_tables
from cli.test_help import WATCHED
from pages.results.test_page import check_closed
from report.example import make

from coopsheaf.train.records import append_record


def write_records() -> None:
    for split in range(3):
        append_record(
            Path("results/csnn-tolokers.jsonl"), make(split=split, test=0.8 + split / 100)
        )
    append_record(
        Path("results/own.jsonl"), make(model="<b>", dataset="own-<script>", metric="mae")
    )


def test_one_page(program: Program) -> None:
    write_records()
    assert program.ok("report", "--html", "-o", "pages/report.html") == (
        "4 records: pages/report.html\n"
    )
    text = Path("pages/report.html").read_text("utf-8")
    found = check_closed(text)
    assert "81.00 ± 0.82" in text
    assert "Seconds per epoch" in found.texts["h2"]
    assert "own-&lt;script&gt;" in text
    # Another spelling, the screen, and less of it.
    assert program.ok("report", "--format", "html") == text
    assert program.ok("report", "--html") == text
    assert "own-" not in program.ok("report", "--html", "--datasets", "tolokers")


def test_a_trained_run_brings_its_curve_and_its_explorer(program: Program, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    program.ok("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 3, *SMALL)  # fmt: skip
    Path("runs/csnn-own-nodes-0/explorer.html").write_text("")
    program.ok("report", "--html", "-o", "pages/report.html")  # looks in runs/ by itself
    text = Path("pages/report.html").read_text("utf-8")
    links = [link for link in check_closed(text).links if not link.startswith("#")]
    assert links == ["./../runs/csnn-own-nodes-0/explorer.html"]
    assert text.count('class="curve val"') == 1
    (path,) = re.findall(r'class="curve val" d="([^"]*)"', text)
    assert len(re.findall("[ML]", path)) == 3  # epochs
    # Elsewhere, if it is said where.
    Path("runs").rename("elsewhere")
    program.ok("report", "--html", "-o", "report.html")
    assert "Training curves" not in Path("report.html").read_text("utf-8")
    program.ok("report", "--html", "-o", "report.html", "--runs", "elsewhere")
    assert "./elsewhere/csnn-own-nodes-0/explorer.html" in Path("report.html").read_text("utf-8")
    # A run under way is passed over.
    file = Path("elsewhere/csnn-own-nodes-0/run.json")
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"status": "running"}))
    program.ok("report", "--html", "-o", "report.html", "--runs", "elsewhere")
    assert "Training curves" not in Path("report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--html", "--format", "latex"), "--html and --format exclude each other"),
        (("--runs", "results"), "--runs goes with --html; got --format markdown"),
        (("--html", "--runs", "nothing"), "nothing: there is no such folder of runs"),
        (("--html", "-o", "results"), "results: Is a directory"),
    ],
)
def test_wrong_calls_are_explained(program: Program, words: tuple[str, ...], message: str) -> None:
    write_records()
    assert message in program("report", *words).error
    assert not Path("report.html").exists()


def test_a_page_needs_no_pytorch(program: Program) -> None:
    write_records()
    done = subprogram(
        "report", "--html", "-o", "a.html", cwd=Path().resolve(), python=("-c", WATCHED)
    )
    assert done.code == 0, done.err
    assert done.err == "imported:"
