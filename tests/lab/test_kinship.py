"""The table of kinship in the documentation is that of the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from coopsheaf.models.kinship import sheaf_systems
from lab.__main__ import main
from lab.documents import fill_document
from lab.kinship import PLACE, kinship_table

PAGE = Path(__file__).parents[2] / "docs" / "kinship.md"


def test_the_page_is_up_to_date() -> None:
    """``python -m lab kinship --document docs/kinship.md`` writes it again."""
    text = PAGE.read_text("utf-8")
    assert text == fill_document(text, PLACE, kinship_table())


def test_every_system_has_a_row_of_ten_cells() -> None:
    head, _, *rows = kinship_table().splitlines()
    assert [row.split(" | ")[0] for row in rows] == [f"| `{name}`" for name in sheaf_systems()]
    assert {row.count(" | ") for row in (head, *rows)} == {9}


def test_it_is_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- kinship: begin -->\n<!-- kinship: end -->\n", "utf-8")
    for words in (["kinship"], ["kinship", "--document", str(page)]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    assert kinship_table() in capsys.readouterr().out
    assert kinship_table() in page.read_text("utf-8")
