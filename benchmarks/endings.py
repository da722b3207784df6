"""Ways to end a process, and what must be there after each. Used by ``kill_commands.py``.

SIGKILL leaves no choice. SIGTERM and SIGHUP ask: training ends after its epoch, its state is
written, and nothing is lost. Before it has begun and after its end they end the process at once.
"""

from __future__ import annotations

import json
import os
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

from coopsheaf.train.checkpoint import load_tensors

SIGNALS = {name: signal.Signals[f"SIG{name}"] for name in ("KILL", "TERM", "HUP")}
PATIENCE = 60.0  # seconds that a process has to end after it was asked

Epochs = dict[str, int]


def send(pid: int | None, number: int) -> None:
    """A signal to a process and what it has started."""
    assert pid is not None
    try:
        os.killpg(pid, number)
    except ProcessLookupError:  # not a group of its own yet
        os.kill(pid, number)


def end(process: BaseProcess, number: int, folder: Path, started: float) -> list[str]:
    """End a process that works in a folder since ``started``; returns what is wrong then."""
    before = saved_epochs(folder)
    send(process.pid, number)
    process.join(PATIENCE)
    if process.is_alive():
        send(process.pid, signal.SIGKILL)
        process.join()
        return [f"no end {PATIENCE:.0f} s after {signal.Signals(number).name}"]
    if number == signal.SIGKILL:
        return []
    asked = process.exitcode == 128 + number
    if not asked and process.exitcode not in (0, -number):
        said = "".join(path.read_text("utf-8", "replace") for path in folder.glob("err-*.txt"))
        return [f"exit code {process.exitcode} after {signal.Signals(number).name}: {said[-500:]}"]
    return lost_epochs(folder, before, started) if asked else []


def saved_epochs(folder: Path) -> Epochs:
    """The epochs of the states below a folder, by the folder of their run."""
    found = {}
    for path in folder.rglob("state.safetensors"):
        try:
            meta = load_tensors(path)[1]
        except OSError:  # its run has just ended
            continue
        found[str(path.parent)] = int(meta["state"]["epoch"])
    return found


def lost_epochs(folder: Path, before: Epochs, started: float) -> list[str]:
    """Runs below a folder whose last finished epoch is not in their state.

    Args:
        folder: where a process was asked to end, and did.
        before: the states when it was asked.
        started: when it began; runs that say so from before are those of others.
    """
    faults, states = [], saved_epochs(folder)
    for path in folder.rglob("run.json"):
        name = str(path.parent)
        info = json.loads(path.read_text("utf-8"))
        if info["status"] == "running" and path.stat().st_mtime > started:
            faults.append(f"{path}: was not saved")
        if info["status"] == "interrupted" and states.get(name) != info["result"]["epochs"]:
            faults.append(f"{path}: {info['result']['epochs']} epochs, saved {states.get(name)}")
    faults += [
        f"{name}: epoch {before[name]} was saved, now {epoch}"
        for name, epoch in states.items()
        if epoch < before.get(name, 0)
    ]
    return faults
