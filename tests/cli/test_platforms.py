"""The program where there is no glibc, no POSIX and no UTF-8."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import get_args

import pytest
from cli.program import SMALL, Done, subprogram, write_tables

from coopsheaf import memory
from coopsheaf.cli import args

TESTS = str(Path(__file__).parents[1])
WINDOWS = """
import sys
sys.path.insert(0, {tests!r})
from cli import windows
windows.become(with_torch={torch})
from coopsheaf.cli import main
{call}
"""
EVERY = """
for words in {words!r}:
    try:
        main(words)
    except SystemExit as end:
        assert end.code in (None, 0), (words, end.code)
"""
COMMANDS = [get_args(command)[1].name for command in get_args(args.Command)]


def on_windows(*words: object, cwd: Path, call: str = "main(sys.argv[1:])", torch: bool = False, **environment: str) -> Done:  # fmt: skip
    code = WINDOWS.format(tests=TESTS, torch=torch, call=call)
    return subprogram(*words, cwd=cwd, python=("-c", code), **environment)


def test_every_command_starts_on_windows(tmp_path: Path) -> None:
    assert {"train", "predict", "export"} <= set(COMMANDS)
    calls = [["--help"], ["models"], *([command, "--help"] for command in COMMANDS)]
    done = on_windows(cwd=tmp_path, call=EVERY.format(words=calls))
    assert done.code == 0, done.err
    for command in COMMANDS:
        assert f"usage: coopsheaf {command}" in done.out
    assert "Traceback" not in done.err


def test_the_datasets_are_listed_on_windows(tmp_path: Path) -> None:
    done = on_windows("data", "list", cwd=tmp_path, torch=True, LOCALAPPDATA=str(tmp_path))
    assert done.code == 0, done.err
    assert "texas" in done.out


def test_training_and_predicting_on_windows(tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path)
    tables = ["--nodes", str(nodes), "--edges", str(edges)]
    train = ["train", *tables, "--target", "label", "--epochs", "2", "--out", "run", *SMALL]
    # Resumed, a run that has ended is read again; its record is looked for under the lock.
    calls = [train, [*train, "--resume"], ["predict", "run", *tables, "-o", "out.csv"]]
    done = on_windows(cwd=tmp_path, call=EVERY.format(words=calls), torch=True)
    assert done.code == 0, done.err
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 61
    (records,) = (tmp_path / "results").glob("*.jsonl")
    assert len(records.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_letters_that_the_screen_does_not_have_are_no_error(encoding: str, tmp_path: Path) -> None:
    nodes, edges = write_tables(tmp_path, kinds=("röd", "зелёный"))
    words = ["train", "--nodes", nodes, "--edges", edges, "--target", "nonsenße"]
    for command in (["--help"], ["models"], words):
        done = subprogram(*command, cwd=tmp_path, PYTHONIOENCODING=encoding)
        assert done.code == (2 if command is words else 0), done.err
        assert "Traceback" not in done.err
        assert "codec" not in done.err


@pytest.mark.parametrize("platform", ["win32", "darwin", "freebsd14"])
def test_memory_is_left_alone_on_other_systems(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str | None) -> None:
        raise AssertionError("nobody asks for the C library here")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    monkeypatch.setattr(sys, "platform", platform)
    assert memory.keep_freed_memory() is False
    assert memory.ease_memory() is False


@pytest.mark.parametrize("error", [TypeError, OSError])
def test_memory_is_left_alone_without_a_c_library(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str | None) -> None:
        raise error("no such library")

    monkeypatch.setattr(ctypes, "CDLL", fail)
    assert memory.keep_freed_memory() is False


def test_memory_is_left_alone_with_musl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())  # no gnu_get_libc_version
    assert memory.keep_freed_memory() is False
