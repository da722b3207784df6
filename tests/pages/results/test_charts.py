"""Charts: numbers stand where they belong, whatever they are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopsheaf.pages.results.charts import (
    Curve,
    Stretch,
    axis,
    curve_chart,
    dot_strip,
    escape,
    interval,
    stretch_of,
)

scipy_stats = pytest.importorskip("scipy.stats")

ANY = st.floats(allow_nan=True, allow_infinity=True)
HOSTILE = "<script>alert(1)</script>\"'&\n\x00"


def shapes(text: str, kind: str) -> list[dict[str, str]]:
    root = ElementTree.fromstring(text)
    return [dict(node.attrib) for node in root.iter() if node.attrib.get("class") == kind]


@given(values=st.lists(ANY, max_size=8), logarithmic=st.booleans())
def test_a_scale_holds_its_values(values: list[float], logarithmic: bool) -> None:
    scale = stretch_of(values, logarithmic=logarithmic)
    assert math.isfinite(scale.low)
    assert scale.low < scale.high < math.inf
    assert scale.low > 0 or not logarithmic
    places = [
        scale.place(v) for v in values if 1e-9 < v < 1e9 or (abs(v) < 1e9 and not logarithmic)
    ]
    assert all(0 <= place <= 100 for place in places)
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 14
    assert ticks == sorted(ticks)
    for tick in ticks:
        assert -0.01 <= scale.place(tick) <= 100.01


@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), share=st.floats(0, 1))
def test_places_are_linear(low: float, width: float, share: float) -> None:
    scale = Stretch(low, low + width)
    place = scale.place(low + share * width)
    assert place == pytest.approx(100 * share, abs=1e-3)


def test_equal_ratios_are_equally_long() -> None:
    scale = Stretch(1, 10_000, logarithmic=True)
    assert [scale.place(10.0**k) for k in range(5)] == pytest.approx([0, 25, 50, 75, 100])
    assert scale.ticks() == [1, 10, 100, 1000, 10_000]
    assert Stretch(0.15, 2.4, True).ticks() == pytest.approx([0.2, 0.5, 1, 2])
    assert scale.place(0.0) == -100  # far away, but somewhere


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.45, 0.98, [0.5, 0.6, 0.7, 0.8, 0.9]),
        (36.2, 39.3, [36.5, 37, 37.5, 38, 38.5, 39]),
        (-3, 3, [-3, -2, -1, 0, 1, 2, 3]),
    ],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert Stretch(low, high).ticks() == pytest.approx(ticks)


@given(values=st.lists(st.floats(-100, 100), min_size=2, max_size=40))
def test_intervals_are_students(values: list[float]) -> None:
    low, high = interval(values) or (0, 0)
    n = len(values)
    mean = sum(values) / n
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    factor = scipy_stats.t.ppf(0.975, n - 1)
    assert high - low == pytest.approx(2 * factor * spread, rel=0.05, abs=1e-9)
    if n <= 31:
        assert high - low == pytest.approx(2 * factor * spread, rel=1e-3, abs=1e-9)
    assert (low + high) / 2 == pytest.approx(mean, abs=1e-9)


def test_one_value_has_no_interval() -> None:
    assert interval([]) is None
    assert interval([1.0]) is None


def test_a_strip_has_its_marks() -> None:
    scale = Stretch(0, 10)
    text = dot_strip(scale, [(2.0, "split 0: 2"), (4.0, "split 1: 4")], "csnn: 3", (5.0, 1.0))
    assert [dot["cx"] for dot in shapes(text, "run")] == ["20.00%", "40.00%"]
    assert [line["x1"] for line in shapes(text, "mean")] == ["30.00%"]
    assert [part.get("x1") for part in shapes(text, "published")] == ["40.00%", None]
    assert [mark["x"] for mark in shapes(text, "mark")] == ["50.00%"]
    (band,) = shapes(text, "band")
    assert (band["x"], band["width"]) == ("0.00%", "100.00%")  # of two runs: cut off at the ends
    one = dot_strip(scale, [(2.0, "split 0: 2")], "csnn: 2")
    assert not shapes(one, "mean") + shapes(one, "band") + shapes(one, "published")


def test_axes_have_as_many_decimals_as_they_need() -> None:
    for (low, high, unit), numbers in {
        (0.45, 0.98, 100.0): ["50", "60", "70", "80", "90"],
        (36.2, 39.3, 1.0): ["36.5", "37.0", "37.5", "38.0", "38.5", "39.0"],
        (0.0, 3e-5, 1.0): ["0e0", "5e-6", "1e-5", "1e-5", "2e-5", "2e-5", "3e-5"],
    }.items():
        assert re.findall(r">([^<]+)</text>", axis(Stretch(low, high), unit)) == numbers


def test_curves_are_broken_where_nothing_is_known() -> None:
    points = [(1.0, 1.0), (2.0, 2.0), (3.0, math.nan), (4.0, 1.0), (5.0, 2.0)]
    text = curve_chart([Curve(points, "val", "split 0")], [(2.0, 2.0, "best")], "chart")
    (path,) = re.findall(r' d="([^"]*)"', text)
    assert path.count("M") == 2
    assert path.count("L") == 2
    assert "nan" not in text
    (best,) = shapes(text, "best")
    assert float(best["cx"].rstrip("%")) == pytest.approx(100 * 2 / 5.3, abs=0.01)


def test_a_logarithmic_curve_leaves_out_what_has_no_logarithm() -> None:
    points = [(1.0, 10.0), (2.0, 0.0), (3.0, -1.0), (4.0, 0.1)]
    text = curve_chart([Curve(points, "train", "x")], [(2.0, 0.0, "zero")], "c", logarithmic=True)
    assert text.count("M") == 2
    assert not shapes(text, "best")


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    points = [(float(k), float(k)) for k in range(1, 5001)]
    text = curve_chart([Curve(points, "val", "x")], [], "c")
    (path,) = re.findall(r' d="([^"]*)"', text)
    assert 300 < path.count("L") < 500
    assert path.endswith(
        f"{100 * 5000 / 5300:.2f} {100 - 100 * (4999 + 0.06 * 4999) / (1.12 * 4999):.2f}"
    )


@given(
    values=st.lists(ANY, max_size=5),
    words=st.text(max_size=10),
    logarithmic=st.booleans(),
)
def test_any_numbers_and_words_make_a_chart(
    values: list[float], words: str, logarithmic: bool
) -> None:
    points = list(enumerate(values, start=1))
    chart = curve_chart(
        [Curve(points, "val", words)],
        [(x, y, words) for x, y in points],
        words,
        logarithmic=logarithmic,
    )
    ElementTree.fromstring(chart)
    assert not re.search(r"[\"> ](nan|inf|-inf)", chart.split("<title>")[0])
    known = [value for value in values if abs(value) < 1e12]
    ElementTree.fromstring(dot_strip(stretch_of(known), [(v, words) for v in known], words))


def test_words_are_escaped() -> None:
    assert escape(HOSTILE) == "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#x27;&amp;"
    chart = curve_chart([Curve([(1.0, 1.0)], "val", HOSTILE)], [(1.0, 1.0, HOSTILE)], HOSTILE)
    strip = dot_strip(Stretch(0, 1), [(0.5, HOSTILE)], HOSTILE)
    assert "<script" not in chart + strip
