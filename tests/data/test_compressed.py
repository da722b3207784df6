"""Files that would burst are refused before they do; others come out as they went in."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from published import npz_bytes, platonov_arrays

from coopsheaf.data import compressed
from coopsheaf.data.compressed import gunzip, open_gzip
from coopsheaf.data.errors import DataError
from coopsheaf.data.platonov import read_platonov

ARRAYS = platonov_arrays()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def archive(path: Path, **members: bytes) -> Path:
    """The arrays of a good file, some members replaced."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in ARRAYS.items():
            file.writestr(f"{name}.npy", members.get(name, npy(array)))
    return path


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can reach at once."""
    monkeypatch.setattr(compressed, "FREE", 1 << 20)


def test_what_went_in_comes_out(tmp_path: Path) -> None:
    content = b"".join(b"%d\n" % i for i in range(50_000))
    packed = gzip.compress(content) + gzip.compress(b"more")  # of two parts
    assert gunzip(packed, "a.gz") == content + b"more"
    (tmp_path / "a.gz").write_bytes(packed)
    with open_gzip(tmp_path / "a.gz") as stream:
        assert stream.read() == content + b"more"
    with pytest.raises((OSError, EOFError)):
        gunzip(packed[:-5], "a.gz")


def test_a_bomb_is_refused_before_it_bursts(tmp_path: Path, small_limits: None) -> None:
    bomb = gzip.compress(bytes(40 << 20))
    (tmp_path / "a.gz").write_bytes(bomb)
    tracemalloc.start()
    with pytest.raises(DataError, match="must unpack to at most"):
        gunzip(bomb, "a.gz")
    with open_gzip(tmp_path / "a.gz") as file, pytest.raises(DataError, match="must unpack to"):
        sum(map(len, iter(lambda: file.read(1 << 16), b"")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 << 20


def test_an_archive_that_bursts(tmp_path: Path, small_limits: None) -> None:
    path = archive(tmp_path / "a.npz", node_features=npy(np.zeros((40 << 20,), dtype=np.uint8)))
    with pytest.raises(DataError, match=r"a\.npz: must unpack to at most") as caught:
        read_platonov([path])
    assert "\n" not in str(caught.value)


HEADERS = {
    "no array": b"just text",
    "empty": b"",
    "no header": b"\x93NUMPY\x01\x00\xff\xff",
    "header that is no dictionary": npy(np.zeros(3)).replace(b"{'descr'", b"('descr'"),
    "other version": b"\x93NUMPY\x09\x00" + npy(np.zeros(3))[8:],
    "shape without end": npy(np.zeros((3,))).replace(b"(3,), }         ", b"(99999999999,), "),
    "negative shape": npy(np.zeros((30,))).replace(b"(30,)", b"(-3,)"),
    "short": npy(np.zeros((3, 3)))[:-8],
    "objects": b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(127) + b"\n" + b"cos\n",
}  # fmt: skip


@pytest.mark.parametrize("case", HEADERS)
@pytest.mark.parametrize("name", ["node_features", "test_masks"])
def test_a_member_that_is_no_array_of_numbers(tmp_path: Path, case: str, name: str) -> None:
    path = archive(tmp_path / "a.npz", **{name: HEADERS[case]})
    with pytest.raises(DataError, match=r"a\.npz") as caught:
        read_platonov([path])
    assert "\n" not in str(caught.value)


def test_a_member_without_the_ending_is_no_array(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(npz_bytes({k: v for k, v in ARRAYS.items() if k != "edges"}))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("edges", b"text")
    with pytest.raises(DataError, match=r"a\.npz: must be an npz file"):
        read_platonov([path])
