"""A short run of the harness that damages files: enough to see it work, and that nothing breaks."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("the harness needs alarms and wait4", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fuzz


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> fuzz.Fuzzer:
    work = tmp_path_factory.mktemp("fuzz")
    return fuzz.Fuzzer(work / "work", seed=7, every=0, keep=work / "kept")


def test_nothing_but_errors_of_one_line(fuzzer: fuzz.Fuzzer) -> None:
    for case in range(400):
        fuzzer.run(case)
    assert not fuzzer.failures, fuzzer.failures
    assert set(fuzzer.count) == set(fuzz.TARGETS)


def test_a_process_is_watched(fuzzer: fuzz.Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fuzzer.fresh("records")
    assert fuzz.process_fault(fuzz.TARGETS["records"], folder) is None
    monkeypatch.setattr(fuzz.sys, "executable", "/bin/false")
    fault = fuzz.process_fault(fuzz.TARGETS["records"], folder)
    assert fault == ("exit code 1", "")


def test_a_failure_is_found_and_its_file_made_small(
    fuzzer: fuzz.Fuzzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that cannot bear a semicolon, and one that executes what it reads."""

    def read(folder: Path) -> None:
        if b";" in (folder / "nodes.csv").read_bytes():
            raise KeyError("semicolon")

    broken = replace(fuzz.TARGETS["tables"], read=read, files=(("nodes.csv", put_semicolon),))
    monkeypatch.setattr(fuzz, "TARGETS", {"tables": broken})
    fuzzer.run(0)
    failure = fuzzer.failures.pop("tables: KeyError in test_fuzz.py:read")
    assert failure.signature == "KeyError in test_fuzz.py:read"
    folder = fuzzer.keep / "case-0"
    assert (folder / "nodes.csv").read_bytes() == b";"
    assert json.loads((folder / "case.json").read_text())["seed"] == 7

    def execute(folder: Path) -> None:
        Path(os.environ["EVIL_MARK"]).touch()

    monkeypatch.setattr(fuzz, "TARGETS", {"tables": replace(broken, read=execute)})
    fuzzer.run(1)
    assert fuzzer.failures.pop("tables: executed").case == 1


def put_semicolon(rng: object, data: bytes) -> bytes:
    return data[:30] + b";" + data[30:]
