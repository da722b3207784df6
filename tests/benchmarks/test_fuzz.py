"""A short run of the harness that damages files: enough to see it work, and that nothing breaks."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("the harness needs alarms and wait4", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fuzz
from cli.program import subprogram


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> fuzz.Fuzzer:
    work = tmp_path_factory.mktemp("fuzz")
    return fuzz.Fuzzer(work / "work", seed=7, every=0, keep=work / "kept")


@pytest.mark.parametrize("seconds", [10, pytest.param(60, marks=pytest.mark.thorough)])
def test_nothing_but_errors_of_one_line(seconds: int, tmp_path: Path) -> None:
    """As many cases as fit into the time, always the same ones first; all of them have been run."""
    words = (
        "--seconds",
        seconds,
        "--cases",
        6000,
        "--every",
        0,
        "--seed",
        7,
        "--keep",
        tmp_path / "kept",
    )
    program = Path(fuzz.__file__)
    done = subprogram(*words, cwd=tmp_path, python=(str(program),))
    assert done.code == 0, done.out + done.err
    assert all(f"{name} " in done.out for name in fuzz.TARGETS)


def test_a_command_is_watched(fuzzer: fuzz.Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fuzzer.fresh("records")
    signature, _, seconds, peak = fuzz.run_command(fuzz.TARGETS["records"], folder)
    assert (signature, seconds > 0, peak > 2**20) == ("", True, True)
    monkeypatch.setattr(fuzz.sys, "executable", "/bin/false")
    assert fuzz.run_command(fuzz.TARGETS["records"], folder)[0] == "exit code 1"


def test_a_failure_is_found_and_its_file_made_small(
    fuzzer: fuzz.Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that cannot bear a semicolon, one that executes what it reads, one that crashes."""

    def read(folder: Path) -> None:
        if b";" in (folder / "nodes.csv").read_bytes():
            raise KeyError("semicolon")

    broken = replace(fuzz.TARGETS["tables"], read=read, files=(("nodes.csv", put_semicolon),))
    monkeypatch.setattr(fuzz, "TARGETS", {"tables": broken})
    fuzzer.run([0])
    failure = fuzzer.failures.pop("tables: KeyError in test_fuzz.py:read")
    assert failure.signature == "KeyError in test_fuzz.py:read"
    folder = fuzzer.keep / "case-0"
    assert (folder / "nodes.csv").read_bytes() == b";"
    assert json.loads((folder / "case.json").read_text())["seed"] == 7

    def execute(folder: Path) -> None:
        Path(os.environ["EVIL_MARK"]).touch()

    monkeypatch.setattr(fuzz, "TARGETS", {"tables": replace(broken, read=execute)})
    fuzzer.run([1])
    assert fuzzer.failures.pop("tables: executed").case == 1

    def crash(folder: Path) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(fuzz, "TARGETS", {"tables": replace(broken, read=crash)})
    fuzzer.run([2, 3])  # the next one has a process again
    assert fuzzer.failures.pop("tables: the process ended with -9").case == 2
    assert [ending.case for ending in fuzzer.endings[-2:]] == [2, 3]


def put_semicolon(rng: object, data: bytes) -> bytes:
    return data[:30] + b";" + data[30:]
