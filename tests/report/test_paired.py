"""Paired comparisons: intervals and verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from coopsheaf.report.intervals import t_quantile
from coopsheaf.report.paired import Paired

SCORES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=10)


@given(SCORES)
def test_the_intervals_are_those_of_student_and_of_nadeau_and_bengio(
    scores: list[tuple[float, float]],
) -> None:
    first, second = zip(*scores, strict=True)
    paired = Paired(first, second, test_per_train=0.4)
    differences = [a - b for a, b in scores]
    n, error = len(scores), stats.sem(differences)
    plain, corrected = paired.half_width, paired.corrected_half_width
    want = stats.t.ppf(0.975, n - 1) * error
    assert plain == pytest.approx(want, rel=1e-3, abs=1e-12)
    assert corrected == pytest.approx(want * (1 + 0.4 * n) ** 0.5, rel=1e-3, abs=1e-12)


@given(st.integers(1, 500))
def test_quantiles(freedom: int) -> None:
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-3)


def test_verdicts() -> None:
    assert Paired((0.9, 0.91), (0.5, 0.5)).verdict == "better"
    assert Paired((0.5, 0.5), (0.9, 0.91)).verdict == "worse"
    assert Paired((0.5, 0.5), (0.9, 0.91), sign=-1.0).verdict == "better"
    assert Paired((0.9, 0.1), (0.5, 0.5)).verdict == "undecided"
    assert Paired((0.9,), (0.5,)).verdict == "one split"  # which proves nothing
    # The plain interval excludes zero, the corrected one does not.
    close = Paired((0.62, 0.64, 0.66, 0.6), (0.6, 0.6, 0.62, 0.59))
    assert close.half_width is not None
    assert close.mean > close.half_width
    assert close.verdict == "undecided"
