"""The heterophilous graphs of Platonov et al., "A critical look at the evaluation of GNNs under
heterophily" (2023): one npz file each, with ten splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from coopsheaf.data.tensors import NodeTensors, load_npz, node_parts

KEYS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")


def read_platonov(paths: Sequence[Path]) -> NodeTensors:
    """Read one npz file.

    It has ``node_features (n, F)``, ``node_labels (n,)``, ``edges (m, 2)`` and
    ``train_masks``, ``val_masks``, ``test_masks`` of shape ``(10, n)``. The undirected graphs are
    stored with every edge once; the directed ones list arcs, with self-loops.
    """
    (path,) = paths
    arrays = load_npz(path, KEYS)
    masks = (arrays["train_masks"], arrays["val_masks"], arrays["test_masks"])
    return node_parts(path, arrays["node_features"], arrays["edges"], arrays["node_labels"], masks)
