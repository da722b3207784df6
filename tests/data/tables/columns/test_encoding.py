"""Feature encoding: decided by the training rows, stored as JSON, re-applied."""

from __future__ import annotations

import json
import math
import struct
from hashlib import blake2b

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.columns.encoding import FeatureEncoder, Fitted
from coopsheaf.data.tables.columns.formats import PLAIN, TRUTHS, NumberFormat
from coopsheaf.data.tables.columns.kinds import (
    CategoricalColumn,
    HashedColumn,
    NumericColumn,
    TimeColumn,
    WordsColumn,
)
from coopsheaf.data.tables.reading.cells import Cells, NumberCells, TextCells, TimeCells
from coopsheaf.data.tables.reading.table import Table


def table(**columns: list[str] | Cells) -> Table:
    cells = {k: TextCells(v) if isinstance(v, list) else v for k, v in columns.items()}
    rows = len(next(iter(cells.values())))
    return Table("nodes.csv", cells, range(2, rows + 2))


def rows(*chosen: int, of: int) -> np.ndarray:
    return np.isin(np.arange(of), chosen)


def fitted(data: Table, train: np.ndarray | None = None, **options: object) -> Fitted:
    train = np.ones(data.num_rows, dtype=bool) if train is None else train
    return FeatureEncoder.fit(data, list(data.columns), train, **options)


def fit(data: Table, train: np.ndarray | None = None, **options: object) -> FeatureEncoder:
    return fitted(data, train, **options).encoder


def again(encoder: FeatureEncoder) -> FeatureEncoder:
    """The encoder from what is stored of it."""
    return FeatureEncoder.from_json(json.loads(json.dumps(encoder.to_json(), allow_nan=False)))


def test_numbers_are_standardised_by_the_training_rows() -> None:
    data = table(age=["1", "3", " 1e3 "])
    encoder = fit(data, rows(0, 1, of=3))
    assert encoder.columns == (NumericColumn("age", 2.0, 1.0, False, PLAIN, 1.0, 3.0),)
    x, _, unseen, imputed = encoder.transform(data)
    assert x.dtype == torch.float32
    assert x.flatten().tolist() == [-1.0, 1.0, 998.0]
    assert not unseen
    assert not imputed


def test_constant_columns_become_zero_and_that_is_said() -> None:
    data = table(a=["0.1", "0.1", "0.1", "7"], kind=["x", "x", "x", "y"], b=["1", "2", "3", "4"])
    encoder, notes, _ = fitted(data, rows(0, 1, 2, of=4))
    assert encoder.transform(data).x[:, 0].tolist() == [0, 0, 0, 0]
    assert "columns 'a', 'kind' are the same everywhere in training: they say nothing" in notes
    notes = fitted(table(a=["5", "5"])).notes
    assert "column 'a' is the same everywhere in training: it says nothing" in notes


def test_missing_numbers() -> None:
    data = table(a=["1", "", "3", "NA"])
    encoder, notes, _ = fitted(data)
    assert encoder.transform(data).x.tolist() == [[-1, 0], [0, 1], [1, 0], [0, 1]]
    assert "missing cells (of 4): 'a' 2" in notes
    # Missing outside of training only: the mean, no further column, and a report.
    encoder = fit(data, rows(0, 2, of=4))
    x, notes, _, imputed = encoder.transform(data)
    assert x.tolist() == [[-1], [0], [1], [0]]
    assert imputed == {"a": 2}
    assert notes == ["column 'a': 2 missing cells, where training had none: set to the mean"]


@pytest.mark.parametrize("word", ["", "NA", "N/A", "nan", "NaN", "null", "NULL", "None", "-", "?"])
def test_words_for_missing(word: str) -> None:
    data = table(a=["1", word, "3"], city=["x", word, "y"])
    x = fit(data).transform(data).x
    assert x[1].tolist() == [0, 1, 0, 0, 0, 1]


def test_columns_without_a_value_in_training_are_left_out() -> None:
    data = table(a=["", "", "5"], b=["", "NA", "x"], c=["1", "2", "3"])
    encoder, _, left_out = fitted(data, rows(0, 1, of=3), text=["b"])
    assert encoder.names == ("c",)
    assert left_out == dict.fromkeys("ab", "it has no value in any training row")


def test_formats_are_stored_and_applied_unchanged() -> None:
    data = table(amount=["1.234,5 €", "0,5 €", "(2,5)"])
    encoder, notes, _ = fitted(data)
    assert "column 'amount': numbers with ',' before the fraction, '.' between thousands" in notes
    (column,) = encoder.columns
    assert isinstance(column, NumericColumn)
    assert column.format == NumberFormat(",", ".")
    assert column.mean == pytest.approx((1234.5 + 0.5 - 2.5) / 3)
    for numbers in (["1.234"], NumberCells(np.array([1234.0]))):
        x = again(encoder).transform(table(amount=numbers)).x
        assert x.item() == pytest.approx((1234 - column.mean) / column.std)


def test_what_is_ambiguous_is_said() -> None:
    notes = fitted(table(a=["1,234", "2,345"], day=["01/02/2020", "02/03/2020"])).notes
    assert any("column 'a': '1,234' could be 1234 or 1.234" in note for note in notes)
    assert any("column 'day': '01/02/2020' could have the day" in note for note in notes)


def test_a_few_odd_cells_count_as_missing_and_are_named() -> None:
    data = table(age=[*map(str, range(36)), "x", "unknown", "inf", "2020_01"])
    encoder, notes, _ = fitted(data)
    assert notes == ["1 numeric feature columns: 'age'"]  # none is missing: they are odd
    (column,) = encoder.columns
    assert isinstance(column, NumericColumn)
    assert column.indicator
    assert column.mean == 17.5
    x, notes, _, _ = encoder.transform(data)
    assert x[36:].tolist() == [[0, 1]] * 4
    assert x[:36, 1].sum() == 0
    assert notes == [
        "column 'age': 4 of 40 cells are not a number and count as missing: 'x' (nodes.csv, line "
        "38), 'unknown' (nodes.csv, line 39), 'inf' (nodes.csv, line 40) ..."
    ]


def test_odd_cells_need_nine_times_as_many_numbers_and_three() -> None:
    nine = [*map(str, range(9)), "x"]
    assert isinstance(fit(table(a=nine)).columns[0], NumericColumn)
    assert isinstance(fit(table(a=nine[1:])).columns[0], CategoricalColumn)
    assert isinstance(fit(table(a=["1", "2", "inf"])).columns[0], NumericColumn)


@pytest.mark.parametrize("odd", ["2020_01", "x", "0x10", "--"])
def test_texts_among_few_numbers_make_categories(odd: str) -> None:
    assert isinstance(fit(table(a=["1", "2", odd])).columns[0], CategoricalColumn)


def test_odd_cells_later() -> None:
    encoder = fit(table(age=["1", "2"]))
    x, notes, _, imputed = encoder.transform(table(age=["1", "old", "2"]))
    assert x.flatten().tolist() == [-1, 0, 1]
    assert (
        "1 of 3 cells are not a number and count as missing: 'old' (nodes.csv, line 3)" in notes[0]
    )
    assert imputed == {"age": 1}
    with pytest.raises(
        DataError,
        match=r"nodes\.csv, line 3, column 'age': every cell must be a number, as in training; got "
        r"'old', and 2 of 3 cells are none: name the right column",
    ):
        encoder.transform(table(age=["1", "old", "young"]))


def test_codes_with_leading_zeros_stay_text() -> None:
    encoder, notes, _ = fitted(table(zip=["10115", "01067", "20095", "01067"]))
    assert encoder.columns[0] == CategoricalColumn("zip", ("01067", "10115", "20095"))
    assert any("'zip': 2 cells have leading zeros, such as '01067'" in note for note in notes)


def test_dates_with_leading_zeros_are_no_codes() -> None:
    encoder, notes, _ = fitted(table(day=["01.02.2020", "05.03.2020", "07.08.2020"]))
    assert isinstance(encoder.columns[0], TimeColumn)
    assert not any("leading zeros" in note for note in notes)


@pytest.mark.parametrize(
    "cells",
    [
        ["0", "1", "1", ""],
        ["false", "true", "TRUE", ""],
        ["no", "yes", "1", "NA"],
        ["f", "T", "on", "-"],
        ["0.0", "1.0", "1", "?"],
        ["0,0", "1,0", "1", "?"],
        NumberCells(np.array([0, 1, 1, math.nan])),
    ],
)
def test_truth_values_are_not_scaled(cells: list[str] | Cells) -> None:
    data = table(a=cells)
    encoder = fit(data)
    (column,) = encoder.columns
    assert isinstance(column, NumericColumn)
    assert column.format.truths
    assert encoder.feature_names == ("a", "a=(missing)")
    assert again(encoder).transform(data).x.tolist() == [[0, 0], [1, 0], [1, 0], [0, 1]]
    # Whatever the training table was, later ones may write it in another way.
    later = table(a=["yes", "0", "false"])
    assert again(encoder).transform(later).x[:, 0].tolist() == [1, 0, 0]


def test_truth_values_later() -> None:
    encoder = fit(table(a=["0", "1"]))
    assert encoder.columns == (NumericColumn("a", 0.0, 1.0, False, TRUTHS, 0.0, 1.0),)
    x, notes, _, imputed = encoder.transform(table(a=["3", "1", ""]))
    assert x.flatten().tolist() == [3, 1, 0]
    assert "1 values are far from those of training (0 to 1): 3 (nodes.csv, line 2)" in notes[0]
    assert notes[1].endswith("set to 0")
    assert imputed == {"a": 1}
    # Constant ones say nothing, but mean the same however they are written.
    for same in (["1", "1"], ["True", "true"]):
        encoder = fit(table(a=same))
        assert encoder.transform(table(a=["True", "0"])).x.tolist() == [[0], [0]]
    # One word alone is no pair of truth values: F may be a sex.
    assert fit(table(a=["F", "F"])).columns == (CategoricalColumn("a", ("F",)),)


def test_dates() -> None:
    data = table(joined=["2020-01-06", "2020-01-08", "2020-07-06", ""])
    encoder = fit(data)
    (column,) = encoder.columns
    assert isinstance(column, TimeColumn)
    assert encoder.feature_names == (
        "joined", "joined weekday sin", "joined weekday cos", "joined year sin", "joined year cos",
        "joined=(missing)",
    )  # fmt: skip
    days = np.array([0.0, 2, 182])
    expected = (days - days.mean()) / days.std()
    x = again(encoder).transform(data).x
    np.testing.assert_allclose(x[:3, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(x[0, 1:3], [0, 1], atol=1e-6)  # a Monday
    turn = 2 * math.pi * 2 / 7
    np.testing.assert_allclose(x[1, 1:3], [math.sin(turn), math.cos(turn)], rtol=1e-5)
    turn = 2 * math.pi * 187 / 365.25  # 6 July is the 188th day of 2020
    np.testing.assert_allclose(x[2, 3:5], [math.sin(turn), math.cos(turn)], rtol=1e-5)
    assert x[3].tolist() == [0, 0, 0, 0, 0, 1]
    assert x[:3, 5].tolist() == [0, 0, 0]


def test_times_of_day() -> None:
    data = table(at=["2020-01-06 06:00", "2020-01-06 12:00", "2020-01-06"])
    encoder = fit(data)
    assert encoder.feature_names[-2:] == ("at clock sin", "at clock cos")
    x = encoder.transform(data).x
    np.testing.assert_allclose(x[:, -2:], [[1, 0], [0, -1], [0, 1]], atol=1e-6)


def test_dates_later() -> None:
    encoder, notes, _ = fitted(table(day=["31.01.2020", "01.02.2020", "01.03.2020"]))
    assert "column 'day': dates are read like 31/01/2020" in notes
    x, notes, _, imputed = again(encoder).transform(
        table(day=["2020-02-01", "01.02.2020", "soon", "01.01.1900"])
    )
    assert x[0].equal(x[1])
    assert x[2].tolist() == [0, 0, 0, 0, 0]
    assert imputed == {"day": 1}
    assert (
        "not a date such as 31/01/2020 and count as missing: 'soon' (nodes.csv, line 4)" in notes[0]
    )
    assert "far from those of training (2020-01-31 to 2020-03-01): 1900-01-01" in notes[1]


def test_dates_with_a_few_odd_cells() -> None:
    days = [f"2020-01-{day:02}" for day in range(1, 29)]
    (column,) = fit(table(day=[*days, "soon"])).columns
    assert isinstance(column, TimeColumn)
    assert column.indicator


def test_categories_have_codes_for_unseen_and_missing() -> None:
    data = table(city=["b", "a", "", "c", "b"])
    encoder = fit(data, rows(0, 1, of=5))
    assert encoder.columns == (CategoricalColumn("city", ("a", "b")),)
    assert encoder.feature_names == ("city=a", "city=b", "city=(other)", "city=(missing)")
    x, notes, unseen, _ = encoder.transform(data)
    assert x.argmax(1).tolist() == [1, 0, 3, 2, 1]
    assert x.sum(1).tolist() == [1] * 5
    assert unseen == {"city": 1}
    assert notes == [
        "column 'city': 1 cells have a category not seen in training: 'c' (nodes.csv, line 5)"
    ]


def test_categories_that_differ_by_case_or_space_are_reported_and_kept() -> None:
    data = table(city=["Paris", "paris ", "Rome", "New  York", "new york", "Rome"])
    encoder, notes, _ = fitted(data)
    assert encoder.num_features == 5 + 2
    assert (
        "column 'city': categories that differ only by case or spaces are kept apart: 'New  York' "
        "and 'new york'; 'Paris' and 'paris '" in notes
    )


def test_numbers_can_be_marked_categorical() -> None:
    data = table(code=["10", "9", "10"])
    assert fit(data, categorical=["code"]).columns == (CategoricalColumn("code", ("10", "9")),)


def many(count: int, of: int) -> list[str]:
    return [f"city {i % count}" for i in range(of)]


def test_many_categories_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(city=[*many(300, 700), ""])
    assert isinstance(fit(data).columns[0], CategoricalColumn)
    data = table(city=[*many(301, 700), ""])
    encoder, notes, _ = fitted(data)
    assert isinstance(encoder.columns[0], HashedColumn)
    assert encoder.num_features == 128 + 1 == len(encoder.feature_names)
    assert any("'city': 301 categories are hashed into 128 columns" in note for note in notes)
    x, notes, unseen, _ = again(encoder).transform(data)
    assert (notes, unseen) == ([], {})
    assert x[-1].nonzero().tolist() == [[128]]
    assert x[:301].unique(dim=0).shape[0] == 301
    assert x[0].equal(x[301])
    assert (x[:-1, 128] == 0).all()
    # Nearly orthogonal, as one-hot columns are.
    product = x[:301] @ x[:301].T
    assert product.diagonal().mean() == pytest.approx(1, abs=0.1)
    assert product.fill_diagonal_(0).abs().mean() < 0.1
    monkeypatch.setattr("coopsheaf.data.tables.columns.hashing.BLOCK", 7)
    assert encoder.transform(data).x.equal(x)
    x, notes, unseen, _ = encoder.transform(table(city=["city 5", "Atlantis", ""]))
    assert unseen == {"city": 1}
    assert "'Atlantis' (nodes.csv, line 3)" in notes[0]
    assert x[1].any()


def test_hashes_are_those_of_the_text_alone() -> None:
    """What was stored must mean the same on every machine and in every version."""
    x = FeatureEncoder((HashedColumn("city", 128, b""),)).transform(table(city=["Zürich"])).x
    digest = blake2b("Zürich".encode(), digest_size=20).digest()
    expected = torch.zeros(1, 129)
    for number in struct.unpack("<5I", digest)[:4]:
        expected[0, number // 2 % 128] += -0.5 if number % 2 else 0.5
    assert x.equal(expected)
    x = FeatureEncoder((WordsColumn("city"),)).transform(table(city=["Zürich"])).x
    (number,) = struct.unpack("<I", blake2b("zürich".encode(), digest_size=4).digest())
    assert x[0].nonzero().tolist() == [[number // 2 % 256]]
    assert x.sum() == (-1 if number % 2 else 1)


def test_free_text_is_left_out_unless_it_is_asked_for() -> None:
    data = table(
        comment=["5"] + [f"text {i}" for i in range(80)] + ["same"] * 20, a=["1"] * 50 + ["2"] * 51
    )
    encoder, _, left_out = fitted(data)
    assert encoder.names == ("a",)
    assert left_out["comment"].startswith("82 of 101 training cells differ, such as '5': free text")
    for option in ("--text", "--categorical", "--drop"):
        assert option in left_out["comment"]
    assert fit(data, categorical=["comment"]).num_features == 82 + 2 + 1
    assert fit(data, text=["comment"]).num_features == 256 + 1
    few = table(comment=[f"text {i}" for i in range(50)])
    assert fit(few).num_features == 52
    often = table(comment=many(51, 102))
    assert fit(often).num_features == 53
    ids = table(comment=many(1000, 1000))
    assert isinstance(fit(ids, categorical=["comment"]).columns[0], HashedColumn)


def test_words_are_counted() -> None:
    data = table(text=["Red apple", "apple, RED!", "red red red apple", "", "pear", "--"])
    encoder = fit(data, text=["text"])
    assert encoder.columns == (WordsColumn("text", 256),)
    assert encoder.feature_names[3] == "text words 3"
    x = again(encoder).transform(data).x
    assert x[0].equal(x[1])
    assert x.norm(dim=1).tolist() == pytest.approx([1, 1, 1, 0, 1, 0])
    values = sorted(x[2][x[2] != 0].abs().tolist())
    length = math.hypot(math.log(2), math.log(4))
    assert values == pytest.approx([math.log(2) / length, math.log(4) / length])


def test_a_column_is_not_categorical_and_text() -> None:
    with pytest.raises(DataError, match=r"nodes\.csv, column 'a': a column is categorical or text"):
        fit(table(a=["x"]), categorical=["a"], text=["a"])


def test_no_columns_give_a_constant() -> None:
    encoder, notes, _ = FeatureEncoder.fit(table(id=["a", "b"]), [], np.ones(2, dtype=bool))
    assert encoder.transform(table(id=["a", "b"])).x.tolist() == [[1], [1]]
    assert encoder.num_features == 1
    assert encoder.feature_names == ("1",)
    assert notes == ["no feature columns: every node has the constant feature 1"]


def test_kinds_are_summed_up() -> None:
    notes = fitted(table(a=["1", "2"], b=["x", "y"], c=["5", "7"], d=["yes", "no"])).notes
    assert notes == [
        "2 numeric feature columns: 'a', 'c'",
        "1 categorical feature columns: 'b'",
        "1 0/1 feature columns: 'd'",
    ]


def test_lacking_columns_later() -> None:
    encoder = fit(table(age=["1", "2"], city=["a", "b"]))
    with pytest.raises(DataError, match=r"nodes\.csv must have the feature columns.*lacks 'city'"):
        encoder.transform(table(age=["1"]))


def test_numbers_too_large() -> None:
    with pytest.raises(DataError, match="column 'a': numbers must be small enough to average"):
        fit(table(a=["1e300", "-1e300"]))
    encoder = fit(table(a=["1", "2"]))
    for large in ("1e300", "1e308", "-1.7e308"):
        with pytest.raises(DataError, match="line 2, column 'a': numbers must be of the size"):
            encoder.transform(table(a=[large]))


def test_huge_outliers_in_training_are_said() -> None:
    data = table(a=[*map(str, range(500)), "1e9"])
    notes = fitted(data).notes
    assert any("'a': 1 values are more than 20 deviations" in note for note in notes)
    assert any("1e+09 (nodes.csv, line 502)" in note for note in notes)
    assert not any("deviations" in note for note in fitted(data, rows(*range(500), of=501)).notes)


def test_values_far_from_training_are_said() -> None:
    encoder = fit(table(a=["1", "2", "3"]))
    _, notes, _, _ = encoder.transform(table(a=["9", "11", "-1000", "2"]))
    assert notes == [
        "column 'a': 2 values are far from those of training (1 to 3): 11 (nodes.csv, line 3), "
        "-1000 (nodes.csv, line 4)"
    ]
    # What training itself had, however far from its mean, is not news.
    outlier = table(a=[*map(str, range(500)), "1e9"])
    assert fit(outlier).transform(outlier).notes == []


def test_notes_on_many_columns_are_cut_short() -> None:
    names = [f"c{i:02}" for i in range(20)]
    encoder = fit(table(**{name: ["1", "2"] for name in names}))
    notes = encoder.transform(table(**{name: ["99"] for name in names})).notes
    assert len(notes) == 6
    assert notes[-1].startswith("values far from those of training, also in 15 more columns: 'c05'")


def test_wide_columns_are_hashed_if_the_block_would_be_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = table(a=many(200, 500), b=many(250, 500), c=["x", "y"] * 250)
    monkeypatch.setattr("coopsheaf.data.tables.columns.encoding.MAX_CELLS", 500 * 340)
    encoder, notes, _ = fitted(data)
    assert [type(column) for column in encoder.columns] == [
        CategoricalColumn, HashedColumn, CategoricalColumn,
    ]  # fmt: skip
    assert any("'b': 250 categories are hashed" in note for note in notes)
    monkeypatch.setattr("coopsheaf.data.tables.columns.encoding.MAX_CELLS", 500 * 261)
    with pytest.raises(
        DataError,
        match=r"column 'a': features must have at most 130500 cells; 500 rows x 262 are more, 129 "
        r"of them from this column: leave it out \(--drop\)",
    ):
        fit(data)
    with pytest.raises(DataError, match="column 'a': features must have at most 130500 cells"):
        encoder.transform(data)


# The same column, whatever it came as.


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(st.floats(-1e9, 1e9), st.integers(-9, 9).map(float), st.just(math.nan)),
        min_size=1,
        max_size=9,
    )
)
def test_numbers_as_texts_and_as_numbers_are_the_same(values: list[float]) -> None:
    typed = NumberCells(np.array(values))
    texts = [typed.text(row) for row in range(len(values))]
    check_same(typed, texts)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(st.datetimes(), st.dates(), st.none()),
        min_size=1,
        max_size=9,
    )
)
def test_times_as_texts_and_as_times_are_the_same(values: list[object]) -> None:
    iso = ["" if value is None else value.isoformat() for value in values]  # type: ignore[attr-defined]
    typed = TimeCells(np.array([text or "NaT" for text in iso], dtype="datetime64[us]"))
    check_same(typed, iso)
    check_same(typed, [typed.text(row) for row in range(len(iso))])


def check_same(typed: Cells, texts: list[str]) -> None:
    first, second = table(a=typed), table(a=texts)
    one, two = fitted(first), fitted(second)
    assert one == two
    x = one.encoder.transform(first).x
    assert x.isfinite().all()
    for encoder in (one.encoder, again(two.encoder)):
        assert torch.equal(encoder.transform(second).x, x)
        assert torch.equal(encoder.transform(first).x, x)


cells = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(str),
    st.sampled_from(["", "NA", "a", "ü\u2028", '"', "0", "1", "yes", "1,5", "$3", "2020-01-31"]),
    st.text(max_size=5),
    st.text("0123456789.,'- $%()/:eE", max_size=12),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=12), st.data())
def test_json_round_trip_is_exact(values: list[tuple[str, str]], draw: st.DataObject) -> None:
    data = table(a=[a for a, _ in values], b=[b for _, b in values])
    train = np.array([draw.draw(st.booleans()) for _ in values])
    encoder = fit(data, train)
    assert again(encoder) == encoder
    try:
        x = encoder.transform(data).x
    except DataError as error:
        if not any(why in str(error) for why in ("of the size they had", "as in training")):
            raise
        return  # a number or a text far outside of what training had
    assert x.shape == (len(values), encoder.num_features)
    assert len(encoder.feature_names) == encoder.num_features
    assert x.isfinite().all()
    assert torch.equal(again(encoder).transform(data).x, x)


def test_encoders_of_earlier_versions_mean_what_they_meant() -> None:
    stored = {
        "columns": [
            {"kind": "numeric", "name": "age", "mean": 2.0, "std": 0.5, "indicator": True},
            {"kind": "numeric", "name": "b", "mean": 5, "std": 0, "indicator": False},
            {"kind": "categorical", "name": "c", "categories": ["-", "NaN", "x"]},
        ]
    }
    encoder = FeatureEncoder.from_json(stored)
    data = table(
        age=["007", "1e1", "", "NA", " 3 "],
        b=["5", "6", "7", "8", "9"],
        c=["-", "NaN", "?", "NA", "x"],
    )
    expected = [
        [10, 0, 0, 1, 0, 0, 0, 0],
        [16, 0, 0, 0, 1, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 1, 0],  # "?" was a category
        [0, 1, 0, 0, 0, 0, 0, 1],
        [2, 0, 0, 0, 0, 1, 0, 0],
    ]
    for same in (encoder, again(encoder)):
        x, notes, unseen, imputed = same.transform(data)
        assert x.tolist() == expected
        assert unseen == {"c": 1}
        assert imputed == {}
        assert len(notes) == 1
    assert encoder.feature_names[:3] == ("age", "age=(missing)", "b")


NUMBER = {"kind": "numeric", "name": "a", "mean": 1.0, "std": 1.0, "indicator": True}
FORMAT = {"decimal": ".", "thousands": ",", "truths": False, "zeros": False}
TIME = {**NUMBER, "kind": "time", "pattern": "ymd", "clock": False, "low": None, "high": None}


@pytest.mark.parametrize(
    "entry",
    [
        3,
        None,
        {"kind": "numeric", "name": "a", "mean": 1.0},
        {**NUMBER, "std": -1},
        {**NUMBER, "mean": float("nan")},
        {**NUMBER, "mean": 10**400},
        {**NUMBER, "mean": True},
        {**NUMBER, "name": 5},
        {**NUMBER, "indicator": 1},
        {**NUMBER, "low": "x"},
        {**NUMBER, "high": float("inf")},
        {**NUMBER, "format": "x"},
        {**NUMBER, "format": {**FORMAT, "decimal": "x"}},
        {**NUMBER, "format": {**FORMAT, "thousands": ["."]}},
        {**NUMBER, "format": {**FORMAT, "truths": 0}},
        {**TIME, "pattern": "ydm"},
        {**TIME, "pattern": []},
        {**TIME, "clock": None},
        {**TIME, "mean": 1e300},
        {"kind": "categorical", "name": "a", "categories": [1]},
        {"kind": "categorical", "name": "a", "categories": ["x", "x"]},
        {"kind": "categorical", "name": "a", "categories": "xy"},
        {"kind": "categorical", "name": "a", "categories": [["x"]]},
        {"kind": "categorical", "name": "a", "categories": ["x"], "missing": 3},
        {"kind": "hashed", "name": "a", "size": 0, "seen": ""},
        {"kind": "hashed", "name": "a", "size": 10**9, "seen": ""},
        {"kind": "hashed", "name": "a", "size": 8, "seen": "é"},
        {"kind": "hashed", "name": "a", "size": 8, "seen": "AAA="},
        {"kind": "words", "name": "a", "size": True},
        {"kind": "other", "name": "a"},
        {"kind": ["numeric"], "name": "a"},
    ],
)
def test_damaged_json(entry: object) -> None:
    with pytest.raises(DataError, match="a stored feature encoder must") as error:
        FeatureEncoder.from_json({"columns": [entry]})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("stored", [None, {}, {"columns": 3}, {"columns": [NUMBER, NUMBER]}])
def test_damaged_lists(stored: object) -> None:
    with pytest.raises(DataError, match="a stored feature encoder must"):
        FeatureEncoder.from_json(stored)


def test_training_rows_alone_decide_what_a_column_is() -> None:
    data = table(a=["1", "2", "unknown"], day=["2020-01-01", "2020-01-02", "x"])
    encoder = fit(data, np.array([True, True, False]))
    assert [type(column) for column in encoder.columns] == [NumericColumn, TimeColumn]
    encoder = fit(data, np.array([True, False, True]))
    assert [type(column) for column in encoder.columns] == [CategoricalColumn] * 2


def test_a_table_without_rows() -> None:
    data = table(
        a=["1", "2"], b=["x", "y"], c=["2020-01-01", "2020-01-02"], d=many(2, 2), e=["u v", "w"]
    )
    encoder = fit(data, text=["e"])
    encoder = FeatureEncoder((*encoder.columns, HashedColumn.of("f", ["x"])))
    nothing = table(a=[], b=[], c=[], d=[], e=[], f=[])
    assert encoder.transform(nothing).x.shape == (0, encoder.num_features)
