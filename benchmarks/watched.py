"""Call a function in a forked process that is watched: a crash of it is an answer, not the end.

Used by ``fuzz.py``.
"""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

ADDRESSES = 16 << 30  # bytes that a process may map; only keeps the machine alive


@dataclass(frozen=True)
class Death:
    """What a process left that died during a call, or was ended because it did not come back."""

    how: str


class Watched:
    """Calls ``function`` in a process, a new one after every ``batch`` calls and after a death.

    Processes are forked: whoever makes one of these must have imported what is needed, and must
    have started no threads.

    Args:
        function: takes a number; what it returns must be picklable.
        batch: calls per process.
        seconds: to wait for an answer.
    """

    def __init__(self, function: Callable[[int], Any], batch: int, seconds: float) -> None:
        self.function, self.batch, self.seconds = function, batch, seconds
        self.left = 0

    def __call__(self, number: int) -> Any:
        """What the function returns for a number, or a :class:`Death`."""
        if not self.left:
            self._start()
        self.left -= 1
        try:
            self.pipe.send(number)
            if self.pipe.poll(self.seconds):
                answer = self.pipe.recv()
            else:
                self.process.kill()
                answer = Death(f"no answer after {self.seconds:.0f} s")
        except (EOFError, ConnectionError):
            self.process.join()
            answer = Death(f"the process ended with {self.process.exitcode}")
        if isinstance(answer, Death) or not self.left:
            self.close()
        return answer

    def close(self) -> None:
        """End the process; the next call starts another one."""
        if self.left or hasattr(self, "process"):
            self.pipe.close()  # it ends when it sees that
            self.process.join()
        self.left = 0

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        # It needs to be no daemon: what it calls may start processes of its own.
        self.process = context.Process(target=_answer, args=(other, self.pipe, self.function))
        self.process.start()
        other.close()
        self.left = self.batch


def _answer(pipe: Connection, parents: Connection, function: Callable[[int], Any]) -> None:
    parents.close()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        pipe.send(function(number))
