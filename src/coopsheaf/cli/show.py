"""What the command line shows: progress, tables."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from coopsheaf.train.launch import find_launch
from coopsheaf.train.loop import EpochReport


def say(line: str = "") -> None:
    """One line of ordinary output; of several processes the first one speaks."""
    if find_launch().rank == 0:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def note(line: str) -> None:
    """One line beside the ordinary output, from the first process."""
    if find_launch().rank == 0:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """A table; numbers to the right. User data is shown as text, never as markup."""
    from rich.text import Text

    wide = Table(title=title, title_justify="left")
    for position, name in enumerate(columns):
        numeric = bool(rows) and all(_numeric(row[position]) for row in rows)
        wide.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        wide.add_row(*(Text(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 160).print(wide)


def _numeric(cell: str) -> bool:
    return cell.strip("-+").replace(",", "").replace(".", "").replace("%", "").strip().isdigit()


@contextmanager
def notice(line: str, after: float = 2.0) -> Iterator[None]:
    """Say what is going on if it takes longer than people like to wait in silence."""
    timer = threading.Timer(after, lambda: note(line))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def progress(label: str) -> Iterator[Callable[[EpochReport], None]]:
    """A live bar on a terminal; now and then a plain line elsewhere, or from many processes."""
    if not sys.stderr.isatty() or find_launch().size > 1:
        yield _plain(label)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.4f}  val {task.fields[val]:.4f}"),
        TextColumn("best {task.fields[best]:.4f} @ {task.fields[at]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        nan = float("nan")
        task = bar.add_task(label, total=None, loss=nan, val=nan, best=nan, at=0)

        def report(state: EpochReport) -> None:
            bar.update(
                task,
                total=state.epochs,
                completed=state.epoch,
                loss=state.loss,
                val=state.val,
                best=state.best_val,
                at=state.best_epoch,
            )

        yield report


@contextmanager
def counting(label: str) -> Iterator[Callable[[int, int], None]]:
    """The same for what is counted: a function to be told how many are done, and of how many."""
    if not sys.stderr.isatty() or find_launch().size > 1:
        yield _plain_counts(label)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain_counts(label: str) -> Callable[[int, int], None]:
    last = [time.monotonic() - 8.0]  # the first line after two seconds

    def report(done: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] >= 10.0 and done < total:
            last[0] = now
            note(f"{label}: {done:,} of {total:,}")

    return report


def _plain(label: str) -> Callable[[EpochReport], None]:
    last = [time.monotonic() - 8.0]  # the first line after two seconds

    def report(state: EpochReport) -> None:
        now = time.monotonic()
        if now - last[0] < 10.0 and state.epoch < state.epochs:
            return
        last[0] = now
        sys.stderr.write(
            f"{label}: epoch {state.epoch}/{state.epochs}  loss {state.loss:.4f}  "
            f"val {state.val:.4f}  best {state.best_val:.4f} @ {state.best_epoch}  "
            f"{state.seconds_left:.0f} s left\n"
        )
        sys.stderr.flush()

    return report


def parse_splits(text: str, available: int) -> list[int]:
    """``"0"``, ``"0-9"`` or ``"0,2,5-7"``."""
    return _parse_numbers("--splits", text, available)


def parse_seeds(text: str) -> list[int]:
    """The same of seeds."""
    return _parse_numbers("--seeds", text, 2**32)


def _parse_numbers(option: str, text: str, available: int) -> list[int]:
    numbers: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{option} must look like 0, 0-9 or 0,2,5; got {text!r}")
        low, high = int(first), int(last or first)
        if high < low:
            raise ValueError(f"{option} must go from low to high; got {text!r}")
        if high >= available:
            raise ValueError(f"{option} must be below {available}; got {text!r}")
        if high - low >= 10_000:
            raise ValueError(f"{option} must name at most 10,000; got {text!r}")
        numbers |= dict.fromkeys(range(low, high + 1))
    return list(numbers)
