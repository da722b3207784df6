"""Places of a document."""

from __future__ import annotations

from pathlib import Path

import pytest

from coopsheaf.report.text import escape_markdown, markdown_table
from lab.documents import fill_document, fill_files, find_places

TEXT = "a\n<!-- one: begin -->\nold\n<!-- one: end -->\nb\n<!-- two: begin -->\n<!-- two: end -->\n"


def test_a_place_is_filled_and_nothing_else_is_touched() -> None:
    assert find_places(TEXT) == ["one", "two"]
    filled = fill_document(TEXT, "one", "new\n")
    assert filled == TEXT.replace("old", "new")
    assert fill_document(filled, "one", "new\n") == filled


def test_a_place_without_its_two_markers_is_named() -> None:
    with pytest.raises(ValueError, match="<!-- three: begin --> and <!-- three: end -->"):
        fill_document(TEXT, "three", "")
    with pytest.raises(ValueError, match="once each"):
        fill_document(TEXT.replace("<!-- two: end -->", ""), "two", "")
    with pytest.raises(ValueError, match="once each"):
        fill_document(TEXT + TEXT, "one", "")


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first.md", tmp_path / "second.md"
    first.write_bytes(TEXT.encode())
    for text, error in (
        ("nothing", "second.md: must hold a line .* where NAME is one of one, two"),
        (TEXT.replace("<!-- two: end -->", ""), "second.md: .* once each"),
        (None, "second.md: cannot be read"),
    ):
        if text is None:
            second.unlink()
        else:
            second.write_text(text)
        with pytest.raises(ValueError, match=error):
            fill_files([first, second], {"one": "new\n", "two": "more\n"})
        assert first.read_text() == TEXT
    second.write_bytes(b"a\r\n<!-- two: begin -->\r\n<!-- two: end -->\r\n")
    filled = fill_files([first, second], {"one": "− new\n", "two": "more\n"})
    assert filled == {first: ["one", "two"], second: ["two"]}
    assert "− new" in first.read_text(encoding="utf-8")
    assert second.read_bytes().startswith(b"a\r\n")


def test_names_are_read_as_they_stand() -> None:
    assert escape_markdown("a|b_c\n<i>") == "a\\|b\\_c &lt;i&gt;"


def test_tables() -> None:
    assert markdown_table("a | b", [("x", "1")], "lr") == "| a | b |\n|---|---:|\n| x | 1 |\n"
