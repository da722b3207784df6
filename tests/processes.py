"""Several processes of one run, as ``torchrun`` would start them, but at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from coopsheaf.cli.stopping import ENDINGS


def hear_signals() -> None:
    """Be as a shell starts a process: the server that forks blocks signals if a sweep started it."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_processes(
    count: int, body: Callable[..., None], folder: Path, *arguments: Any
) -> list[BaseProcess]:
    """Start ``body(folder, *arguments)`` ``count`` times, forked with everything imported.

    ``body`` stands in a helper module: the name pytest gives to a module of tests is not
    importable where only `tests` is on the path.
    """
    assert not body.__module__.startswith("tests."), f"{body.__module__} cannot be imported"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["coopsheaf.train.run", "coopsheaf.train.runner", "train.shares"]
    )
    port = free_port()
    processes = []
    for rank in range(count):
        environment = {
            "TORCHELASTIC_RUN_ID": "test",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "GROUP_RANK": "0",
            "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            # The server that forks was started with the environment of another test.
            "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
        }
        process = context.Process(
            target=_start,
            args=(environment, folder / f"ended-{port}", body, folder, *arguments),
            daemon=True,  # one that hangs does not keep pytest from ending
        )
        process.start()
        processes.append(process)
    return processes


def run_processes(count: int, body: Callable[..., None], folder: Path, *arguments: Any) -> None:
    """The same, to the end."""
    processes = start_processes(count, body, folder, *arguments)
    for process in processes:
        process.join(120)
    codes = [process.exitcode for process in processes]
    assert codes == [0] * count, f"exit codes {codes}"


def _start(
    environment: dict[str, str], ended: Path, body: Callable[..., None], *arguments: Any
) -> None:
    hear_signals()
    torch.set_num_threads(1)
    os.environ.update(environment)
    try:
        body(*arguments)
    finally:
        # The first process holds what the others connect to; torchrun's own would outlive them all.
        ended.mkdir(exist_ok=True)
        (ended / environment["RANK"]).touch()
        end = time.monotonic() + 60
        while (
            len(list(ended.iterdir())) < int(environment["WORLD_SIZE"]) and time.monotonic() < end
        ):
            time.sleep(0.01)
