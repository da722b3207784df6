"""Places of a document."""

from __future__ import annotations

from pathlib import Path

import pytest

from coopsheaf.bench.documents import fill_document, fill_file, find_places, markdown_table

TEXT = "a\n<!-- one: begin -->\nold\n<!-- one: end -->\nb\n<!-- two: begin -->\n<!-- two: end -->\n"


def test_a_place_is_filled_and_nothing_else_is_touched() -> None:
    assert find_places(TEXT) == ["one", "two"]
    filled = fill_document(TEXT, "one", "new\n")
    assert filled == TEXT.replace("old", "new")
    assert fill_document(filled, "one", "new\n") == filled


def test_a_place_without_markers_is_named() -> None:
    with pytest.raises(ValueError, match="<!-- three: begin --> and <!-- three: end -->"):
        fill_document(TEXT, "three", "")
    with pytest.raises(ValueError, match="must hold the markers"):
        fill_document(TEXT.replace("<!-- two: end -->", ""), "two", "")


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(TEXT, encoding="utf-8")
    with pytest.raises(ValueError, match="three"):
        fill_file(path, {"one": "new\n", "three": ""})
    assert path.read_text(encoding="utf-8") == TEXT
    fill_file(path, {"one": "− new\n", "two": "more\n"})
    assert find_places(path.read_text(encoding="utf-8")) == ["one", "two"]
    assert "− new" in path.read_text(encoding="utf-8")


def test_tables() -> None:
    assert markdown_table("a | b", [("x", "1")], "lr") == "| a | b |\n|---|---:|\n| x | 1 |\n"
