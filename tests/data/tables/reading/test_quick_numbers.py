"""Numbers that pyarrow reads are those that the plain reader finds, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from coopsheaf.data.tables.reading.cells import TextCells

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("kind", ["string", "large_string"])
@pytest.mark.parametrize(
    "texts",
    [
        ["1", "-0.5", "+0.25", "0", "-0", "0.1"],
        ["1", "007"],
        ["1", "-007"],
        ["1", "+01"],
        ["-0", "-0.7", "-01.5"],
        ["1", "", "NA", "-", "2"],
        ["1", "inf"],
        ["1", "x"],
        ["é0", "01"],
        ["-0"],
    ],
)
def test_the_same_as_plain_texts(texts: list[str], kind: str) -> None:
    from coopsheaf.data.tables.reading.arrow_cells import ArrowText

    whole = pa.array(["00", *texts], getattr(pa, kind)())
    found = ArrowText(pa.chunked_array([whole[1:]])).numbers  # a slice: offsets do not start at 0
    wanted = TextCells(texts).numbers
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert np.array_equal(found, wanted, equal_nan=True)
