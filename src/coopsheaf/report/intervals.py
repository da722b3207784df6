"""Intervals of means, by Student's t. Imports no PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

# The 0.975 quantile of Student's t for 1 to 10 degrees of freedom.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def t_quantile(freedom: int) -> float:
    """The 0.975 quantile of Student's t, to a thousandth."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of a mean by Student's t; ``None`` for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    half = t_quantile(count - 1) * stdev(values) / math.sqrt(count)
    mean = fmean(values)
    return mean - half, mean + half
