"""``python -m lab defaults``: parses, calls, prints."""

from __future__ import annotations

from coopsheaf.checks import check_choice, check_int
from coopsheaf.cli import show
from coopsheaf.cli.training import set_threads
from lab import args
from lab.defaults import (
    CANDIDATES,
    DEVELOPMENT,
    HELD_BACK,
    HELD_PLACE,
    HELD_ROWS,
    OPTION_ROWS,
    OPTION_SETS,
    OPTIONS_PLACE,
    PLACE,
    RANKED,
    measure,
    page_table,
    scores,
)
from lab.documents import fill_files


def defaults(command: args.Defaults) -> int:
    check_int("--rounds", command.rounds, minimum=1)
    if command.held_back and command.options:
        raise ValueError("--options are of the development data: leave --held-back out")
    known = HELD_BACK if command.held_back else DEVELOPMENT
    # What was chosen already is measured where nothing was chosen.
    usual, place = (HELD_ROWS, HELD_PLACE) if command.held_back else (RANKED, PLACE)
    wanted = tuple(known)
    if command.options:
        usual, place, wanted = OPTION_ROWS, OPTIONS_PLACE, OPTION_SETS
    names = command.candidates or usual
    for name in names:
        check_choice("--candidates", name, CANDIDATES)
    for name in command.sets:
        check_choice("--sets", name, known)
    sets = {name: known[name] for name in command.sets or wanted}
    if command.report and command.together:
        raise ValueError("--together goes with training; --report trains nothing")
    if not command.report:
        set_threads(command.threads)
        where = (command.results, command.work, command.data_dir)
        runs = measure(names, sets, command.rounds, *where, together=command.together)
        for name, record, skipped in runs:
            state = "recorded already" if skipped else f"{record.seconds:.0f} s"
            show.say(f"{record.dataset}, split {record.split}, {name}: val {record.val} ({state})")
    part = "test" if command.held_back else "val"
    if not scores(names, sets, command.results, part):
        raise ValueError(f"{command.results}: has no data set that all candidates were trained on")
    table = page_table(names, sets, command.results, part)
    show.say(table)
    if command.document is not None:
        fill_files([command.document], {place: table})
        show.say(f"table: {command.document}")
    return 0
