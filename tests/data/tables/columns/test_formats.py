"""Numbers, truth values and dates as people write them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopsheaf.data.tables.columns.formats import (
    NumberFormat,
    Numbers,
    read_numbers,
    read_times,
)
from coopsheaf.data.tables.reading.cells import NumberCells, TextCells, TimeCells

NAN = math.nan


def numbers(*texts: str, format: NumberFormat | None = None) -> Numbers:
    return read_numbers(TextCells(texts), format)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", " -2.5 ", "1e3", ".5", "+4"], [1, -2.5, 1000, 0.5, 4]),
        (["1,234.56", "12"], [1234.56, 12]),
        (["1,234,567", "0.5"], [1234567, 0.5]),
        (["1.234,56", "-3,5", "1.234"], [1234.56, -3.5, 1234]),
        (["1 234,5", "7", "1\u00a0234\u202f567"], [1234.5, 7, 1234567]),
        (["1'234.5", "2’000"], [1234.5, 2000]),
        (["12 %", "5%", "0"], [0.12, 0.05, 0]),
        (["$5", "-$3.50", "$-2", "(1,234)", "$ (5)", "($6)"], [5, -3.5, -2, -1234, -5, -6]),
        (["5 €", "€5", "EUR 5", "5 CHF", "5,5 kr"], [5, 5, 5, 5, 5.5]),
        (["−4", "1,5"], [-4, 1.5]),
        (["12,34,567"], [1234567]),
        (["0,123", "1,234"], [0.123, 1.234]),  # no thousands begin with 0
        (["1,234", "1,5"], [1.234, 1.5]),
        (["1.234", "1,5"], [1234, 1.5]),
        (["1.234", "2.345"], [1.234, 2.345]),
        (["", "NA", "?", "-", "null", "1,5"], [NAN, NAN, NAN, NAN, NAN, 1.5]),
    ],
)
def test_numbers(texts: list[str], values: list[float]) -> None:
    found = numbers(*texts)
    np.testing.assert_allclose(found.values, values, rtol=1e-15)
    assert len(found.odd) == 0


@pytest.mark.parametrize(
    "odd",
    ["x", "2020_01", "00123", "0x10", "--5", "-(5)", "1,23", "1,2345.6", "$", "%", "$5$", "1e999",
     "inf", "1.2.3", "12 34", "٣", "(5", "5%%", "9" * 400 + "%"],
)  # fmt: skip
def test_odd_cells(odd: str) -> None:
    found = numbers("1,234.5", odd, "", "2,345.5", odd, "1,000.5")
    assert found.odd.tolist() == [1, 4]
    np.testing.assert_equal(found.values, [1234.5, NAN, NAN, 2345.5, NAN, 1000.5])


def test_what_is_ambiguous_is_said() -> None:
    found = numbers("1,234", "5,678")
    assert found.values.tolist() == [1234, 5678]
    assert found.remarks[0].startswith("'1,234' could be 1234 or 1.234, and no other cell tells")
    for clear in (["1,234", "5"], ["1 234", "5"], ["1,234", "0.5"], ["1.234", "x"]):
        # 5 says nothing about the comma; a half does, and blanks are the same either way.
        assert bool(numbers(*clear).remarks) == (clear == ["1,234", "5"])


def test_several_currencies_and_some_per_cent_are_said() -> None:
    assert "several currencies ('$', '€')" in numbers("$5", "€ 6").remarks[0]
    assert "1 cells have a % sign and 1 have none" in numbers("5 %", "6").remarks[0]
    assert numbers("5 %", "0").remarks == ()


def test_a_format_is_applied_unchanged() -> None:
    german = numbers("1.234,5").format
    assert german == NumberFormat(",", ".")
    later = numbers("1.234", "7", "1,234.5", format=german)
    np.testing.assert_equal(later.values, [1234, 7, NAN])
    assert later.odd.tolist() == [2]
    # Numbers that come as numbers have no format.
    typed = read_numbers(NumberCells(np.array([1.234, NAN])), german)
    np.testing.assert_equal(typed.values, [1.234, NAN])
    infinite = read_numbers(NumberCells(np.array([1.5, np.inf])), german)
    np.testing.assert_equal(infinite.values, [1.5, NAN])
    assert infinite.odd.tolist() == [1]


def write(value: float, decimal: str, thousands: str) -> str:
    plain = f"{value:,.2f}"
    return plain.translate(str.maketrans({",": thousands, ".": decimal}))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=8),
    st.sampled_from([".,", ". ", ".'", ".", ",.", ", ", ",'", ","]),
    st.sampled_from(["{}", "{} %", "${}", "{} EUR"]),
)
def test_what_was_written_is_read(cents: list[int], marks: str, dress: str) -> None:
    values = [cent / 100 for cent in cents]
    texts = [dress.format(write(value, marks[0], marks[1:])) for value in values]
    found = numbers(*texts)
    expected = [value / 100 for value in values] if "%" in dress else values
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    assert len(found.odd) == 0
    assert found.remarks == ()
    assert found.format.decimal == marks[0]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2020-01-31", "2020-01-31"),
        ("2020/1/31", "2020-01-31"),
        ("2020-01-31T10:15", "2020-01-31T10:15"),
        ("2020-01-31 10:15:30", "2020-01-31T10:15:30"),
        ("2020-01-31T10:15:30.123456789", "2020-01-31T10:15:30.123456"),
        ("2020-01-31T10:15:30,5Z", "2020-01-31T10:15:30.5"),
        ("2020-01-31 10:15:30+02:00", "2020-01-31T08:15:30"),
        ("2020-01-31 22:15:30-0330", "2020-02-01T01:45:30"),
        ("31.01.2020", "2020-01-31"),
        ("31/01/2020 10:15", "2020-01-31T10:15"),
        ("01/31/2020", "2020-01-31"),
        ("1/31/2020 12:15 AM", "2020-01-31T00:15"),
        ("1/31/2020 1:15:00 pm", "2020-01-31T13:15"),
        ("29.02.2020", "2020-02-29"),
        ("1066-10-14", "1066-10-14"),
    ],
)
def test_times(text: str, time: str) -> None:
    found = read_times(TextCells([text, ""]))
    assert found is not None
    assert found.values[0] == np.datetime64(time)
    assert np.isnat(found.values[1])
    assert found.remarks == ()


@pytest.mark.parametrize(
    "text",
    ["2020-02-30", "2020-13-01", "2020-1-0", "0000-01-01", "31.02.2020", "2020-01-31 24:00",
     "2020-01-31 10:60", "2020-01-31 10:00:61", "2020-01-31 10:00+99:00", "2020-01/31", "2020",
     "2020-01-31 13:00 PM", "20-01-31", "x"],
)  # fmt: skip
def test_no_times(text: str) -> None:
    assert read_times(TextCells([text])) is None
    found = read_times(TextCells([text, "2020-01-01"]), "ymd")
    assert found is not None
    assert found.odd.tolist() == [0]
    assert np.isnat(found.values[0])


def test_truths_as_numbers() -> None:
    found = numbers("true", "1", "no", "On", "", format=NumberFormat(truths=True))
    np.testing.assert_equal(found.values, [1, 1, 0, 1, NAN])


def test_the_order_of_day_and_month_is_decided_by_the_column() -> None:
    for other, pattern in (("31/01/2020", "dmy"), ("01/31/2020", "mdy")):
        found = read_times(TextCells(["02/03/2020", other]))
        assert found is not None
        assert found.pattern == pattern
        assert found.values[0] == np.datetime64("2020-03-02" if pattern == "dmy" else "2020-02-03")
        assert found.remarks == ()
    found = read_times(TextCells(["03/03/2020", "02/03/2020"]))
    assert found is not None
    assert found.remarks[0].startswith("'02/03/2020' could have the day or the month first")
    assert found.values[1] == np.datetime64("2020-03-02")


def test_offsets_in_some_cells_only_are_said() -> None:
    found = read_times(TextCells(["2020-01-01 10:00+01:00", "2020-01-01 10:00", "2020-01-02"]))
    assert found is not None
    assert found.remarks == ("1 times name their offset and 1 do not: those are UTC",)
    assert found.values[0] == np.datetime64("2020-01-01T09:00")
    found = read_times(TextCells(["2020-01-01 10:00Z", "2020-01-02"]))
    assert found is not None
    assert found.remarks == ()


def test_a_pattern_is_applied_unchanged() -> None:
    found = read_times(TextCells(["02/03/2020", "31/01/2020", "2020-05-06"]), "mdy")
    assert found is not None
    assert found.values[0] == np.datetime64("2020-02-03")
    assert found.values[2] == np.datetime64("2020-05-06")
    assert found.odd.tolist() == [1]
    typed = np.array(["2020-02-03", "NaT"], dtype="datetime64[us]")
    found = read_times(TimeCells(typed), "mdy")
    assert found is not None
    np.testing.assert_array_equal(found.values, typed)


def test_a_few_cells_may_be_no_times() -> None:
    dates = [f"2020-01-{day:02}" for day in range(1, 10)]
    found = read_times(TextCells([*dates, "soon"]))
    assert found is not None
    assert found.odd.tolist() == [9]
    assert read_times(TextCells([*dates, "soon", "later"])) is None
