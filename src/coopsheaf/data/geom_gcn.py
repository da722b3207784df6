"""The WebKB graphs and film as Pei et al., "Geom-GCN" (2020), publish them: two tables of text and
ten fixed splits (48/32/20 %, although the file names say 0.6 and 0.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from coopsheaf.data.errors import DataError
from coopsheaf.data.tensors import NodeTensors, load_npz, node_parts, reading, rule


def read_geom_gcn(paths: Sequence[Path], *, indexed_features: int | None = None) -> NodeTensors:
    """Read the edge table, the node table and the splits, in this order.

    Args:
        paths: ``out1_graph_edges.txt``, ``out1_node_feature_label.txt``, then one npz file per
            split with ``train_mask``, ``val_mask`` and ``test_mask`` of shape ``(n,)``.
        indexed_features: if given, the node table lists the positions of the non-zero features
            among this many (as film does) in place of all values.
    """
    edges_path, nodes_path, *split_paths = paths
    x, y = _read_nodes(nodes_path, indexed_features)
    edges = _read_edges(edges_path, len(y))
    splits = [_read_split(path, len(y)) for path in split_paths]
    train, val, test = (np.stack(part) for part in zip(*splits, strict=True))
    return node_parts(nodes_path, x, edges, y, (train, val, test))


def _read_nodes(path: Path, indexed: int | None) -> tuple[np.ndarray, np.ndarray]:
    """``(n, F)`` features and ``(n,)`` labels, in the order of the node numbers."""
    features: dict[int, list[int]] = {}
    labels: dict[int, int] = {}
    for number, fields in _rows(path, 3):
        node = _integers(path, number, "the node", fields[0])[0]
        rule(path, node not in labels, f"line {number} must name a new node", node)
        features[node] = _integers(path, number, "the features", *fields[1].split(","))
        labels[node] = _integers(path, number, "the label", fields[2])[0]
        if indexed is None:
            width = len(next(iter(features.values())))
            holds, found = len(features[node]) == width, len(features[node])
            rule(path, holds, f"line {number} must have {width} features like the first", found)
        else:
            holds = all(0 <= position < indexed for position in features[node])
            text = f"line {number} must name features 0 to {indexed - 1}"
            rule(path, holds, text, fields[1][:40])
    n = len(labels)
    rule(path, n > 0, "must have a line for each node", "none")
    rule(path, set(labels) == set(range(n)), f"must number its {n} nodes from 0", max(labels))
    with reading(path, "a table of nodes"):
        if indexed is None:
            x = np.array([features[node] for node in range(n)], dtype=np.float32)
        else:
            x = np.zeros((n, indexed), dtype=np.float32)
            for node, positions in features.items():
                x[node, positions] = 1.0
        y = np.array([labels[node] for node in range(n)], dtype=np.int64)
    return x, y


def _read_edges(path: Path, n: int) -> np.ndarray:
    """``(m, 2)``, as listed: with direction, self-loops and repeated lines."""
    edges = []
    for number, fields in _rows(path, 2):
        edge = _integers(path, number, "the edge", *fields)
        holds = all(0 <= node < n for node in edge)
        rule(path, holds, f"line {number} must join nodes 0 to {n - 1}", fields)
        edges.append(edge)
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def _read_split(path: Path, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three ``(n,)`` masks."""
    arrays = load_npz(path, ("train_mask", "val_mask", "test_mask"))
    for name, mask in arrays.items():
        rule(path, mask.shape == (n,), f"{name} must have shape ({n},)", mask.shape)
        rule(path, mask.dtype.kind in "biu", f"{name} must be booleans or 0/1", mask.dtype)
    return arrays["train_mask"], arrays["val_mask"], arrays["test_mask"]


def _rows(path: Path, columns: int) -> list[tuple[int, list[str]]]:
    """The lines after the header with their numbers, cut at the tabs."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: must be UTF-8 text; byte {error.start} is not") from error
    except OSError as error:
        raise DataError(f"{path}: must be readable; {error.strerror}") from error
    lines = text.split("\n")
    rows = []
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line and number == len(lines):
            continue
        fields = line.split("\t")
        found = f"{len(fields)}: {line[:40]!r}"
        rule(path, len(fields) == columns, f"line {number} must have {columns} columns", found)
        if number == 1:
            rule(path, fields[0] == "node_id", "line 1 must be the header", repr(line[:40]))
        else:
            rows.append((number, fields))
    return rows


def _integers(path: Path, line: int, what: str, *fields: str) -> list[int]:
    try:
        return [int(field) for field in fields]
    except ValueError as error:
        text = ",".join(fields)[:40]
        raise DataError(f"{path}: line {line}: {what} must be integers; found {text!r}") from error
