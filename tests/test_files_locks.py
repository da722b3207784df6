"""Files that are written whole or not at all."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from coopsheaf.files import locked, replacing


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with replacing(target) as stream:
        stream.write(b"old")

    def interrupted() -> None:
        with replacing(target) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_what_a_dead_process_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".file.part").write_bytes(b"half of something longer")
    with replacing(tmp_path / "file") as stream:
        stream.write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    target, inside, most, waited = tmp_path / "file", [], [], []

    def work() -> None:
        with locked(target, lambda: waited.append(1)):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 5
    assert 1 <= len(waited) <= 4


def test_a_lock_ends_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path / "file"):
        raise RuntimeError
    with locked(tmp_path / "file", lambda: pytest.fail("still locked")):
        pass
