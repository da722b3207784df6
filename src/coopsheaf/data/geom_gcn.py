"""The WebKB graphs and film as Pei et al., "Geom-GCN" (2020), publish them: two tables of text and
ten fixed splits (48/32/20 %, although the file names say 0.6 and 0.2), and files of relations, made
of embeddings of the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from coopsheaf.data.errors import DataError
from coopsheaf.data.tensors import NodeTensors, load_npz, node_parts, reading, rule

SPACES = ("graph", "latent_space")
NUM_QUADRANTS = 4
RELATION_HEADER = "node1,node2\tspace\trelation_type"


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


def read_relations(path: Path, parts: NodeTensors) -> tuple[NodeTensors, Tensor, tuple[str, ...]]:
    """The graph with the edges of a file of relations in place of its own.

    A line ``node1,node2<TAB>space<TAB>relation_type`` is an edge from the first node to the second,
    in a division: neighbours in the graph or in the embedding, in one of four directions there. Of
    several lines about one pair the last holds. Divisions are numbered in the order in which they
    are first met. A node is no neighbour of its own: its loop is a division that networks add.

    Args:
        path: the file; it must list every edge of the graph.
        parts: the graph as stored.

    Returns:
        The graph, the division of every edge as a one-hot row ``(m, divisions)``, and the names of
        the divisions.
    """
    n = parts.x.shape[0]
    divisions: dict[tuple[str, int], int] = {}
    found: dict[tuple[int, int], int] = {}
    for number, fields in _rows(path, 3, RELATION_HEADER):
        pair = _integers(path, number, "the nodes", *fields[0].split(","))
        holds = len(pair) == 2 and all(0 <= node < n for node in pair)
        rule(path, holds, f"line {number} must join two nodes, 0 to {n - 1}", repr(fields[0][:40]))
        text = f"line {number} must name a space, {' or '.join(SPACES)}"
        rule(path, fields[1] in SPACES, text, repr(fields[1][:40]))
        kind = _integers(path, number, "the relation", fields[2])[0]
        text = f"line {number} must name a relation, 0 to {NUM_QUADRANTS - 1}"
        rule(path, 0 <= kind < NUM_QUADRANTS, text, kind)
        found[pair[0], pair[1]] = divisions.setdefault((fields[1], kind), len(divisions))
    rule(path, len(found) > 0, "must have a line for each relation", "none")
    for u, v in parts.edge_index.T.tolist():
        text = "must list every edge of the graph (are they of one dataset?)"
        rule(path, u == v or (u, v) in found, text, f"none from {u} to {v}")
    kept = {pair: division for pair, division in found.items() if pair[0] != pair[1]}
    edge_index = torch.tensor(list(kept), dtype=torch.int64).reshape(-1, 2).T.contiguous()
    attr = torch.zeros(len(kept), len(divisions))
    attr[torch.arange(len(kept)), torch.tensor(list(kept.values()), dtype=torch.int64)] = 1.0
    names = tuple(f"{space} {kind}" for space, kind in divisions)
    return parts._replace(edge_index=edge_index), attr, names


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


def _rows(path: Path, columns: int, header: str = "node_id") -> list[tuple[int, list[str]]]:
    """The lines after the header, which begins with ``header``, and their numbers, cut at tabs."""
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
            begins = (line if "\t" in header else fields[0]) == header
            rule(path, begins, "line 1 must be the header", repr(line[:40]))
        else:
            rows.append((number, fields))
    return rows


def _integers(path: Path, line: int, what: str, *fields: str) -> list[int]:
    try:
        return [int(field) for field in fields]
    except ValueError as error:
        text = ",".join(fields)[:40]
        raise DataError(f"{path}: line {line}: {what} must be integers; found {text!r}") from error
