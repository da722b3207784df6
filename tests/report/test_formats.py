"""Markdown and LaTeX: the same numbers as on the page, and no name can break them."""

from __future__ import annotations

import re
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.example import make

from coopsheaf.report.formats import FORMATS
from coopsheaf.report.formats import render as plain_render
from lab.published import PAPER

render = partial(plain_render, reference=PAPER)

HOSTILE = "<script>alert('x')</script> & \"q\" | a_b %5 $x$ {#} ~^ \\end{table}\n\x00`*[1](x)"


RECORDS = [
    *(make(split=split, test=0.8 + split / 100) for split in range(3)),
    make(dataset="squirrel", metric="accuracy", test=0.4),
    make(
        dataset="roman-empire-substitute", metric="accuracy", dataset_remark="substitute features"
    ),
]


def markdown_cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


@pytest.mark.parametrize("format", list(FORMATS))
def test_every_format_has_the_numbers_and_the_marks(format: str) -> None:
    text = render(RECORDS, format)
    sign = "$\\pm$" if format == "latex" else "±"
    assert f"81.00 {sign} 0.82" in text
    assert f"85.45 {sign} 0.53" in text
    for piece in (
        "3 of 10 splits",
        "substitute features",
        "population standard deviation",
        "ours",
        "paper",
    ):
        assert piece in text


def test_markdown_has_one_table_for_each_table() -> None:
    text = render(RECORDS)
    assert text.count("### ") == 2
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        rows = [markdown_cells(line) for line in block.splitlines()]
        assert len({len(row) for row in rows}) == 1
        assert len({len(line) for line in block.splitlines()}) == 1  # aligned as plain text
    assert re.search(r"\| csnn, paper semantics \| ours +\| +81\.00 ± 0\.82 \[\d\] \|", text)


def test_latex_is_balanced_and_uses_booktabs() -> None:
    text = render(RECORDS, "latex")
    assert text.startswith("% needs \\usepackage{booktabs}")
    for name in ("table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 2
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(f"\\{rule}") == 2
    for body in re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL):
        assert len({line.count(" & ") for line in body.strip().splitlines()}) == 1
    assert text.count("{") == text.count("}")
    assert "accuracy, \\%" in text


def test_no_name_can_break_latex() -> None:
    text = render([make(dataset=HOSTILE, model=HOSTILE)], "latex")
    assert text.count("\\end{table}") == 1
    assert "\\textless{}script\\textgreater{}" in text
    assert "\\textbar{} a\\_b \\%5 \\$x\\$ \\{\\#\\} \\textasciitilde{}\\textasciicircum{}" in text
    assert "\\textbackslash{}end\\{table\\}" in text
    (row,) = [line for line in text.splitlines() if "& ours" in line]
    assert row.count(" & ") == 2


def test_no_name_can_break_markdown() -> None:
    text = render([make(dataset=HOSTILE, model=HOSTILE)])
    (block,) = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert {len(markdown_cells(line)) for line in block.splitlines()} == {3}
    assert len(block.splitlines()) == 3
    assert "<script" not in text


@settings(max_examples=50)
@given(dataset=st.text(max_size=30), model=st.text(max_size=30), remark=st.text(max_size=30))
def test_any_text_can_be_a_name(dataset: str, model: str, remark: str) -> None:
    records = [make(dataset=dataset, model=model, dataset_remark=remark)]
    text = render(records)
    (block,) = re.findall(r"(?:^\| .*\n)+", text, re.MULTILINE)
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in block.splitlines()} == {4}
    latex = render(records, "latex")
    assert len(re.findall(r"(?<!\\)\{", latex)) == len(re.findall(r"(?<!\\)\}", latex))


@pytest.mark.parametrize("format", list(FORMATS))
def test_no_records_is_said(format: str) -> None:
    assert "There are no results yet" in render([], format)


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"`format` must be one of 'markdown', 'latex'; got 'pdf'"):
        render([], "pdf")
