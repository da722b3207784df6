"""Scores as scikit-learn defines them: higher is better, one at best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def accuracy(y: NDArray[Any], predicted: NDArray[Any], weight: NDArray[Any] | None = None) -> float:
    """Share of ``(n,)`` predictions that are right, Σ w_i [y_i = p_i] / Σ w_i."""
    return float(np.average(y == predicted, weights=weight))


def r_squared(
    y: NDArray[Any], predicted: NDArray[Any], weight: NDArray[Any] | None = None
) -> float:
    """1 - Σ w (y - p)² / Σ w (y - ȳ)², with the weighted mean ȳ; the mean over several targets.

    Where all targets are the same it is 1 for exact predictions and 0 for others.

    Args:
        y, predicted: ``(n,)`` or ``(n, k)``; NaN where the target is unknown.
        weight: ``(n,)``.
    """
    y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)  # (n, k)
    predicted = np.asarray(predicted, dtype=np.float64).reshape(y.shape)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    scores = []
    for target, guess in zip(y.T, predicted.T, strict=True):
        known = ~np.isnan(target)
        t, p, w = target[known], guess[known], weight[known]
        if not w.sum() > 0:
            continue
        left = float((w * (t - p) ** 2).sum())
        spread = float((w * (t - np.average(t, weights=w)) ** 2).sum())
        scores.append(1 - left / spread if spread else float(left == 0))
    return float(np.mean(scores)) if scores else float("nan")


def as_targets(y: Any) -> NDArray[Any]:
    """``(n,)`` or ``(n, k)`` of what came as a list, a Series, a frame or a tensor."""
    if hasattr(y, "detach"):
        y = y.detach().cpu()
    array = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def is_known(y: NDArray[Any]) -> NDArray[np.bool_]:
    """``(n,)``: the targets that are there; ``None`` and NaN are not."""
    if y.dtype.kind == "f":
        missing = np.isnan(y)
        return ~(missing if y.ndim == 1 else missing.all(1))
    if y.dtype.kind == "O":
        return np.array([value is not None and bool(np.all(value == value)) for value in y])
    return np.ones(len(y), dtype=np.bool_)
