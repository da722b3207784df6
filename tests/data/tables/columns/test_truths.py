"""Columns that say yes or no."""

from __future__ import annotations

import numpy as np
import pytest
from small_tables import Values, cells

from coopsheaf.data.tables.columns.truths import read_truths


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["True", "FALSE", " yes ", "n", "1", "0.0", "", "NA", "On", "f"], "1010 10--10"),
        (np.array([1.0, 0.0, np.nan]), "10-"),
        (["1", "0", "?"], "10-"),
    ],
)
def test_yes_and_no(values: Values, expected: str) -> None:
    said = {1.0: "1", 0.0: "0"}
    truths = read_truths(cells(values))
    assert "".join(said.get(v, "-") for v in truths.values) == expected.replace(" ", "")
    assert len(truths.odd) == 0


@pytest.mark.parametrize("values", [["1", "2", "0", "-1"], np.array([1, 2, 0, -1])])
def test_what_is_neither(values: Values) -> None:
    truths = read_truths(cells(values))
    assert truths.odd.tolist() == [1, 3]
    assert np.isnan(truths.values[[1, 3]]).all()


def test_other_words_for_missing() -> None:
    truths = read_truths(cells(["1", "-1", "NA"]), lambda text: text == "-1")
    assert truths.odd.tolist() == [2]
    assert np.isnan(truths.values[1])
