"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from coopsheaf import files
from coopsheaf.files import (
    append_line,
    draft_folder,
    finite,
    locked,
    replacing,
    write_atomically,
    write_json,
)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.bin"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(path.parent) == {"file.bin"}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "there" / "file.csv")
    write_atomically(link, b"new")  # what it points to is not there yet
    write_atomically(link, b"newer")
    assert link.is_symlink()
    assert (tmp_path / "there" / "file.csv").read_bytes() == b"newer"
    assert names(tmp_path) == {"there", "link.csv"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        try:
            write_atomically(pipe, b"through")
            assert reader.communicate(timeout=20)[0] == b"through"
        finally:
            reader.kill()  # a pipe that was replaced would keep it waiting
    assert pipe.is_fifo()
    assert names(tmp_path) == {"pipe"}


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs /dev/null")
def test_a_device_is_never_replaced(tmp_path: Path) -> None:
    """By a link to it: should the code be wrong, the link is lost and not the device."""
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    write_atomically(link, b"nothing")
    assert Path("/dev/null").is_char_device()
    assert link.is_symlink()
    with pytest.raises(OSError, match="Is a directory"):
        write_atomically(tmp_path, b"x")


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "file.bin"
    write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"file.bin"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.bin"
    write_atomically(path, b"old")
    real = os.fdopen

    def full(handle: int, mode: str) -> object:
        os.close(handle)
        return real(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"file.bin"}


def test_a_folder_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_atomically(tmp_path / "taken", b"new")
    assert names(tmp_path) == {"taken"}


def test_json_has_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"a": math.nan, "b": [math.inf, 1.5], "c": "ü", "d": None})
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == {"a": None, "b": [None, 1.5], "c": "ü", "d": None}
    assert "ü" in text
    assert text.endswith("\n")


def test_finite_keeps_everything_else() -> None:
    value = {"x": (1, 2.5, "three", True, None), "y": {"z": [-0.0]}}
    assert finite(value) == {"x": [1, 2.5, "three", True, None], "y": {"z": [-0.0]}}


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "results" / "lines.txt"
    for line in ("one", "zwölf", ""):
        append_line(path, line)
    assert path.read_text(encoding="utf-8") == "one\nzwölf\n\n"


def test_a_line_starts_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"whole\nwithout an end")
    append_line(path, "next")
    assert path.read_bytes().splitlines()[-1] == b"next"
    assert path.read_bytes().startswith(b"whole\n")


def test_a_failed_append_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines.txt"
    append_line(path, "one")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        append_line(path, "two")
    monkeypatch.undo()
    assert path.read_bytes() == b"one\n"
    append_line(path, "three")
    assert path.read_bytes() == b"one\nthree\n"


def test_a_lock_keeps_others_out(tmp_path: Path) -> None:
    lock, log = tmp_path / "here.lock", tmp_path / "log"
    code = (
        "import sys; from pathlib import Path; from coopsheaf.files import locked\n"
        "with locked(Path(sys.argv[1])): Path(sys.argv[2]).write_text('in')"
    )
    with locked(lock):
        other = subprocess.Popen([sys.executable, "-c", code, str(lock), str(log)])
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1.0)
        assert not log.exists()
    assert other.wait(timeout=30) == 0
    assert log.read_text() == "in"


def test_a_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    lock = tmp_path / "here.lock"
    with pytest.raises(RuntimeError, match="inside"), locked(lock):
        raise RuntimeError("inside")
    with locked(lock):
        pass


# --- what dead processes leave -----------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="by age there")
def test_what_a_dead_process_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    """Killed by itself in the middle of writing; another one that is alive keeps its draft."""
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from coopsheaf import files\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_atomically(Path(sys.argv[1]), b'half')\n"
    )
    path = tmp_path / "out.csv"
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == -9
    (left,) = names(tmp_path)
    alive = tmp_path / ".out.csv.abcdefgh.part"
    with alive.open("wb") as stream:
        assert files._try_lock(stream.fileno())
        write_atomically(path, b"whole")
        assert names(tmp_path) == {"out.csv", alive.name}
    write_atomically(path, b"again")
    assert names(tmp_path) == {"out.csv"}
    assert left.endswith(".part")


def test_drafts_of_other_files_are_left_alone(tmp_path: Path) -> None:
    others = {".b.csv.abcdefgh.part", ".a.csv.part", "a.csv.abcdefgh.part", ".a.csv.abcdefgh.par"}
    for name in others:
        (tmp_path / name).write_bytes(b"")
    write_atomically(tmp_path / "a.csv", b"")
    assert names(tmp_path) == others | {"a.csv"}
    with replacing(tmp_path / "a.csv.abcdefgh") as stream:  # not a draft of a.csv, though it looks
        stream.write(b"download")
        write_atomically(tmp_path / "a.csv", b"")
    assert (tmp_path / "a.csv.abcdefgh").read_bytes() == b"download"


def fill(folder: Path, content: bytes) -> None:
    with draft_folder(folder) as draft:
        (draft / "file").write_bytes(content)


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="no exchange of names there")
def test_a_folder_is_replaced_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "pack"
    fill(target, b"old")

    def refuse(*names: object) -> None:
        raise AssertionError("two steps")

    monkeypatch.setattr(Path, "replace", refuse)
    fill(target, b"new")
    assert (target / "file").read_bytes() == b"new"
    assert names(tmp_path) == {"pack"}


def test_where_names_cannot_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_exchange", lambda first, second: False)
    target = tmp_path / "pack"
    for content in (b"old", b"new"):
        fill(target, content)
        assert (target / "file").read_bytes() == content
        assert names(tmp_path) == {"pack"}
    target.replace(tmp_path / ".pack.old")  # a process that was killed between two steps
    files.sweep_drafts(target)
    assert (target / "file").read_bytes() == b"new"
    assert names(tmp_path) == {"pack"}


def test_a_folder_that_cannot_be_filled_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "pack"
    fill(target, b"old")
    with pytest.raises(TypeError):
        fill(target, "text")  # type: ignore[arg-type]
    assert (target / "file").read_bytes() == b"old"
    assert names(tmp_path) == {"pack"}
