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
    PLACE,
    RIVALS,
    common_splits,
    measure,
    score_table,
    scores,
)
from lab.documents import fill_files


def defaults(command: args.Defaults) -> int:
    check_int("--rounds", command.rounds, minimum=1)
    known = HELD_BACK if command.held_back else DEVELOPMENT
    # What was chosen already is measured where nothing was chosen.
    usual = ("rule", "plain", *RIVALS) if command.held_back else tuple(CANDIDATES)[:-1]
    names = command.candidates or usual
    for name in names:
        check_choice("--candidates", name, CANDIDATES)
    for name in command.sets:
        check_choice("--sets", name, known)
    sets = {name: known[name] for name in command.sets or known}
    if not command.report:
        set_threads(command.threads)
        runs = measure(names, sets, command.rounds, command.results, command.work, command.data_dir)
        for name, record, skipped in runs:
            state = "recorded already" if skipped else f"{record.seconds:.0f} s"
            show.say(f"{record.dataset}, split {record.split}, {name}: val {record.val} ({state})")
    part = "test" if command.held_back else "val"
    found = scores(names, sets, command.results, part)
    if not found:
        raise ValueError(f"{command.results}: has no data set that all candidates were trained on")
    table = score_table(found, common_splits(names, sets, command.results))
    show.say(table)
    if command.document is not None:
        fill_files([command.document], {HELD_PLACE if command.held_back else PLACE: table})
        show.say(f"table: {command.document}")
    return 0
