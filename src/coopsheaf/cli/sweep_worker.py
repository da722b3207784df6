"""The processes of a sweep: what one does, and the team that its parent keeps at work."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from coopsheaf.cli import show
from coopsheaf.cli.own import read_own
from coopsheaf.cli.shared_args import Tables
from coopsheaf.cli.stopping import ENDINGS
from coopsheaf.data.links import AnyDataset
from coopsheaf.memory import keep_freed_memory
from coopsheaf.sweep.plan import load_plan
from coopsheaf.sweep.queue import MOST_DEATHS
from coopsheaf.sweep.search import Sweep
from coopsheaf.train.data import load_data
from coopsheaf.train.recipe import Recipe

_BAD_INPUT = 2


@dataclass(frozen=True)
class Job:
    """What a process has to know.

    Args:
        folder: of the sweep; absolute.
        storage: of the sweep.
        tables: the user's own graph; its nodes are ``None`` for data by name.
        data_dir: where to look for data by name.
        threads: of the process.
        cwd, environment: those of the parent; a process may be forked from one that has others.
        together: train the splits of a trial in one pass.
        log: where it writes what goes wrong.
    """

    folder: Path
    storage: str | None
    tables: Tables
    data_dir: Path | None
    threads: int
    cwd: Path
    environment: Mapping[str, str]
    together: bool = False
    log: Path = Path()


def read_data(
    recipe: Recipe,
    tables: Tables,
    data_dir: Path | None,
    say: Callable[[str], None] = show.say,
) -> AnyDataset:
    """The data of a sweep: the user's own tables, or a dataset by name."""
    if tables.nodes is not None or tables.edges is not None:
        return read_own(tables, recipe.train.seed, say)[0]
    return load_data(recipe.data, data_dir)


def work(job: Job, leash: Connection) -> None:
    """The body of a process: runs trials until none is left or the parent lets go of the leash."""
    told = _listen()
    descriptor = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os.chdir(job.cwd)
    os.environ.update(job.environment)
    torch.set_num_threads(job.threads)
    keep_freed_memory()
    stop = threading.Event()
    threading.Thread(target=_hold, args=(leash, stop), daemon=True).start()
    try:
        plan = load_plan(job.folder)
        quiet: Callable[[str], None] = lambda line: None  # noqa: E731 -- the parent said it
        dataset = read_data(plan.recipe, job.tables, job.data_dir, quiet)
        with Sweep(plan, job.folder, job.storage) as sweep:
            sweep.work(
                dataset,
                worker=f"{platform.node()}:{os.getpid()}",
                should_stop=lambda: bool(told) or stop.is_set(),
                together=job.together,
            )
        if told:  # a parent that was not told itself wants another one in our place
            sys.exit(128 + told[0])
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        sys.stderr.flush()
        sys.exit(_BAD_INPUT)


def _listen() -> list[int]:
    """The signals that have asked for the end, as they come; Ctrl-C is the parent's business.

    Schedulers send SIGTERM to all processes of a job, not to the first one alone.
    """
    told: list[int] = []
    for number in ENDINGS:
        ignored = number == signal.SIGINT
        signal.signal(number, signal.SIG_IGN if ignored else lambda number, _: told.append(number))
    if sys.platform == "linux":  # what came before is heard now
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)
    return told


def _start_server() -> None:
    """Start the process that workers are forked from; it must not die of a signal to all processes.

    It inherits what is blocked here, and so do the workers, until they listen.
    """
    resource_tracker.ensure_running()  # it would inherit that, too
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hold(leash: Connection, stop: threading.Event) -> None:
    """The other end closes when the parent says so, and when the parent dies."""
    with suppress(EOFError, OSError):
        leash.recv_bytes()
    stop.set()


class Team:
    """The processes of a sweep on this machine; one that dies is replaced.

    Args:
        job: what they do.
        size: how many there are.
        notify: told when one has died.
    """

    def __init__(self, job: Job, size: int, notify: Callable[[str], None]) -> None:
        # A forked process has everything imported; only Linux forks PyTorch without trouble.
        kind = "forkserver" if sys.platform == "linux" else "spawn"
        self._context = multiprocessing.get_context(kind)
        if kind == "forkserver":
            self._context.set_forkserver_preload([__name__])
            _start_server()
        self._job, self._notify = job, notify
        self._logs = job.folder / "workers"
        self._logs.mkdir(parents=True, exist_ok=True)
        self._deaths, self._finished = 0, 0
        self._members = [self._start(number) for number in range(size)]

    def check(self, finished: int) -> None:
        """Replace the dead.

        Args:
            finished: how many trials are; as long as there are more and more, processes may die.
        """
        if finished > self._finished:
            self._finished, self._deaths = finished, 0
        for number, (process, leash) in enumerate(self._members):
            code = process.exitcode
            if not code:  # it runs, or there is nothing left to do
                continue
            leash.close()
            if code == _BAD_INPUT:
                raise ValueError(self._last_line(number))
            self._deaths += 1
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            log = self._log(number)
            if self._deaths > MOST_DEATHS:
                raise ValueError(
                    f"{self._deaths} processes have died in a row, the last one of {how}; "
                    f"see {log}. The same command goes on"
                )
            self._notify(f"process {number} has died ({how}, see {log}); another one takes over")
            self._members[number] = self._start(number)

    def stop(self) -> None:
        """Let every process stop after its epoch."""
        for _, leash in self._members:
            leash.close()

    def is_at_work(self) -> bool:
        return any(process.is_alive() for process, _ in self._members)

    def close(self) -> None:
        """End the processes that are still there."""
        for process, leash in self._members:
            leash.close()
            if process.is_alive():
                process.kill()
            process.join()

    def join(self) -> None:
        """Wait for the processes, which have nothing left to do."""
        for process, _ in self._members:
            process.join()

    def _start(self, number: int) -> tuple[multiprocessing.process.BaseProcess, Connection]:
        theirs, ours = self._context.Pipe(duplex=False)
        job = replace(self._job, log=self._log(number))
        # A daemon: it does not outlive an error of ours.
        process = self._context.Process(target=work, args=(job, theirs), daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        return process, ours

    def _log(self, number: int) -> Path:
        return self._logs / f"{number}.log"

    def _last_line(self, number: int) -> str:
        lines = self._log(number).read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "a process has failed")
