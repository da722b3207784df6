"""The three formats: the same numbers, and no name can break them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from bench.example import make
from hypothesis import given, settings
from hypothesis import strategies as st

from coopsheaf.bench.layout import layout
from coopsheaf.bench.render import FORMATS, html_fragment, render

HOSTILE = "<script>alert('x')</script> & \"q\" | a_b %5 $x$ {#} ~^ \\end{table}\n\x00`*[1](x)"


RECORDS = [
    *(make(split=split, test=0.8 + split / 100) for split in range(3)),
    make(dataset="squirrel", metric="accuracy", test=0.4),
    make(
        dataset="roman-empire-substitute", metric="accuracy", dataset_remark="substitute features"
    ),
]


class Page(HTMLParser):
    """Collects tags, attributes and the text of table cells; checks that tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("th", "td"):
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "th" in self.open or "td" in self.open:
            self.cells[-1][-1] += data


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


def test_html_is_a_page_of_its_own() -> None:
    text = render(RECORDS, "html")
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.tags.count("table") == 2
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert "http" not in text.replace("http-equiv", "")
    assert "color-scheme: light dark" in text
    assert "prefers-color-scheme: dark" in text
    assert "overflow-x: auto" in text
    assert 'name="viewport"' in text
    first, second = (page.cells[:12], page.cells[12:])  # a head, ten lines of the paper, ours
    assert {len(row) for row in first} == {4}
    assert {len(row) for row in second} == {3}
    assert [row[:2] for row in first[-2:]] == [["csnn", "paper"], ["csnn, paper semantics", "ours"]]


def test_html_without_a_page_around_it() -> None:
    text = html_fragment(layout(RECORDS))
    assert text.startswith("<section>")
    assert "<html" not in text
    assert text in render(RECORDS, "html")


def test_no_name_can_script_or_break_a_page() -> None:
    for changes in (
        {"dataset": HOSTILE},
        {"model": HOSTILE},
        {"dataset_remark": HOSTILE},
        {"metric": HOSTILE},
        {"semantics": HOSTILE},
        {"machine": HOSTILE},
    ):
        text = render([make(**changes)], "html", timing=True)
        page = Page(text)
        assert "script" not in page.tags
        assert page.attributes <= {
            "lang",
            "charset",
            "name",
            "content",
            "http-equiv",
            "class",
            "role",
            "tabindex",
            "aria-label",
            "scope",
        }
        assert "<script" not in text
        assert "\x00" not in text


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
    Page(render(records, "html"))
    text = render(records)
    (block,) = re.findall(r"(?:^\| .*\n)+", text, re.MULTILINE)
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in block.splitlines()} == {4}
    latex = render(records, "latex")
    assert len(re.findall(r"(?<!\\)\{", latex)) == len(re.findall(r"(?<!\\)\}", latex))


@pytest.mark.parametrize("format", list(FORMATS))
def test_no_records_is_said(format: str) -> None:
    assert "There are no results yet" in render([], format)


def test_an_unknown_format_is_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"`format` must be one of 'markdown', 'latex', 'html'; got 'pdf'"
    ):
        render([], "pdf")
