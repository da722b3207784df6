from __future__ import annotations

import pytest

from coopsheaf.report.paired import Paired
from lab.cells import advantage_cell


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        (0.75, 0.5, "+25.00"),
        (0.5, 0.75, "-25.00"),
        (0.5, 0.5, "+0.00"),
        (0.5, 0.5 + 1e-9, "+0.00"),  # rounding leaves nothing, and nothing has no minus
    ],
)
def test_an_advantage_has_a_sign(first: float, second: float, shown: str) -> None:
    assert advantage_cell(Paired((first,), (second,)), "accuracy") == shown
