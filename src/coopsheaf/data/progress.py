"""What somebody who waits is told: a bar on a terminal, one plain line elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def show_progress(
    title: str, line: str, total: int | None, *, as_bytes: bool = False
) -> Iterator[Callable[[int], None]]:
    """A function to be told of each step.

    Args:
        title: beside the bar.
        line: what is said once where there is no terminal.
        total: number of steps, if it is known.
        as_bytes: whether steps are bytes.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        say(line)
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    count = DownloadColumn() if as_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)


def say(line: str) -> None:
    """One line on standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
