"""What the command line shows of a sweep: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from coopsheaf.cli import show
from coopsheaf.sweep.plan import Plan
from coopsheaf.sweep.queue import TrialRow, best_row
from coopsheaf.sweep.space import Value

Update = Callable[[Sequence[TrialRow]], None]


@contextmanager
def progress(plan: Plan, trials: int, seen: Sequence[TrialRow]) -> Iterator[Update]:
    """Shows how far a sweep is, each time it is called with its trials.

    Args:
        plan: of the sweep.
        trials: how many there will be.
        seen: trials of which nothing is to be said any more.
    """
    if not sys.stderr.isatty():
        yield _lines(plan, trials, seen)
        return
    console = Console(stderr=True)
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def update(rows: Sequence[TrialRow]) -> None:
            live.update(_live_table(plan, trials, rows), refresh=True)

        yield update


def _lines(plan: Plan, trials: int, seen: Sequence[TrialRow]) -> Update:
    said = {row.number for row in seen if row.ended is not None}

    def update(rows: Sequence[TrialRow]) -> None:
        ended = [row for row in rows if row.ended is not None and row.number not in said]
        for row in sorted(ended, key=lambda row: (row.ended or datetime.min, row.number)):
            said.add(row.number)
            show.say(f"trial {row.number}: {outcome(plan, row)}")
        if ended:
            show.say(f"  {standing(plan, trials, rows)}")

    return update


def outcome(plan: Plan, row: TrialRow) -> str:
    """What became of a trial, in a few words."""
    if row.state == "fail":
        return (
            "stopped; it goes on later" if row.error else "its process has died; it is tried again"
        )
    if row.error:
        return f"came to nothing: {row.error}"
    count = f"{len(row.vals)} split{'' if len(row.vals) == 1 else 's'}"
    value = "-" if row.value is None else f"{row.value:.4f}"
    if row.state == "pruned":
        return f"pruned after {count}, val {plan.metric} {value}"
    how = f"{row.seconds:.1f} s" if row.same_as is None else f"as trial {row.same_as}"
    return f"val {plan.metric} {value} over {count} ({how})"


def standing(plan: Plan, trials: int, rows: Sequence[TrialRow]) -> str:
    """How far the sweep is, and the best trial."""
    done = sum(row.finished for row in rows)
    pruned = sum(row.state == "pruned" for row in rows)
    running = sum(row.state == "running" for row in rows)
    best = best_row(rows, maximise=plan.maximise)
    text = f"{done} of {trials} trials ({pruned} pruned), {running} running"
    return text if best is None else f"{text}; best {best.value:.4f} (trial {best.number})"


def settings(params: Mapping[str, Value]) -> str:
    """What was chosen, without the sections."""
    return ", ".join(f"{name.partition('.')[2]} {_short(value)}" for name, value in params.items())


def best_table(plan: Plan, rows: Sequence[TrialRow], most: int = 5) -> None:
    """The best trials, best first; trials that copied another one's answer are left out."""
    rest = [row for row in rows if row.same_as is None]
    chosen: list[TrialRow] = []
    while len(chosen) < most and (row := best_row(rest, maximise=plan.maximise)) is not None:
        chosen.append(row)
        rest.remove(row)
    show.table(
        ["trial", f"val {plan.metric}", "of the splits", "parameters", "settings"],
        [
            [
                str(row.number),
                f"{row.value:.4f}",
                " ".join(f"{val:.3f}" for val in row.vals),
                f"{row.parameters:,}",
                settings(row.params),
            ]
            for row in chosen
        ],
        "best trials",
    )


def _live_table(plan: Plan, trials: int, rows: Sequence[TrialRow]) -> Group:
    table = Table(box=None, pad_edge=False)
    for column in ("trial", "state", "", "settings"):
        table.add_column(column, overflow="fold")
    now = datetime.now()
    running = [row for row in rows if row.state == "running"]
    ended = [row for row in rows if row.finished][-5:]
    for row in (*ended, *running):
        if row.finished:
            cells = [row.state, outcome(plan, row)]
        else:
            since = 0.0 if row.started is None else (now - row.started).total_seconds()
            part = min(len(row.vals) + 1, len(plan.splits))
            cells = ["running", f"split {part} of {len(plan.splits)}, {since:.0f} s"]
        table.add_row(*(Text(cell) for cell in (str(row.number), *cells, settings(row.params))))
    return Group(Text(standing(plan, trials, rows)), table)


def _short(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
