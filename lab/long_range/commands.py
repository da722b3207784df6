"""``python -m lab long-range``: parses, calls, prints."""

from __future__ import annotations

from collections.abc import Sequence

from coopsheaf.checks import check_choice, check_int
from coopsheaf.cli import show
from coopsheaf.cli.training import set_threads
from lab import args
from lab.documents import fill_files
from lab.long_range.inside import look, read_inside
from lab.long_range.plan import CONTESTANTS, SEEDS, TASKS
from lab.long_range.records import found, measure
from lab.long_range.tables import contents
from lab.squash.commands import _check_figure


def long_range(command: args.LongRange) -> int:
    seeds = range(check_int("--seeds", command.seeds, minimum=1))
    for name in command.tasks:
        check_choice("--tasks", name, TASKS)
    for name in command.contestants:
        check_choice("--contestants", name, CONTESTANTS)
    _check_figure(command.figure)
    tasks = command.tasks or tuple(TASKS)
    contestants = command.contestants or tuple(CONTESTANTS)
    if not command.report:
        set_threads(command.threads)
        _train(command, contestants, tasks, seeds)
    if command.look:
        for row in look(contestants, tasks, command.results, command.work):
            show.say(f"{row.task}, {row.contestant}: influence {row.influence[-1]:.1e}")
    _report(command)
    return 0


def _train(
    command: args.LongRange, contestants: Sequence[str], tasks: Sequence[str], seeds: Sequence[int]
) -> None:
    for name, outcome in measure(contestants, tasks, seeds, command.results, command.work):
        record = outcome.record
        state = "recorded already" if outcome.skipped else f"{record.seconds:.0f} s"
        show.say(f"{record.dataset}, seed {record.seed}, {name}: test {record.test} ({state})")


def _report(command: args.LongRange) -> None:
    """All that is recorded of the plan, whatever was asked to be trained."""
    rows = found(tuple(CONTESTANTS), tuple(TASKS), SEEDS, command.results)
    if not rows:
        raise ValueError(f"{command.results}: holds no records of the plan; train without --report")
    looked = read_inside(command.results)
    tables = contents(rows, looked)
    if command.figure is not None:
        from coopsheaf.figures.influence import save
        from lab.long_range.figures import long_range_figure

        show.say(f"figure: {save(long_range_figure(rows, looked), command.figure)}")
    if command.document is None:
        show.say("\n".join(tables.values()))
        return
    fill_files([command.document], tables)
    show.say(f"tables: {command.document}")
