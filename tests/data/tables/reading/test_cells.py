"""Cells of every origin say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.reading.arrow_cells import ArrowText, arrow_cells
from coopsheaf.data.tables.reading.cells import (
    Cells,
    Ids,
    NumberCells,
    TextCells,
    TimeCells,
    cells_of,
    columns_of,
    compact,
    join_cells,
)


def arrow_texts(values: list[str]) -> Cells:
    parts = [pa.array(values[:2], pa.string()), pa.array(values[2:], pa.string())]
    return ArrowText(pa.chunked_array(parts))


TEXTS = [["b", "", "b", "a"], ["1", "2.5", "NA", "-3e2"], ["007", "1", "2", "3"], ["1", " 2", "x", "-0"], ["inf", "1", "1", "1"], ["1_0", "2", "3", "4"], ["-01", "2", "3", "4"], ["١", "2", "3", "4"]]  # fmt: skip


@pytest.mark.parametrize("texts", TEXTS, ids=repr)
def test_texts_in_a_list_and_in_arrow_are_alike(texts: list[str]) -> None:
    one, two = TextCells(texts), arrow_texts(texts)
    rows = np.array([3, 0])
    for cells in (one, two, join_cells([two.take(np.array([0])), two.take(np.array([1, 2, 3]))])):
        codes, distinct = cells.distinct
        assert [distinct[code] for code in codes] == texts
        assert distinct == list(dict.fromkeys(texts))
        assert [cells.text(row) for row in range(4)] == texts
        assert [cells.take(rows).text(row) for row in range(2)] == [texts[3], texts[0]]
        assert cells.look_up(Ids([texts[3], texts[0]]))[[3, 0]].tolist() == [0, 1]
    if one.numbers is None:
        assert two.numbers is None
    else:
        np.testing.assert_array_equal(one.numbers, two.numbers)


def test_numbers_are_spelled_as_in_a_file() -> None:
    cells = NumberCells(np.array([1.0, np.nan, 2.5, 1.0]))
    assert cells.distinct.texts == ["1", "", "2.5"]
    assert cells.distinct.codes.tolist() == [0, 1, 2, 0]
    assert cells.look_up(Ids(["2.5", "1"])).tolist() == [1, -1, 0, 1]
    assert NumberCells(np.array([np.inf])).numbers is None


def test_times_are_spelled_in_iso() -> None:
    cells = TimeCells(np.array(["2020-01-02", "NaT", "2020-01-02T03:04:05"], dtype="datetime64[s]"))
    assert cells.distinct.texts == ["2020-01-02", "", "2020-01-02 03:04:05"]
    assert cells.numbers is None


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([1, 2], NumberCells, ["1", "2"]),
        ([1, None, 2.5], NumberCells, ["1", "", "2.5"]),
        ([True, False, None], TextCells, ["True", "False", ""]),
        ([1, "a", float("nan")], TextCells, ["1", "a", ""]),
        ([2**70], TextCells, [str(2**70)]),
        (np.array([2**64 - 1], dtype=np.uint64), TextCells, [str(2**64 - 1)]),
        (np.array([True, False]), TextCells, ["True", "False"]),
        ([None, None], TextCells, ["", ""]),
    ],
)
def test_python_values(values: Any, kind: type[Cells], texts: list[str]) -> None:
    cells = cells_of(values)
    assert isinstance(cells, kind)
    assert [cells.text(row) for row in range(len(cells))] == texts


def test_arrays_become_columns() -> None:
    found = columns_of("x", np.array([[1, 2], [3, 4]]), "x")
    assert {name: cells.distinct.texts for name, cells in found.items()} == {"x[0]": ["1", "3"], "x[1]": ["2", "4"]}  # fmt: skip
    assert columns_of("x", np.array([b"a", b"\xc3\xa9"]), "x")["x"].distinct.texts == ["a", "é"]
    with pytest.raises(
        DataError, match=r"`x` must be numbers of shape \(n, k\); got .* of \(1, 1, 1\)"
    ):
        columns_of("x", np.ones((1, 1, 1)), "x")


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([1, None]), ["1", ""]),
        (pa.array([2**53 + 1, None]), [str(2**53 + 1), ""]),
        (pa.array([2**64 - 1], pa.uint64()), [str(2**64 - 1)]),
        (pa.array([True, None, False]), ["True", "", "False"]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", "", "a"]),
        (pa.array([None, None]), ["", ""]),
        (pa.array([18262], pa.date32()), ["2020-01-01"]),
        (pa.array(["a", None], pa.string_view()), ["a", ""]),
        (pa.array(["1.50", "2"]).cast(pa.decimal128(5, 2)), ["1.5", "2"]),
    ],
)
def test_arrow_types(array: Any, texts: list[str]) -> None:
    cells = arrow_cells("x", pa.chunked_array([array]), "t")["x"]
    assert [cells.text(row) for row in range(len(cells))] == texts
    codes, distinct = cells.distinct
    assert [distinct[code] for code in codes] == texts


def test_cells_of_several_kinds_below_each_other_are_texts() -> None:
    joined = join_cells([NumberCells(np.array([1])), TextCells(["a"])])
    assert [joined.text(row) for row in range(2)] == ["1", "a"]
    assert isinstance(compact(TextCells(["1", ""])), NumberCells)
    assert isinstance(compact(TextCells(["1", "x"])), TextCells)
