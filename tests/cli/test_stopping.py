"""Signals: what schedulers, containers and closed terminals send saves the state as Ctrl-C does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
from cli.on_terminal import train_on_terminal, train_share_here
from cli.program import SMALL, Program, start, subprogram, wait_for, write_tables
from processes import start_processes

from coopsheaf.cli.stopping import Stop, check_requeue, stoppable
from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.run import read_run_info


def words(folder: Path, *more: object, epochs: int = 20_000) -> tuple[str, ...]:
    """A training that does not end before somebody ends it."""
    nodes, edges = write_tables(folder, n=120)
    own = ("--nodes", nodes, "--edges", edges, "--target", "label", "--out", "run")
    settings = ("--epochs", epochs, *SMALL, "--set", "train.patience=0")
    return tuple(map(str, ("train", *own, *settings, *more)))


def is_saved(folder: Path) -> None:
    info = read_run_info(folder / "run")
    assert info["status"] == "interrupted"
    kept = load_tensors(folder / "run" / "state.safetensors")[1]["state"]["epoch"]
    assert 0 < kept == info["result"]["epochs"]


@pytest.mark.parametrize(
    ("number", "more", "code"),
    [
        (signal.SIGTERM, (), 143),
        (signal.SIGHUP, (), 129),
        (signal.SIGTERM, ("--requeue-exit-code", 75), 75),
    ],
)
def test_the_state_is_saved(number: int, more: tuple, code: int, tmp_path: Path) -> None:
    process = start(tmp_path, *words(tmp_path, *more))
    wait_for(tmp_path / "run" / "run.json")
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == code
    is_saved(tmp_path)
    (log,) = tmp_path.glob("err-*.txt")
    assert "Continue with the same command and --resume" in log.read_text()


def test_a_closed_terminal_loses_nothing(tmp_path: Path) -> None:
    """The kernel sends SIGHUP, and everything that is written from then on is an error."""
    controller, terminal = os.openpty()
    name = os.ttyname(terminal)
    environment = {name: os.environ[name] for name in ("XDG_CACHE_HOME", "COOPSHEAF_OFFLINE")}
    environment["TERM"] = "xterm"
    context = multiprocessing.get_context("forkserver")
    arguments = (name, tmp_path, words(tmp_path), environment)
    process = context.Process(target=train_on_terminal, args=arguments)
    process.start()
    wait_for(tmp_path / "run" / "run.json")
    time.sleep(0.2)  # the bar is shown
    os.close(terminal)
    os.close(controller)
    process.join(60)
    assert process.exitcode == 129
    is_saved(tmp_path)


def test_each_process_of_a_run_may_be_told(tmp_path: Path) -> None:
    batches = ("--set", "batch.kind=nodes", "--set", "batch.size=30", "--requeue-exit-code", 75)
    processes = start_processes(2, train_share_here, tmp_path, words(tmp_path, *batches))
    wait_for(tmp_path / "run" / "run.json")
    pid = processes[1].pid
    assert pid is not None
    os.kill(pid, signal.SIGHUP)
    for process in processes:
        process.join(60)
    assert [(tmp_path / f"code-{rank}").read_text() for rank in (0, 1)] == ["75", "75"]
    is_saved(tmp_path)
    said = [(tmp_path / f"said-{rank}.txt").read_text() for rank in (0, 1)]
    assert "--resume" in said[0]
    assert "Traceback" not in said[0] + said[1]


def test_a_second_control_c_ends_at_once_and_a_second_sigterm_does_not() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with stoppable() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert stop()
        assert stop.exit_code() == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert all(signal.getsignal(number) is handler for number, handler in before.items())


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_codes() -> None:
    stop = Stop()
    assert stop.exit_code(75) == 75  # another process of the run was told
    stop.number = signal.SIGINT
    assert stop.exit_code(75) == 130  # somebody sits there and does not want it again
    assert check_requeue(None) is None
    for code in (0, 2, 256, -1):
        with pytest.raises(ValueError, match=f"must be from 3 to 255 .* got {code}"):
            check_requeue(code)


def test_a_code_that_cannot_be_is_one_line(program: Program) -> None:
    assert (
        "--requeue-exit-code must be" in program("train", "texas", "--requeue-exit-code", 2).error
    )


INTERRUPTED_AT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *rest):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from coopsheaf.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("module", ["tyro", "torch", "numpy"])
def test_control_c_during_imports_is_one_line(module: str, tmp_path: Path) -> None:
    done = subprogram(module, "data", "list", cwd=tmp_path, python=("-c", INTERRUPTED_AT))
    assert (done.code, done.err) == (130, "coopsheaf: interrupted\n")
