"""Signals: what asks a command to end, and how it does. Imports neither PyTorch nor rich."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from coopsheaf.train.launch import find_launch

# Ctrl-C, what schedulers and `docker stop` send, and what is sent when a terminal is closed.
# Windows has no SIGHUP.
ENDINGS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Stop:
    """Called, it says whether a signal has asked for the end."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self) -> bool:
        return self.number is not None

    def exit_code(self, requeue: int | None = None) -> int:
        """128 and the number of the signal, as shells have it.

        Args:
            requeue: the code instead, unless somebody pressed Ctrl-C: a scheduler that sees it may
                start the command again.
        """
        # Of several processes, the one that was told may be another: then nobody here pressed it.
        if requeue is not None and self.number != signal.SIGINT:
            return requeue
        return 128 + (signal.SIGINT if self.number is None else self.number)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Ctrl-C, SIGTERM and SIGHUP end work after the running epoch; a second Ctrl-C at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    launch = find_launch()
    hang_up = getattr(signal, "SIGHUP", None)
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def ask(number: int, frame: FrameType | None) -> None:
        # torchrun passes a signal on that the terminal has sent to all already, and has a limit
        # of its own for processes that do not end. Schedulers may send SIGTERM twice.
        if stop() and number == signal.SIGINT and launch.size == 1:
            raise KeyboardInterrupt
        if not stop() and launch.rank == 0:
            hint = (
                " (Ctrl-C again: at once)" if number == signal.SIGINT and launch.size == 1 else ""
            )
            _tell(f"\nstopping after this epoch{hint}\n")
        stop.number = number if stop.number is None else stop.number
        if number == hang_up:
            _leave(terminals)

    # nohup has a program ignore SIGHUP: it shall go on.
    numbers = [n for n in ENDINGS if n != hang_up or signal.getsignal(n) is not signal.SIG_IGN]
    with _handling(numbers, ask):
        yield stop


def _tell(text: str) -> None:
    """A line on standard error, if anybody is there to read it."""
    with suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _leave(terminals: list[int]) -> None:
    """Write nowhere what would go to a terminal that is gone: an error would lose the state."""
    for descriptor in terminals:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C ends the program here and now, with one line; for imports and parsing.

    An exception that goes through the making of a compiled module may come out as another one, or
    abort the program, and there is nothing to save yet.
    """

    def end(number: int, frame: FrameType | None) -> None:
        _tell("coopsheaf: interrupted\n")
        os._exit(130)

    with _handling([signal.SIGINT], end):
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C is a ``KeyboardInterrupt`` again, as at the start of Python."""
    with _handling([signal.SIGINT], signal.default_int_handler):
        yield


@contextmanager
def _handling(numbers: list[Any], handler: Any) -> Iterator[None]:
    """Handle signals in this way; only the main thread of a program can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, kept in before.items():
            signal.signal(number, kept)


def check_requeue(code: int | None) -> int | None:
    """``--requeue-exit-code``: one that means nothing else."""
    if code is not None and not 3 <= code <= 255:
        raise ValueError(
            f"--requeue-exit-code must be from 3 to 255 (0 to 2 have a meaning); got {code}"
        )
    return code
