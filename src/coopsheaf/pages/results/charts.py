"""Charts as pieces of SVG for a web page: strips of dots and curves. Imports no PyTorch.

Positions are per cent of the width that the page gives a chart, so that words and marks keep their
size on a phone. There are classes and no colours: those belong to the page's style sheet.
"""

from __future__ import annotations

import html as markup
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from coopsheaf.report.intervals import interval
from coopsheaf.report.text import one_line

_MOST_POINTS = 400  # of a curve: more are not seen
_HUGE = 1e12  # what a run that came to nothing may have for a loss; it must not squeeze the others


@dataclass(frozen=True)
class Stretch:
    """A stretch of numbers laid out from 0 to 100 per cent.

    Args:
        low, high: its ends; ``high`` is larger.
        logarithmic: whether equal ratios are equally long; both ends are positive then.
    """

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a number is, in per cent, from -100 to 200 however far away it is."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high = math.log(low), math.log(high)
            value = math.log(max(value, 1e-300))
        return min(max(100 * (value - low) / (high - low), -100.0), 200.0)

    def ticks(self, count: int = 5) -> list[float]:
        """About as many round numbers as wanted, inside."""
        if self.logarithmic:
            low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            for steps in ((1, 2, 5), (1,)):
                found = [k * 10.0**p for p in range(low, high + 1) for k in steps]
                found = [value for value in found if self.low <= value <= self.high]
                if len(found) <= count + 2:
                    break
            if len(found) >= 2:
                return found[:: -(-len(found) // (count + 2))]
        step = _round_step((self.high - self.low) / count)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def stretch_of(values: Sequence[float], *, logarithmic: bool = False) -> Stretch:
    """A scale that holds all values, with a little room at its ends; those out of reach aside."""
    known = [v for v in values if abs(v) < _HUGE and (v > 1 / _HUGE or not logarithmic)]
    if not known:
        return Stretch(0.1, 1.0, True) if logarithmic else Stretch(0.0, 1.0)
    low, high = min(known), max(known)
    if logarithmic:
        room = (high / low) ** 0.05 if high > 1.001 * low else 2.0
        return Stretch(low / room, high * room, True)
    apart = high - low
    if apart <= 1e-9 * max(abs(low), abs(high)):
        apart = abs(high) if abs(high) > 1 / _HUGE else 1.0
    return Stretch(low - 0.06 * apart, high + 0.06 * apart)


def dot_strip(
    scale: Stretch,
    values: Sequence[tuple[float, str]],
    label: str,
    published: tuple[float, float] | None = None,
) -> str:
    """One line of a dot plot.

    Args:
        scale: shared by the lines.
        values: the scores, each with what is said about it.
        label: what the line says to those who do not see it.
        published: a printed mean and deviation to stand beside them.
    """
    parts = [f'<svg class="strip" role="img" aria-label="{escape(label)}">']
    parts += [_vertical("grid", scale.place(tick)) for tick in scale.ticks()]
    numbers = [value for value, _ in values]
    band = interval(numbers)
    if band is not None:
        low, high = (scale.place(end) for end in band)
        low, high = max(low, 0.0), min(high, 100.0)
        parts.append(
            f'<rect class="band" x="{low:.2f}%" width="{max(high - low, 0):.2f}%" y="25%" '
            'height="50%"/>'
        )
    if published is not None:
        mean, deviation = published
        low, high = scale.place(mean - deviation), scale.place(mean + deviation)
        parts.append(
            f'<line class="published" x1="{low:.2f}%" x2="{high:.2f}%" y1="50%" y2="50%"/>'
            f'<svg x="{scale.place(mean):.2f}%" y="50%" class="mark">'
            '<path class="published" d="M0-5 5 0 0 5-5 0Z"/></svg>'
        )
    for value, words in values:
        parts.append(
            f'<circle class="run" cx="{scale.place(value):.2f}%" cy="50%" r="3.5">'
            f"<title>{escape(words)}</title></circle>"
        )
    if len(numbers) > 1:
        parts.append(_vertical("mean", scale.place(fmean(numbers)), "15%", "85%"))
    return "".join([*parts, "</svg>"])


def axis(scale: Stretch, unit: float = 1.0) -> str:
    """The numbers under a chart; ``unit`` multiplies them."""
    ticks = scale.ticks()
    texts = "".join(
        f'<text x="{scale.place(tick):.2f}%" y="14">{number}</text>'
        for tick, number in zip(ticks, _numbers([unit * tick for tick in ticks]), strict=True)
    )
    return f'<svg class="axis" aria-hidden="true">{texts}</svg>'


@dataclass(frozen=True)
class Curve:
    """A line of a chart: its points, its class in the style sheet, and what it is."""

    points: Sequence[tuple[float, float]]
    kind: str
    words: str


def curve_chart(
    curves: Sequence[Curve],
    marks: Sequence[tuple[float, float, str]],
    label: str,
    *,
    unit: float = 1.0,
    logarithmic: bool = False,
) -> str:
    """Curves over epochs with an axis to the left and one below.

    Args:
        curves: the lines.
        marks: points to stand out, each with what is said about it.
        label: what the chart says to those who do not see it.
        unit: multiplies the numbers of the vertical axis.
        logarithmic: whether that axis is.
    """
    ends = [(x, y) for x, y, _ in marks]
    points = [point for curve in curves for point in curve.points] + ends
    across = stretch_of([0.0, *(x for x, _ in points)])
    across = Stretch(0.0, across.high)
    up = stretch_of([y for _, y in points], logarithmic=logarithmic)
    ticks = up.ticks(4)
    numbers = _numbers([unit * tick for tick in ticks])
    left = "".join(
        f'<text x="100%" dx="-6" y="{100 - up.place(tick):.2f}%" dy="0.32em">{number}</text>'
        for tick, number in zip(ticks, numbers, strict=True)
    )
    grid = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{100 - up.place(t):.2f}%" '
        f'y2="{100 - up.place(t):.2f}%"/>'
        for t in ticks
    )
    lines = "".join(
        f'<path class="curve {curve.kind}" d="{_path(curve.points, across, up)}">'
        f"<title>{escape(curve.words)}</title></path>"
        for curve in curves
    )
    dots = "".join(
        f'<circle class="best" cx="{across.place(x):.2f}%" cy="{100 - up.place(y):.2f}%" r="4">'
        f"<title>{escape(words)}</title></circle>"
        for x, y, words in marks
        if math.isfinite(y) and (y > 0 or not logarithmic)
    )
    return (
        f'<div class="chart"><svg class="left" aria-hidden="true">{left}</svg>'
        f'<svg class="plot" role="img" aria-label="{escape(label)}">{grid}'
        '<svg x="0" y="0" width="100%" height="100%" viewBox="0 0 100 100" '
        f'preserveAspectRatio="none">{lines}</svg>{dots}</svg>'
        f"<span></span>{axis(across)}</div>"
    )


def _path(points: Sequence[tuple[float, float]], across: Stretch, up: Stretch) -> str:
    """A path through all known points, broken where one is not known."""
    step = -(-len(points) // _MOST_POINTS) or 1
    kept = [point for k, point in enumerate(points) if k % step == 0 or k == len(points) - 1]
    words, pen = [], "M"
    for x, y in kept:
        if not math.isfinite(y) or (up.logarithmic and y <= 0):
            pen = "M"
            continue
        words.append(f"{pen}{across.place(x):.2f} {100 - up.place(y):.2f}")
        pen = "L"
    return "".join(words)


def _vertical(kind: str, place: float, top: str = "0", bottom: str = "100%") -> str:
    return f'<line class="{kind}" x1="{place:.2f}%" x2="{place:.2f}%" y1="{top}" y2="{bottom}"/>'


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, the nearest to ``rough``."""
    power = 10.0 ** math.floor(math.log10(rough))
    share = rough / power  # from 1 to 10
    return power * (1 if share < 1.5 else 2 if share < 3.5 else 5 if share < 7.5 else 10)


def _numbers(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as it takes to tell them apart."""
    if any(abs(value) >= 1e6 or 0 < abs(value) < 1e-4 for value in values):
        return [f"{value:.0e}".replace("e+0", "e").replace("e-0", "e-") for value in values]
    for digits in range(6):
        texts = [f"{value:.{digits}f}" for value in values]
        if all(math.isclose(float(t), v, abs_tol=1e-9) for t, v in zip(texts, values, strict=True)):
            break
    return texts if values else []


def escape(words: str) -> str:
    """Any words as text or as an attribute of a page."""
    return markup.escape(one_line(words))
