"""Lines of JSON say which kernel, packages and sources computed them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import shared

from coopsheaf.sheaves.kernels import describe_kernel, use_kernel
from coopsheaf.train.provenance import versions
from coopsheaf.train.runner import current_commit

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    """A benchmark by its path: some have the names of packages of tests."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_computed() -> None:
    made = {"kernel": describe_kernel(), "versions": versions(), "commit": current_commit()}
    assert shared.made_by() == made
    with use_kernel("edgewise"):
        assert shared.made_by()["kernel"] == "edgewise"
    assert {"torch", "coopsheaf"} <= set(made["versions"])


class NoProcess:
    """Stands in for a pool of processes, of which none is asked for anything."""

    def __init__(self, *given: object, **more: object) -> None: ...

    def __enter__(self) -> NoProcess:
        return self

    def __exit__(self, *error: object) -> None: ...


# Arguments that make a program measure once, and the functions that would measure.
PROGRAMS = {
    "evaluation": (["--graphs", "texas"], ["in_fresh_process"]),
    "minibatch": (
        ["--datasets", "tolokers", "--schemes", "whole"],
        ["in_fresh_process"],
    ),
    "models": (["--models", "csnn", "--graphs", "tolokers"], ["call_in"]),
    "node_order": (["--edges", "1000"], ["in_fresh_process"]),
    "sampling": (["--nodes", "1000"], ["in_fresh_process"]),
    "scaling": (["--edges", "1000", "--skip", "outputs", "batches"], ["in_fresh_process"]),
    "scaling --packs": (["--packs", "1000", "--keep"], ["in_fresh_process"]),
    "distributed": (["--nodes", "1000", "--turns", "1"], ["launch"]),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_write_what_computed(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments, measuring = PROGRAMS[program]
    module = load(program.split()[0])
    measured: Callable[..., dict[str, object]] = lambda *given: {"seen": 1}  # noqa: E731
    for name in measuring:
        monkeypatch.setattr(module, name, measured)
    for name, stand_in in (
        ("ProcessPoolExecutor", NoProcess),
        ("aligned", lambda rows, sides: ""),
        ("format_table", lambda records: ""),
        ("format_tables", lambda records: ""),
    ):
        monkeypatch.setattr(module, name, stand_in, raising=False)
    monkeypatch.setattr(sys, "argv", [program, *arguments, "--json", str(tmp_path / "records")])
    if program == "sampling":
        measured_row = {"nodes": 1000, "subgraph_ms": 1.0, "sample_ms": 1.0, "halo_ms": 1.0}
        monkeypatch.setattr(module, "in_fresh_process", lambda *given: dict(measured_row))
    module.main()
    lines = (tmp_path / "records").read_text().splitlines()
    assert lines
    for record in map(json.loads, lines):
        assert {name: record[name] for name in ("kernel", "versions", "commit")} == shared.made_by()


@pytest.mark.parametrize("name", ["models", "squash"])
def test_programs_find_the_laboratory_as_they_are_typed(name: str, tmp_path: Path) -> None:
    """From anywhere, without the tests' or the reader's own paths."""
    command = [sys.executable, "-E", BENCHMARKS / f"{name}.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
