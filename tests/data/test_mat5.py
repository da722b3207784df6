"""The reader of MATLAB files agrees with scipy's on sound ones, and survives the others."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from published import REAL_DATA, mangled, needs_real_data, rng, saved, write_fb100

from coopsheaf.data import mat5
from coopsheaf.data.errors import DataError
from coopsheaf.data.mat5 import Sparse, read_mat

DTYPES = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def dense(matrix: np.ndarray | Sparse) -> np.ndarray:
    if isinstance(matrix, Sparse):
        entries = (matrix.values, (matrix.rows, matrix.columns))
        return scipy.sparse.coo_matrix(entries, shape=matrix.shape).toarray()
    return matrix


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_full_matrices(tmp_path: Path, dtype: str, compress: bool) -> None:
    value = rng().integers(0, 100, (3, 5)).astype(dtype)
    content = {"first": np.arange(3.0), "A": value, "b": np.zeros((0, 2)), "text": "abc"}
    scipy.io.savemat(tmp_path / "a.mat", content, do_compression=compress)
    found = read_mat(tmp_path / "a.mat", ("A", "b"))
    assert set(found) == {"A", "b"}
    assert np.array_equal(dense(found["A"]), value)
    assert dense(found["b"]).shape == (0, 2)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_sparse_matrices(tmp_path: Path, density: float, compress: bool) -> None:
    value = scipy.sparse.random(6, 4, density, format="csc", random_state=rng())
    scipy.io.savemat(tmp_path / "a.mat", {"A": value}, do_compression=compress)
    found = read_mat(tmp_path / "a.mat", ("A",))["A"]
    assert isinstance(found, Sparse)
    assert np.array_equal(dense(found), value.toarray())


def test_the_other_byte_order(tmp_path: Path) -> None:
    def element(kind: int, content: bytes) -> bytes:
        return struct.pack(">II", kind, len(content)) + content + bytes(-len(content) % 8)

    matrix = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 1, 2))
    matrix += struct.pack(">HH4s", 1, 1, b"A") + element(9, struct.pack(">dd", 1.5, -2.0))
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 5.0".ljust(124) + b"\x01\x00MI" + element(14, matrix))
    assert dense(read_mat(path, ("A",))["A"]).tolist() == [[1.5, -2.0]]


@needs_real_data
@pytest.mark.parametrize("name", ["Reed98", "Amherst41", "Johns_Hopkins55", "Cornell5"])
def test_real_networks_are_as_scipy_reads_them(name: str) -> None:
    path = REAL_DATA / f"fb100/{name}.mat"
    found, expected = read_mat(path, ("A", "local_info")), scipy.io.loadmat(str(path))
    matrix = found["A"]
    assert isinstance(matrix, Sparse)
    entries = expected["A"].tocoo()
    assert matrix.shape == entries.shape
    assert np.array_equal(matrix.rows, entries.row)
    assert np.array_equal(matrix.columns, entries.col)
    assert np.array_equal(matrix.values, entries.data)
    assert np.array_equal(dense(found["local_info"]), expected["local_info"])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((2, 2), dtype=complex), "must be real and of two dimensions"),
        (np.zeros((2, 2, 2)), r"must be real and of two dimensions; found \(2, 2, 2\)"),
        ("text", "must be numbers; found MATLAB class 4"),
        ({"a": 1}, "must be numbers; found MATLAB class 2"),
    ],
)
def test_other_variables_are_refused(tmp_path: Path, value: object, words: str) -> None:
    scipy.io.savemat(tmp_path / "a.mat", {"A": value})
    with pytest.raises(DataError, match=words):
        read_mat(tmp_path / "a.mat", ("A",))


def test_a_small_file_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mat5, "MAX_BYTES", 1000)
    body = zlib.compress(bytes(1_000_000))
    path = tmp_path / "a.mat"
    path.write_bytes(
        b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + struct.pack("<II", 15, len(body)) + body
    )
    with pytest.raises(DataError, match="more than 1000 bytes"):
        read_mat(path, ("A",))


@settings(
    deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_mangled_files_give_matrices_or_one_error(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.mat"
    # Not compressed: there is no check sum that would notice.
    valid = saved(lambda path: write_fb100(path, 6, compress=False), tmp_path, "a.mat")
    path.write_bytes(data.draw(mangled(valid)))
    try:
        read_mat(path, ("A", "local_info"))
    except DataError as error:
        assert "a.mat" in str(error)
        assert "\n" not in str(error)
