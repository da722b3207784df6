"""Help, versions and typing errors; none of them waits for PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.program import Program, subprogram

import coopsheaf
from coopsheaf.models.registry import MODELS

COMMANDS = (
    "train",
    "evaluate",
    "predict",
    "bench",
    "report",
    "data",
    "models",
    "explain",
    "export",
    "figures",
    "sweep",
)

# Runs the program and says at the very end which heavy packages it has imported.
WATCHED = """
import atexit, sys
heavy = ("torch", "torch_geometric", "lightning", "torchmetrics", "numpy")
atexit.register(lambda: sys.stderr.write("imported:" + ",".join(h for h in heavy if h in sys.modules)))
from coopsheaf.cli import main
main(sys.argv[1:])
"""


def test_help_lists_the_commands(program: Program) -> None:
    out = program.ok("--help")
    for command in COMMANDS:
        assert f"• {command} " in out
    assert "coopsheaf train --nodes nodes.csv --edges edges.csv" in " ".join(
        out.replace("│", " ").split()
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(program: Program, command: str) -> None:
    assert f"usage: coopsheaf {command}" in program.ok(command, "--help")


def test_the_help_of_train_says_how_to_begin(program: Program) -> None:
    out = " ".join(program.ok("train", "--help").replace("│", " ").split())
    for word in ("--nodes", "--edges", "--target", "--set", "--resume", "--epochs", "--out"):
        assert word in out
    assert "coopsheaf data list" in out
    assert "coopsheaf train tolokers --splits 0" in out


@pytest.mark.parametrize("command", ["list", "info", "fetch", "verify", "import", "pack"])
def test_the_commands_of_data_have_help(program: Program, command: str) -> None:
    assert f"usage: coopsheaf data {command}" in program.ok("data", command, "--help")


def test_the_version(program: Program) -> None:
    assert program.ok("--version") == f"coopsheaf {coopsheaf.__version__}\n"


def test_the_module_is_the_program(tmp_path: Path) -> None:
    done = subprogram("--version", cwd=tmp_path)
    assert (done.code, done.out) == (0, f"coopsheaf {coopsheaf.__version__}\n")


@pytest.mark.parametrize(
    "words",
    [("--help",), ("train", "--help"), ("--version",), ("models",), ("nonsense",)],
    ids=" ".join,
)
def test_pytorch_is_not_imported_for(words: tuple[str, ...], tmp_path: Path) -> None:
    done = subprogram(*words, cwd=tmp_path, python=("-c", WATCHED))
    assert done.code == (2 if words == ("nonsense",) else 0)
    assert done.err.endswith("imported:"), done.err


def test_a_report_needs_no_pytorch(tmp_path: Path) -> None:
    done = subprogram("report", cwd=tmp_path, python=("-c", WATCHED))
    assert done.code == 2
    assert done.err == ("coopsheaf: error: results: there is no such folder of records\nimported:")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("nonsense",),
        ("train", "--nonsense"),
        ("train", "texas", "--epochs", "many"),
        ("predict",),
        ("predict", "run"),
        ("data",),
        ("data", "nonsense"),
        ("models", "extra"),
    ],
    ids=" ".join,
)
def test_what_is_typed_wrongly_is_exit_code_2(program: Program, words: tuple[str, ...]) -> None:
    done = program(*words)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert done.out == ""
    assert done.err


def test_models_are_listed(program: Program) -> None:
    head, *lines = program.ok("models").split("\n\n")[0].splitlines()
    assert head.split() == [
        "name",
        "inductive",
        "directed",
        "graphs",
        "weights",
        "features",
        "what",
    ]
    assert [line.split()[0] for line in lines] == list(MODELS)
    assert lines[0].split()[1:5] == ["yes", "yes", "yes", "yes"]
    assert "ICLR 2026" in lines[0]
    features_only = next(line for line in lines if line.startswith("mlp "))
    assert features_only.split()[1:5] == ["yes", "-", "yes", "-"]


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    words = [sys.executable, "-m", "coopsheaf", "train", "--help"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        job.stdout.close()
        assert job.stderr.read() == b""
    assert job.returncode == 0
