"""Where the bytes of a table come from."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import threading
from pathlib import Path

import pytest

from coopsheaf.data.errors import DataError
from coopsheaf.data.tables.reading.source import Source

TEXT = b"a,b\n1,2\n3,4\n"


def test_a_file_is_there_tomorrow(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(TEXT)
    source = Source(path)
    assert source.is_file
    assert not source.is_gzip
    assert (source.head(3), source.whole()) == (b"a,b", TEXT)
    assert source.digest() == hashlib.sha256(TEXT).hexdigest()
    with source.text() as tap:
        assert tap.read() == TEXT
        assert tap.checksum == source.digest()
        assert tap.size == len(TEXT)


def test_a_pipe_is_kept_and_has_many_readers() -> None:
    """Also at the same time: each has its own place."""
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as stream:
            stream.write(TEXT)

    threading.Thread(target=write, daemon=True).start()
    source = Source(f"/dev/fd/{reading}")
    assert not source.is_file
    with source.open() as one, source.open() as two:
        assert one.read(5) == TEXT[:5]
        assert two.read() == TEXT
        assert source.head(2) == TEXT[:2]
        assert one.read() == TEXT[5:]
        assert one.tell() == len(TEXT)
        assert one.seek(-3, io.SEEK_END) == len(TEXT) - 3
        assert one.read() == TEXT[-3:]
    assert source.whole() == TEXT  # closing a reader closes nothing
    os.close(reading)


def test_gzip_by_name_or_by_first_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(TEXT)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
    for source in (Source(path), Source("-")):
        assert source.is_gzip
        with source.text() as tap:
            assert tap.read() == TEXT
    path.write_bytes(packed[:-6])
    with (
        Source(path).text() as tap,
        pytest.raises(DataError, match=r"t\.csv\.gz must be a complete gzip file"),
    ):
        tap.read()


def test_names_in_messages() -> None:
    assert Source("-").name == "standard input"
    assert Source("a\nb").name == repr("a\nb")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (b"a,b\n1,2\n", set()),
        (b"a, b\n", {"spaces"}),
        (b" a,b\n", {"spaces"}),
        (b"a ,b c\n", set()),
        (b'"a","b"\n', {"quotes"}),
        (b'a"b,c\n', {"quotes", "odd_quotes"}),
        (b"a\0,b\n", {"nul"}),
    ],
)
@pytest.mark.parametrize("step", [1, 2, 100])
def test_what_a_tap_sees_at_any_border(
    tmp_path: Path, text: bytes, seen: set[str], step: int
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with Source(path).text(",") as tap:
        while tap.read(step):
            pass
        found = {n for n in ("spaces", "odd_quotes", "nul", "quotes") if getattr(tap, n)}
    assert found == seen


@pytest.mark.parametrize(
    ("text", "plain"),
    [(b"a\nb\n", True), (b"a\r\nb\r\n", False), (b"a\n\nb\n", False), (b'a\n"b\nc"\n', False), (b"\na\n", False)],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 100])
def test_plain_lines(tmp_path: Path, text: bytes, plain: bool, step: int) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with Source(path).text(",") as tap:
        while tap.read(step):
            pass
        assert tap.plain_lines == plain
