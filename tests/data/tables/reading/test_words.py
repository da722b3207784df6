import pytest

from coopsheaf.data.tables.reading.words import plain_number


@pytest.mark.parametrize(
    "space", [" ", "\t", "\n", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\u2003"]
)
def test_space_around_a_number_does_not_matter(space: str) -> None:
    assert plain_number(f"{space}-1.5e2{space}") == -150.0


@pytest.mark.parametrize("text", ["", "01", "1_0", "1 0", "1\x1f0", "inf", "1e999", "nan", "٣"])
def test_what_is_no_plain_number(text: str) -> None:
    assert plain_number(text) is None
