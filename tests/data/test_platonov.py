"""Readers of npz files in the format of the heterophilous graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from published import mangled, npz_bytes, platonov_arrays, write_npz

from coopsheaf.data.errors import DataError
from coopsheaf.data.platonov import read_platonov

ARRAYS = platonov_arrays()


def test_a_file_is_read_as_stored(tmp_path: Path) -> None:
    parts = read_platonov([write_npz(tmp_path / "graph.npz", ARRAYS)])
    assert parts.x.dtype == torch.float32
    assert torch.equal(parts.x, torch.from_numpy(ARRAYS["node_features"]))
    assert torch.equal(parts.edge_index, torch.from_numpy(ARRAYS["edges"]).T)
    assert parts.edge_index.is_contiguous()
    assert torch.equal(parts.y, torch.from_numpy(ARRAYS["node_labels"]))
    for mask, name in zip(parts[3:], ("train_masks", "val_masks", "test_masks"), strict=True):
        assert torch.equal(mask, torch.from_numpy(ARRAYS[name]))


def test_half_precision_and_small_integers_are_widened(tmp_path: Path) -> None:
    arrays = {
        **ARRAYS,
        "node_features": ARRAYS["node_features"].astype(np.float16),
        "edges": ARRAYS["edges"].astype(np.uint8),
        "node_labels": ARRAYS["node_labels"].astype(np.int8),
        "train_masks": ARRAYS["train_masks"].astype(np.uint8),
    }
    parts = read_platonov([write_npz(tmp_path / "graph.npz", arrays)])
    assert [part.dtype for part in parts[:4]] == [
        torch.float32,
        torch.int64,
        torch.int64,
        torch.bool,
    ]
    assert parts.edge_index.max() == ARRAYS["edges"].max()


def changed(key: str, index: object, value: object) -> np.ndarray:
    array = ARRAYS[key].copy()
    array[index] = value  # type: ignore[index]
    return array


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("edges", None, "must have the array edges; found node_features, node_labels"),
        (
            "node_features",
            ARRAYS["node_features"][0],
            r"features must have shape \(n, F\); found \(6,\)",
        ),
        ("node_features", ARRAYS["node_features"][:, :0], r"features must have shape \(n, F\)"),
        ("node_features", changed("node_features", (3, 2), np.nan), "features must be finite"),
        ("node_features", ARRAYS["node_features"].astype(float) * 1e300, "features must be finite"),
        (
            "node_features",
            ARRAYS["node_features"].astype("U3"),
            "features must be numbers; found <U3",
        ),
        (
            "node_features",
            ARRAYS["node_features"].astype(object),
            "must be an array of numbers; found objects",
        ),
        (
            "edges",
            ARRAYS["edges"].T,
            r"edges must be integers of shape \(m, 2\); found int64 \(2, 60\)",
        ),
        ("edges", ARRAYS["edges"].astype(float), "edges must be integers"),
        ("edges", changed("edges", (0, 1), 20), "edges must join nodes 0 to 19; found 0 to 20"),
        ("edges", changed("edges", (0, 1), -1), "edges must join nodes 0 to 19; found -1 to"),
        (
            "node_labels",
            ARRAYS["node_labels"][:-1],
            r"labels must be 20 integers; found int64 \(19,\)",
        ),
        (
            "node_labels",
            changed("node_labels", 0, -2),
            r"labels must be at least -1 \(unknown\); found -2",
        ),
        ("node_labels", changed("node_labels", 0, 10**9), "there must be at most 20 classes"),
        (
            "node_labels",
            ARRAYS["node_labels"].astype(float),
            "labels must be 20 integers; found float64",
        ),
        ("node_labels", np.full(20, -1), "masks must hold labelled nodes only"),
        (
            "train_masks",
            ARRAYS["train_masks"].T,
            r"training masks must be booleans of shape \(splits, 20\)",
        ),
        ("val_masks", ARRAYS["val_masks"] * 2, "validation masks must be 0 or 1"),
        (
            "test_masks",
            ARRAYS["test_masks"][:3],
            "as many training as validation and test masks; found 10, 10 and 3",
        ),
        ("test_masks", ARRAYS["train_masks"], "the parts of a split must be disjoint"),
    ],
)
def test_a_broken_rule_is_named(
    tmp_path: Path, key: str, value: np.ndarray | None, words: str
) -> None:
    arrays = {name: array for name, array in {**ARRAYS, key: value}.items() if array is not None}
    path = write_npz(tmp_path / "graph.npz", arrays)
    with pytest.raises(DataError, match=words) as error:
        read_platonov([path])
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"text", npz_bytes(ARRAYS)[:-100], npz_bytes(ARRAYS)[:500]]
)
def test_a_truncated_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"graph\.npz: must be an npz file"):
        read_platonov([path])


def test_a_single_array_is_not_an_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "graph.npy", np.arange(3))
    with pytest.raises(DataError, match=r"graph\.npy: must "):
        read_platonov([tmp_path / "graph.npy"])


VALID = npz_bytes(platonov_arrays(8, 2, 2))


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=mangled(VALID))
def test_mangled_files_give_a_graph_or_one_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "graph.npz"
    path.write_bytes(data)
    try:
        read_platonov([path])
    except DataError as error:
        assert "graph.npz" in str(error)
        assert "\n" not in str(error)
