"""What people hand to an estimator, looked at before it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.estimators.scoring import as_targets


def as_nodes(nodes: Any) -> Any:
    """A graph or its nodes as they are; lists of numbers, and what can be one, as an array."""
    like = hasattr(nodes, "__array__") and not hasattr(nodes, "shape")
    if isinstance(nodes, list) or (like and not hasattr(nodes, "columns")):
        nodes = np.asarray(nodes)
    if not is_array(nodes):
        return nodes
    if nodes.ndim != 2:
        raise ValueError(
            f"`nodes` must have shape (n, F), a row for each node; got {tuple(nodes.shape)}. "
            "Reshape your data: x.reshape(-1, 1) is one feature"
        )
    if isinstance(nodes, np.ndarray) and nodes.dtype.kind == "O":
        try:
            return nodes.astype(np.float64)
        except (TypeError, ValueError):
            return nodes  # who reads it says what is wrong
    return nodes


def is_array(nodes: Any) -> bool:
    """Whether nodes are features without names."""
    return hasattr(nodes, "shape") and hasattr(nodes, "ndim") and not hasattr(nodes, "columns")


def check_width(nodes: Any, width: int | None, who: str) -> None:
    """Columns without names are told by their number alone; so it has to be that of training."""
    if width is not None and is_array(nodes) and nodes.shape[1] != width:
        raise ValueError(
            f"X has {nodes.shape[1]} features, but {who} is expecting {width} features as input"
        )


def check_classes(y: Any) -> None:
    """Refuse numbers with fractions: they are no classes."""
    values = as_targets(y)
    if values.dtype.kind == "f":
        known = values[~np.isnan(values)]
        if not np.array_equal(known, np.floor(known)):
            raise ValueError(
                "Unknown label type: `y` must be classes; it is continuous, numbers with "
                "fractions, which a GraphRegressor predicts"
            )


def are_edges(given: Any) -> bool:
    """Whether the second argument of ``score`` cannot be targets: a path, a table, two rows."""
    if isinstance(given, str | Path | Mapping):
        return True
    table = hasattr(given, "columns") or hasattr(given, "column_names")
    shape: Any = getattr(given, "shape", ())
    return table or (len(shape) == 2 and shape[0] == 2 and shape[1] != 1)


def check_weight(weight: Any) -> Tensor | None:
    if weight is None:
        return None
    found = torch.as_tensor(np.asarray(as_targets(weight), dtype=np.float64))
    if found.dim() != 1 or not bool(torch.isfinite(found).all()) or bool((found < 0).any()):
        raise ValueError(
            "`sample_weight` must be one finite number per node, not negative; got "
            f"{tuple(found.shape)} with {int((~(found >= 0)).sum())} others"
        )
    if not bool((found > 0).any()):
        raise ValueError("`sample_weight` must not be zero everywhere; it is")
    return found


def without_silent(y: Any, weight: Tensor | None) -> Any:
    """Targets without those of weight zero: nobody learns from them, nor chooses by them."""
    if weight is None or bool((weight > 0).all()):
        return y
    values = as_targets(y)
    if len(values) != len(weight):
        raise ValueError(f"`sample_weight` must have shape ({len(values)},); got ({len(weight)},)")
    silent = (weight == 0).numpy()
    values = values.astype(np.float64 if values.dtype.kind == "f" else object)
    values[silent] = np.nan if values.dtype.kind == "f" else None
    return values if values.dtype.kind == "f" else values.tolist()


def weigh(dataset: NodeDataset, weight: Tensor) -> NodeDataset:
    """The same graph whose training nodes count as said; other weights, another checksum."""
    if len(weight) != dataset.num_nodes:
        raise ValueError(
            f"`sample_weight` must have shape ({dataset.num_nodes},); got ({len(weight)},)"
        )
    heard = weight > 0
    parts = {part: getattr(dataset, part) & heard for part in ("train", "val")}
    digest = hashlib.sha256(dataset.checksum.encode() + weight.numpy().tobytes()).hexdigest()
    return replace(dataset, sample_weight=weight, checksum=digest, **parts)


def check_mask(mask: Any, n: int) -> NDArray[np.bool_]:
    found = as_targets(mask)
    if found.dtype != np.bool_ or found.shape != (n,):
        raise ValueError(
            f"`mask` must be booleans of shape ({n},); got {found.dtype} of shape {found.shape}"
        )
    return found
