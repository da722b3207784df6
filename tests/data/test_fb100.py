"""Readers of Facebook networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import (
    fb100_profile,
    mangled,
    saved,
    write_fb100,
    write_fb100_splits,
    write_object_array,
)

from coopsheaf.data.errors import DataError
from coopsheaf.data.fb100 import one_hot, random_split, read_fb100


def test_a_network_with_fixed_splits(tmp_path: Path) -> None:
    paths = [write_fb100(tmp_path / "Penn94.mat"), write_fb100_splits(tmp_path / "splits.npy")]
    parts = read_fb100(paths)
    profile = fb100_profile()
    assert torch.equal(parts.y, torch.from_numpy(profile[:, 1].astype(np.int64) - 1))
    assert (parts.y == -1).sum() == 10
    places = sum(len(np.unique(profile[:, k])) for k in range(7) if k != 1)
    assert parts.x.shape == (30, places)
    assert (parts.x.sum(1) == 6).all()
    assert parts.train.shape == (5, 30)
    assert [int(mask[0].sum()) for mask in parts[3:]] == [10, 5, 5]
    # Both ways, no loops, sorted by source.
    forward = parts.edge_index[0] * 30 + parts.edge_index[1]
    backward = parts.edge_index[1] * 30 + parts.edge_index[0]
    assert torch.equal(forward, forward.sort().values)
    assert torch.equal(forward, backward.sort().values)


def test_a_network_without_splits_gets_five_fixed_random_ones(tmp_path: Path) -> None:
    parts = read_fb100([write_fb100(tmp_path / "Reed98.mat")])
    again = read_fb100([tmp_path / "Reed98.mat"])
    labelled = parts.y >= 0
    for train, val, test, same in zip(parts.train, parts.val, parts.test, again.train, strict=True):
        assert torch.equal(train | val | test, labelled)
        assert [int(mask.sum()) for mask in (train, val, test)] == [10, 5, 5]
        assert torch.equal(train, same)
    assert len({tuple(mask.tolist()) for mask in parts.train}) == 5


def test_random_splits_are_the_same_everywhere() -> None:
    # The order of the first eleven numbers of the PCG64 stream of seed 0: 1174..., 497..., 75...,
    # 30..., 1500..., 1683..., 1119..., 1345..., 1002..., 1724..., 1504...
    train, val, test = random_split(np.arange(11), seed=0)
    assert (train.tolist(), val.tolist(), test.tolist()) == ([3, 2, 1, 8, 6], [0, 7], [4, 10, 5, 9])


def test_one_hot_codes_have_a_place_per_value() -> None:
    x = one_hot(np.array([[5, 0], [7, 0], [5, 9]]))
    assert x.tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]


def test_stored_zeros_are_no_edges(tmp_path: Path) -> None:
    matrix = scipy.sparse.csc_matrix(([1.0, 1.0, 0.0], ([0, 1, 2], [1, 0, 2])), shape=(30, 30))
    parts = read_fb100([write_fb100(tmp_path / "a.mat", A=matrix)])
    assert parts.edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"A": None}, "must have the variable A; found local_info"),
        ({"local_info": None}, "must have the variable local_info; found A"),
        ({"A": np.ones((30, 30))}, "A must be sparse; found a full matrix"),
        ({"A": scipy.sparse.csc_matrix((30, 29))}, r"A must be square; found \(30, 29\)"),
        (
            {"local_info": fb100_profile(29)},
            r"local_info must have shape \(30, 7\); found \(29, 7\)",
        ),
        ({"local_info": fb100_profile()[:, :6]}, r"local_info must have shape \(30, 7\)"),
        ({"local_info": np.array(["a"])}, "local_info; must be numbers; found MATLAB class 4"),
        (
            {"local_info": np.array([{"a": 1}], dtype=object)},
            "local_info; must be numbers; found MATLAB class 1",
        ),
        ({"local_info": fb100_profile() + 0.5}, "local_info must be integers"),
        ({"local_info": np.full((30, 7), 3)}, r"gender must be 0 \(not told\), 1 or 2; found 3"),
    ],
)
def test_a_broken_network_is_named(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    path = write_fb100(tmp_path / "a.mat", **changes)
    with pytest.raises(DataError, match=words) as error:
        read_fb100([path])
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", [b"", b"text", b"MATLAB 7.3 MAT-file" + bytes(200)])
def test_another_kind_of_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.mat: must "):
        read_fb100([path])


def test_a_truncated_network_is_named(tmp_path: Path) -> None:
    path = write_fb100(tmp_path / "a.mat")
    data = path.read_bytes()
    for length in (100, 128, 200, len(data) // 2, len(data) - 3):
        path.write_bytes(data[:length])
        with pytest.raises(DataError, match=r"a\.mat: must "):
            read_fb100([path])


@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_pointers_outside_of_the_matrix_are_refused(tmp_path: Path, part: str) -> None:
    matrix = scipy.sparse.csc_matrix(np.tri(30, k=-1))
    path = write_fb100(tmp_path / "a.mat", compress=False, A=matrix)
    right = getattr(matrix, part).astype("<i4")
    wrong = right.copy()
    wrong[5:10] = 10**6  # conversion would write far outside of its memory
    data = path.read_bytes()
    assert data.count(right.tobytes()) == 1
    path.write_bytes(data.replace(right.tobytes(), wrong.tobytes()))
    with pytest.raises(
        DataError, match=r"a\.mat: must be a MATLAB 5 file of real matrices; A; must have rows"
    ):
        read_fb100([path])


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "must hold at least one split"),
        ([1], "split 0 must have train, valid, test; found int"),
        ([{"train": [1], "valid": [2]}], "split 0 must have train, valid, test; found dict"),
        ([{"train": [30], "valid": [2], "test": [4]}], "split 0 must hold node numbers 0 to 29"),
        ([{"train": [-1], "valid": [2], "test": [4]}], "split 0 must hold node numbers 0 to 29"),
        ([{"train": [1.5], "valid": [2], "test": [4]}], "node numbers 0 to 29; found float64"),
        ([{"train": ["a"], "valid": [2], "test": [4]}], "split 0 must hold node numbers"),
        ([{"train": [[1], [1, 2]], "valid": [2], "test": [4]}], "must be lists of node numbers"),
        ([{"train": [1], "valid": [1], "test": [4]}], "the parts of a split must be disjoint"),
        ([{"train": [0], "valid": [1], "test": [4]}], "masks must hold labelled nodes only"),
    ],
)
def test_broken_splits_are_named(tmp_path: Path, entries: list[object], words: str) -> None:
    splits = write_object_array(tmp_path / "splits.npy", entries)
    with pytest.raises(DataError, match=words) as error:
        read_fb100([write_fb100(tmp_path / "a.mat"), splits])
    assert "\n" not in str(error.value)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), which=st.integers(0, 1))
def test_mangled_files_give_a_graph_or_one_error(
    tmp_path: Path, data: st.DataObject, which: int
) -> None:
    paths = [tmp_path / "a.mat", tmp_path / "splits.npy"]
    content = [
        saved(write_fb100, tmp_path, "a.mat"),
        saved(write_fb100_splits, tmp_path, "splits.npy"),
    ]
    paths[which].write_bytes(data.draw(mangled(content[which])))
    try:
        read_fb100(paths)
    except DataError as error:
        assert str(tmp_path) in str(error)
        assert "\n" not in str(error)
