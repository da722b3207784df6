"""What a reader takes out of the files, and the rules that every reader checks."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from coopsheaf.data.compressed import check_npz
from coopsheaf.data.errors import DataError
from coopsheaf.data.files import one_line, printable


class NodeTensors(NamedTuple):
    """A graph as stored."""

    x: Tensor  # (n, F) float32
    edge_index: Tensor  # (2, m) int64
    y: Tensor  # (n,) int64, -1 where unknown
    train: Tensor  # (splits, n) bool
    val: Tensor  # (splits, n) bool
    test: Tensor  # (splits, n) bool


class GraphTensors(NamedTuple):
    """Many graphs as stored, and the positions of those of each part."""

    graphs: Sequence[Data]
    train: Tensor  # (graphs in training,) int64
    val: Tensor
    test: Tensor


@contextlib.contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a damaged file makes a library raise into one line that names the file."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(printable(f"{path}: must be {kind}; {one_line(error)}")) from error


def rule(path: Path, holds: bool, text: str, found: object) -> None:
    """``text`` says what must be true of the file, ``found`` what it has instead."""
    if not holds:
        raise DataError(printable(f"{path}: {text}; found {found}"))


def load_npz(path: Path, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Arrays of numbers out of an npz file; nothing in it is ever unpickled."""
    with reading(path, "an npz file"), path.open("rb") as stream:
        rule(path, zipfile.is_zipfile(stream), "must be an npz file", "something else")
        stream.seek(0)
        archive: Any = np.load(stream, allow_pickle=False)
        missing = [key for key in keys if key not in archive.files]
        names = ", ".join(archive.files[:10]) or "nothing"
        rule(path, not missing, f"must have the array {', '.join(missing)}", names)
        check_npz(path, archive.zip, [_member(archive.zip, key) for key in keys])
        arrays = {key: archive[key] for key in keys}
        for key, array in arrays.items():
            is_array = isinstance(array, np.ndarray)
            rule(path, is_array, f"{key} must be an array", type(array).__name__)
        return arrays


def _member(archive: zipfile.ZipFile, key: str) -> str:
    """The name of an array inside of an npz file."""
    return key if key in archive.namelist() else f"{key}.npy"


def node_parts(
    path: Path,
    x: np.ndarray,
    edges: np.ndarray,
    y: np.ndarray,
    masks: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> NodeTensors:
    """Check the arrays of one graph and make tensors of them.

    Args:
        path: the file to name in an error.
        x: ``(n, F)`` numbers.
        edges: ``(m, 2)`` integers in ``[0, n)``.
        y: ``(n,)`` integers, -1 where unknown.
        masks: training, validation and test, ``(splits, n)`` booleans or 0/1.
    """
    rule(path, x.ndim == 2 and x.size > 0, "features must have shape (n, F)", x.shape)
    n = x.shape[0]
    rule(path, x.dtype.kind in "fiub", "features must be numbers", x.dtype)
    with np.errstate(over="ignore"):
        x = x.astype(np.float32, copy=False)
    rule(path, bool(np.isfinite(x).all()), "features must be finite", "NaN or infinity")
    whole = edges.dtype.kind in "iu" and edges.ndim == 2 and edges.shape[1:] == (2,)
    rule(path, whole, "edges must be integers of shape (m, 2)", f"{edges.dtype} {edges.shape}")
    rule(
        path,
        edges.size == 0 or (int(edges.min()) >= 0 and int(edges.max()) < n),
        f"edges must join nodes 0 to {n - 1}",
        f"{edges.min()} to {edges.max()}" if edges.size else "none",
    )
    whole = y.dtype.kind in "iu" and y.shape == (n,)
    rule(path, whole, f"labels must be {n} integers", f"{y.dtype} {y.shape}")
    y = y.astype(np.int64)
    rule(path, int(y.min()) >= -1, "labels must be at least -1 (unknown)", y.min())
    rule(path, int(y.max()) < n, f"there must be at most {n} classes", int(y.max()) + 1)
    train, val, test = (
        _mask(path, name, mask, n) for name, mask in zip(_PARTS, masks, strict=True)
    )
    rule(
        path,
        train.shape == val.shape == test.shape,
        "there must be as many training as validation and test masks",
        f"{train.shape[0]}, {val.shape[0]} and {test.shape[0]}",
    )
    overlap = (train & val) | (train & test) | (val & test)
    rule(path, not overlap.any(), "the parts of a split must be disjoint", "a node in two")
    unlabelled = (train | val | test) & (y < 0)
    rule(path, not unlabelled.any(), "masks must hold labelled nodes only", "a node without label")
    return NodeTensors(
        torch.from_numpy(x),
        torch.from_numpy(np.ascontiguousarray(edges.T.astype(np.int64))),
        torch.from_numpy(y),
        torch.from_numpy(train),
        torch.from_numpy(val),
        torch.from_numpy(test),
    )


_PARTS = ("training", "validation", "test")


def _mask(path: Path, name: str, mask: np.ndarray, n: int) -> np.ndarray:
    fits = mask.ndim == 2 and mask.shape[1] == n and mask.shape[0] > 0 and mask.dtype.kind in "biu"
    found = f"{mask.dtype} {mask.shape}"
    rule(path, fits, f"{name} masks must be booleans of shape (splits, {n})", found)
    rule(path, bool(np.isin(mask, (0, 1)).all()), f"{name} masks must be 0 or 1", "other numbers")
    return mask.astype(bool)


def index_masks(
    path: Path, splits: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lists of node numbers, one triple per split, as three ``(splits, n)`` masks."""
    masks = np.zeros((3, len(splits), n), dtype=bool)
    for number, split in enumerate(splits):
        for part, nodes in enumerate(split):
            rule(
                path,
                nodes.ndim == 1
                and (nodes.size == 0 or (nodes.dtype.kind in "iu" and int(nodes.min()) >= 0))
                and (nodes.size == 0 or int(nodes.max()) < n),
                f"split {number} must hold node numbers 0 to {n - 1}",
                f"{nodes.dtype} {nodes.shape}" if nodes.dtype.kind not in "iu" else "others",
            )
            masks[part, number, nodes.astype(np.int64)] = True
    return masks[0], masks[1], masks[2]
