"""Paired comparisons over splits. Imports no PyTorch.

Two settings that were run on the same splits are compared split by split: the splits differ more
from each other than the settings do, and what they have in common cancels. For n differences with
mean δ and sample deviation s there are two intervals of 95 %:

    δ ± t(n - 1) · s · sqrt(1/n)              as if the splits were independent,
    δ ± t(n - 1) · s · sqrt(1/n + q)          for random splits of one dataset,

with q the number of test nodes per training node (Nadeau and Bengio, 2003): training sets overlap,
so the differences are alike, and the first interval is two or three times too narrow. Verdicts
are given by the second one.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev

from coopsheaf.report.intervals import t_quantile

ONE_SPLIT = "one split"
VERDICTS = ("better", "worse", "undecided")


@dataclass(frozen=True)
class Paired:
    """Two settings on their common splits, in the order of the splits.

    Args:
        first, second: their test scores.
        sign: 1, or -1 where scores are errors.
        test_per_train: test nodes per training node.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    sign: float = 1.0
    test_per_train: float = 0.5

    @property
    def differences(self) -> tuple[float, ...]:
        """One per split; positive where the first is better."""
        return tuple(self.sign * (a - b) for a, b in zip(self.first, self.second, strict=True))

    @property
    def mean(self) -> float:
        return fmean(self.differences)

    @property
    def half_width(self) -> float | None:
        """Of the interval for independent splits; ``None`` for a single split."""
        return self._half(0.0)

    @property
    def corrected_half_width(self) -> float | None:
        """Of the interval for random splits of one dataset."""
        return self._half(self.test_per_train)

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` if the corrected interval excludes zero."""
        half = self.corrected_half_width
        if half is None:
            return ONE_SPLIT
        if abs(self.mean) <= half:
            return "undecided"
        return "better" if self.mean > 0 else "worse"

    def _half(self, more: float) -> float | None:
        n = len(self.differences)
        if n < 2:
            return None
        return t_quantile(n - 1) * stdev(self.differences) * (1 / n + more) ** 0.5
