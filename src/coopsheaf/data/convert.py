"""Graphs that are in memory already: networkx, arrays, PyG ``Data``.

Nothing that is passed in is changed. A directed graph stays directed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.checks import check_choice
from coopsheaf.data.dataset import TASKS, NodeDataset, default_metric
from coopsheaf.data.errors import DataError
from coopsheaf.data.messages import show
from coopsheaf.data.splits import stratified_split
from coopsheaf.data.tables.reading.graph_objects import is_networkx

__all__ = ["from_arrays", "from_data", "from_networkx"]


def from_arrays(
    x: object,
    adjacency: object,
    y: object,
    *,
    train: object = None,
    val: object = None,
    test: object = None,
    task: str | None = None,
    seed: int = 0,
    name: str = "arrays",
) -> NodeDataset:
    """A graph from features, an adjacency matrix and targets.

    Args:
        x: ``(n, F)`` array of finite numbers.
        adjacency: ``(n, n)``, a scipy sparse matrix or an array; an entry ``[i, j]`` other than
            zero is the edge from ``i`` to ``j``, and its weight unless all are 1.
        y: ``(n,)`` whole numbers (-1: unknown) or texts (empty or ``None``: unknown) are classes;
            real numbers (NaN: unknown) are targets of a regression; with nothing but 0, 1 and NaN
            they are two classes if ``(n,)`` and a multilabel task if ``(n, k)``.
        train, val, test: ``(n,)`` or ``(n, splits)`` masks, all or none; without them a stratified
            60/20/20 split of the labelled nodes by ``seed``.
        task: a key of ``TASKS``; found from ``y`` by default.
    """
    features = _features("x", x)
    n = features.shape[0]
    edge_index, weight = adjacency_edges(adjacency, n)
    return _assemble(name, features, edge_index, weight, y, (train, val, test), task, seed)


def from_data(
    data: Data,
    *,
    task: str | None = None,
    seed: int = 0,
    name: str = "data",
    edge_features: bool = False,
) -> NodeDataset:
    """A graph from a PyG ``Data`` with ``x``, ``edge_index`` and ``y``, its features as they are.

    ``edge_weight`` is used if it is there, and ``train_mask``, ``val_mask`` and ``test_mask``,
    ``(n,)`` or ``(n, splits)``, if all three are. For ``y`` and ``task`` see :func:`from_arrays`;
    :func:`~coopsheaf.data.load_tables` takes a ``Data``, too, and standardises its columns.

    Args:
        edge_features: take ``edge_attr`` along, for networks that use features of edges.
    """
    for attribute in ("x", "edge_index", "y"):
        if getattr(data, attribute, None) is None:
            raise DataError(f"`data` must have `{attribute}`; got {show(str(data), 80)}")
    features = _features("data.x", data.x)
    edge_index = _edge_index("data.edge_index", data.edge_index, features.shape[0])
    weight = getattr(data, "edge_weight", None)
    if weight is not None:
        weight = _weight("data.edge_weight", weight, edge_index.shape[1])
    masks = tuple(getattr(data, f"{part}_mask", None) for part in ("train", "val", "test"))
    dataset = _assemble(name, features, edge_index, weight, data.y, masks, task, seed)
    attributes = getattr(data, "edge_attr", None)
    if attributes is None:
        return dataset
    if not edge_features:
        warnings.warn("`data.edge_attr` is not used: edge_features=True takes it", stacklevel=2)
        return dataset
    attributes = _tensor("data.edge_attr", attributes).float()
    return replace(dataset, edge_attr=attributes.reshape(edge_index.shape[1], -1))


def from_networkx(graph: Any, *, target: str | Sequence[str], **options: Any) -> NodeDataset:
    """A graph from a networkx graph whose nodes have attributes.

    Attributes are read as the columns of a node table are: numbers are standardised over the
    training nodes, texts are categories, a list or array is one column per entry, absent or
    ``None`` is missing. Attributes of edges are the columns of an edge table.

    Args:
        target: the attribute to predict.
        options: those of :func:`~coopsheaf.data.load_tables`, which also gives the fitted encoder,
            for other graphs.
    """
    from coopsheaf.data.tables.load import load_tables

    if not is_networkx(graph):
        raise DataError(f"`graph` must be a networkx graph; got {type(graph).__name__}")
    dataset = load_tables(graph, target=target, **options).dataset
    assert isinstance(dataset, NodeDataset)
    return dataset


def _assemble(
    name: str,
    x: Tensor,
    edge_index: Tensor,
    weight: Tensor | None,
    y: object,
    masks: tuple[object, ...],
    task: str | None,
    seed: int,
) -> NodeDataset:
    if task is not None:
        check_choice("task", task, TASKS)
    targets, class_names, task = _targets(y, x.shape[0], task)
    known = targets >= 0 if not targets.is_floating_point() else ~targets.isnan()
    known = known if known.dim() == 1 else known.any(1)
    train, val, test = given_masks(masks, targets, known, seed)
    for part, mask in (("training", train), ("validation", val)):
        empty = (~mask.any(1)).nonzero()
        if len(empty):
            raise DataError(
                f"every split must have labelled nodes for {part}; split {int(empty[0])} of "
                f"{int(known.sum())} labelled nodes has none"
            )
    return NodeDataset(
        name=name,
        x=x,
        edge_index=edge_index,
        y=targets,
        train=train,
        val=val,
        test=test,
        task=task,
        metric=default_metric(task, targets, val, test),
        class_names=class_names,
        edge_weight=weight,
    )


def _tensor(argument: str, value: object) -> Tensor:
    """A tensor of numbers, on the CPU and without gradient."""
    try:
        tensor = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError):
        raise DataError(
            f"`{argument}` must be an array of numbers; got {type(value).__name__}"
        ) from None
    if tensor.is_complex() or tensor.layout != torch.strided:
        raise DataError(f"`{argument}` must be a dense array of real numbers; got {tensor.dtype}")
    tensor = tensor.detach().cpu()
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor  # numpy has none


def _features(argument: str, value: object) -> Tensor:
    """``(n, F)`` float32."""
    to_dense = getattr(value, "toarray", None)  # of a scipy sparse matrix
    if to_dense is not None:
        value = to_dense()
    x = _tensor(argument, value).float()
    if x.dim() != 2 or 0 in x.shape:
        raise DataError(f"`{argument}` must have shape (n, F), not empty; got {tuple(x.shape)}")
    bad = (~x.isfinite()).nonzero()
    if len(bad):
        row, column = bad[0].tolist()
        raise DataError(
            f"`{argument}` must be finite; row {row}, column {column} is {x[row, column].item()}"
        )
    return x


def _edge_index(argument: str, value: object, n: int) -> Tensor:
    edge_index = _tensor(argument, value)
    if edge_index.dtype != torch.int64 or edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise DataError(
            f"`{argument}` must be an int64 tensor of shape (2, m); "
            f"got {edge_index.dtype} of shape {tuple(edge_index.shape)}"
        )
    outside = ((edge_index < 0) | (edge_index >= n)).any(0).nonzero()
    if len(outside):
        edge = int(outside[0])
        raise DataError(
            f"`{argument}` must join nodes 0 to {n - 1}; edge {edge} is "
            f"{tuple(edge_index[:, edge].tolist())}"
        )
    return edge_index


def _weight(argument: str, value: object, m: int) -> Tensor:
    weight = _tensor(argument, value).float()
    if weight.shape != (m,):
        raise DataError(f"`{argument}` must have shape ({m},); got {tuple(weight.shape)}")
    bad = (~((weight >= 0) & weight.isfinite())).nonzero()
    if len(bad):
        edge = int(bad[0])
        raise DataError(
            f"`{argument}` must be finite and not negative; edge {edge} has {weight[edge].item()}"
        )
    return weight


def adjacency_edges(adjacency: object, n: int) -> tuple[Tensor, Tensor | None]:
    """``(2, m)`` edges in the order of the rows, and ``(m,)`` weights unless all are 1."""
    if getattr(adjacency, "shape", None) != (n, n):
        raise DataError(
            f"`adjacency` must be an array or sparse matrix of shape ({n}, {n}), as `x` has {n} "
            f"rows; got {getattr(adjacency, 'shape', type(adjacency).__name__)}"
        )
    if hasattr(adjacency, "tocsr"):
        matrix = adjacency.tocsr(copy=True)
        matrix.sum_duplicates()
        matrix = matrix.tocoo()
        row, column, entries = matrix.row, matrix.col, matrix.data
    else:
        dense = _tensor("adjacency", adjacency).numpy()
        row, column = np.nonzero(dense)
        entries = dense[row, column]
    keep = np.flatnonzero(entries)
    edges = torch.from_numpy(np.stack([row[keep], column[keep]]).astype(np.int64))
    weight = _weight("adjacency", entries[keep], len(keep))
    return edges, None if bool((weight == 1).all()) else weight


def _targets(y: object, n: int, task: str | None) -> tuple[Tensor, tuple[str, ...], str]:
    """Targets as a :class:`NodeDataset` has them, class names, task."""
    try:
        array = np.asarray(_tensor("y", y) if isinstance(y, Tensor) else y)
    except (TypeError, ValueError):
        raise DataError("`y` must be an array; got lists of different lengths") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.shape[0] != n:
        raise DataError(f"`y` must have shape ({n},) or ({n}, k); got {array.shape}")
    if array.dtype.kind in "OUS" and array.ndim == 1:
        return _named_classes(array.tolist(), task)
    if array.dtype.kind not in "biuf":
        raise DataError(f"`y` must be numbers or texts; got an array of {array.dtype}")
    if np.isinf(array).any():
        raise DataError("`y` must be finite, or NaN where unknown; got an infinite target")
    real = array.ndim == 2 or array.dtype.kind == "f"
    zero_one = bool(np.all((array == 0) | (array == 1) | (array != array)))
    if task is None and real:
        task = "regression" if not zero_one else "binary" if array.ndim == 1 else "multilabel"
    if real and task in ("binary", "multiclass"):
        known = array == array  # not NaN
        if array.ndim == 2 or not np.all(array[known] == np.floor(array[known])):
            raise DataError(f"`y` must be one whole number per node for a {task} task")
        array = np.where(known, array, -1).astype(np.int64)
    if task in ("regression", "multilabel"):
        targets = torch.from_numpy(np.array(array, dtype=np.float64)).float()
        if targets.isinf().any():
            raise DataError("`y` must be below 3e38, the largest float32; got a larger target")
        if task == "multilabel" and not (zero_one and targets.dim() == 2):
            raise DataError("`y` must be (n, k) of 0, 1 and NaN for a multilabel task")
        return targets, (), task
    numbers = array.astype(np.int64)
    if numbers.min() < -1:
        raise DataError(f"`y` must be class numbers from 0, or -1 for unknown; got {numbers.min()}")
    classes = np.unique(numbers[numbers >= 0])
    _check_classes([str(c) for c in classes], task)
    codes = np.where(numbers >= 0, np.searchsorted(classes, numbers), -1)
    names = tuple(str(c) for c in classes)
    return torch.from_numpy(codes), names, task or _class_task(names)


def _named_classes(values: list[Any], task: str | None) -> tuple[Tensor, tuple[str, ...], str]:
    texts = ["" if _is_none(value) else str(value) for value in values]
    names = tuple(sorted(set(texts) - {""}))
    _check_classes(names, task)
    number = {name: i for i, name in enumerate(names)}
    return torch.tensor([number.get(t, -1) for t in texts]), names, task or _class_task(names)


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _check_classes(names: Sequence[str], task: str | None) -> None:
    if task in ("regression", "multilabel"):
        raise DataError(f"`y` must be numbers for a {task} task; got classes such as {names[:2]}")
    if len(names) < 2:
        raise DataError(f"`y` must have labels of two classes or more; got {len(names)}")
    if task == "binary" and len(names) != 2:
        raise DataError(f"`y` must have two classes for a binary task; got {len(names)}")


def _class_task(names: Sequence[str]) -> str:
    return "binary" if len(names) == 2 else "multiclass"


def given_masks(
    masks: tuple[object, ...], y: Tensor, known: Tensor, seed: int
) -> tuple[Tensor, ...]:
    """Three ``(splits, n)`` masks of labelled nodes."""
    if all(mask is None for mask in masks):
        return tuple(mask[None] for mask in stratified_split(y, known, seed=seed))
    if any(mask is None for mask in masks):
        raise DataError("the masks of train, val and test must be given together, or none of them")
    n, result = len(known), []
    for part, value in zip(("train", "val", "test"), masks, strict=True):
        mask = _tensor(part, value)
        if mask.dim() not in (1, 2) or mask.shape[0] != n or mask.is_floating_point():
            raise DataError(
                f"the {part} mask must be boolean of shape ({n},) or ({n}, splits); "
                f"got {mask.dtype} of shape {tuple(mask.shape)}"
            )
        result.append(mask.bool().reshape(n, -1).T & known)
    if len({mask.shape for mask in result}) > 1:
        counts = ", ".join(str(mask.shape[0]) for mask in result)
        raise DataError(f"the masks must have one number of splits; got {counts}")
    return tuple(result)
