"""What the arrays of a pack must hold: a checksum only says that they are as they were written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from coopsheaf.checks import check_choice
from coopsheaf.data.dataset import TASKS
from coopsheaf.data.errors import DataError

CHUNK = 1 << 24  # entries looked at at once: the arrays may be larger than memory


def check_arrays(
    folder: Path,
    arrays: dict[str, Tensor],
    task: str,
    class_names: Sequence[str],
    node_ids: Sequence[str],
) -> None:
    """Check features, targets, weights and names of a pack against each other.

    Args:
        folder: the pack, named in errors.
        arrays: by the names of ``NodeDataset``: ``x (n, F)``, ``y (n,)`` or ``(n, k)``,
            ``edge_index (2, m)``, ``edge_weight (m,)``, ``edge_attr (m, k)``.
        task: of the pack.
        class_names, node_ids: empty, or as many as there are classes and nodes.
    """
    check_choice("task", task, TASKS)
    x, y = arrays["x"], arrays["y"]
    n, m = x.shape[0], arrays["edge_index"].shape[1]
    _rule(folder, x.dim() == 2 and x.is_floating_point(), "x must be numbers of shape (n, F)")
    _rule(folder, _all_finite(x), "x must be finite")
    _rule(folder, y.dim() in (1, 2) and y.shape[0] == n, f"y must have {n} rows")
    if task in ("binary", "multiclass"):
        whole = y.dtype == torch.int64 and y.dim() == 1 and n > 0
        _rule(folder, whole, "y must be class numbers of shape (n,)")
        most = {"binary": 2}.get(task, len(class_names) or n)
        low, high = (int(value) for value in y.aminmax())
        _rule(folder, low >= -1 and high < most, f"y must be from -1 to {most - 1}")
    else:
        _rule(folder, y.is_floating_point(), "y must be real numbers")
    weight = arrays.get("edge_weight")
    if weight is not None:
        fits = weight.shape == (m,) and weight.is_floating_point() and _all_finite(weight)
        _rule(folder, fits and bool((weight >= 0).all()), f"edge_weight must be {m} weights")
    attributes = arrays.get("edge_attr")
    if attributes is not None:
        fits = attributes.dim() == 2 and attributes.shape[0] == m and attributes.shape[1] > 0
        fits = fits and attributes.is_floating_point() and _all_finite(attributes)
        _rule(folder, fits, f"edge_attr must be finite numbers of {m} edges")
    _rule(folder, len(node_ids) in (0, n), f"node_ids must be {n} names or none")


def _rule(folder: Path, holds: bool, text: str) -> None:
    if not holds:
        raise DataError(f"{folder}: not a pack of coopsheaf ({text})")


def _all_finite(tensor: Tensor) -> bool:
    """Without a second tensor of its size."""
    return all(bool(torch.isfinite(part).all()) for part in tensor.reshape(-1).split(CHUNK))
