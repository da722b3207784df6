"""Facebook100 networks (Traud et al. 2012) as Lim et al. (2021) use them: predict the gender of a
user from friendships and the other columns of the profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coopsheaf.data.errors import DataError
from coopsheaf.data.mat5 import Sparse, read_mat
from coopsheaf.data.tensors import NodeTensors, index_masks, node_parts, reading, rule
from coopsheaf.data.unpickle import load_object_array

COLUMNS = ("status", "gender", "major", "second major", "dormitory", "year", "high school")
GENDER = 1
RANDOM_SPLITS = 5


def read_fb100(paths: Sequence[Path]) -> NodeTensors:
    """Read a network, and its fixed splits if there is a second file.

    The ``.mat`` file has ``A (n, n)``, sparse and symmetric, and ``local_info (n, 7)``, where 0
    means "not told". The features are the one-hot codes of every column but the gender, next to
    one another; the label is the gender less one, so -1 where it is not told.

    Only Penn94 has published splits. For the others, five random ones of the labelled nodes
    (50/25/25 %, numbered 0 to 4) are drawn from the fixed stream of a PCG64 generator.

    Args:
        paths: the ``.mat`` file; then, if there is one, the ``.npy`` file of the splits.
    """
    path, *splits_path = paths
    edges, profile = _read_mat(path)
    y = profile[:, GENDER] - 1
    rule(path, len(y) > 0, "must have at least one user", "none")
    rule(path, int(y.max()) <= 1, "gender must be 0 (not told), 1 or 2", int(y.max()) + 1)
    if splits_path:
        masks = _read_splits(splits_path[0], len(y))
    else:
        labelled = np.flatnonzero(y >= 0)
        splits = [random_split(labelled, seed) for seed in range(RANDOM_SPLITS)]
        masks = index_masks(path, splits, len(y))
    return node_parts(path, one_hot(np.delete(profile, GENDER, axis=1)), edges, y, masks)


def one_hot(columns: np.ndarray) -> np.ndarray:
    """``(n, k)`` codes as ``(n, F)`` zeros and ones: for each column one place per value."""
    codes = [np.unique(column, return_inverse=True) for column in columns.T]
    x = np.zeros((len(columns), sum(len(values) for values, _ in codes)), dtype=np.float32)
    start = 0
    for values, code in codes:
        x[np.arange(len(columns)), start + code] = 1.0
        start += len(values)
    return x


def random_split(nodes: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half of the nodes, a quarter, and the rest; the same on every machine and version."""
    order = nodes[np.argsort(np.random.PCG64(seed).random_raw(len(nodes)), kind="stable")]
    half, quarter = len(nodes) // 2, len(nodes) // 4
    return order[:half], order[half : half + quarter], order[half + quarter :]


def _read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """``(m, 2)`` edges sorted by source, and ``(n, 7)`` codes."""
    content = read_mat(path, ("A", "local_info"))
    matrix, profile = content["A"], content["local_info"]
    if not isinstance(matrix, Sparse):
        raise DataError(f"{path}: A must be sparse; found a full matrix")
    if isinstance(profile, Sparse):
        raise DataError(f"{path}: local_info must be a full matrix; found a sparse one")
    n, width = matrix.shape[0], len(COLUMNS)
    rule(path, matrix.shape == (n, n), "A must be square", matrix.shape)
    fits = profile.shape == (n, width)
    rule(path, fits, f"local_info must have shape ({n}, {width})", profile.shape)
    with np.errstate(invalid="ignore"):
        whole = bool(((profile >= 0) & (profile < 2**31) & (profile % 1 == 0)).all())
    rule(path, whole, "local_info must be integers", profile.dtype)
    kept = matrix.values != 0
    rows, columns = matrix.rows[kept], matrix.columns[kept]
    order = np.lexsort((columns, rows))
    return np.stack([rows[order], columns[order]], axis=1), profile.astype(np.int64)


def _read_splits(path: Path, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An array of dictionaries with lists ``train``, ``valid`` and ``test`` of node numbers."""
    splits = []
    for number, split in enumerate(load_object_array(path).reshape(-1)):
        keys = ("train", "valid", "test")
        holds = isinstance(split, dict) and all(key in split for key in keys)
        rule(path, holds, f"split {number} must have {', '.join(keys)}", type(split).__name__)
        with reading(path, "lists of node numbers"):
            train, val, test = (np.asarray(split[key]) for key in keys)
        splits.append((train, val, test))
    rule(path, len(splits) > 0, "must hold at least one split", "none")
    return index_masks(path, splits, n)
