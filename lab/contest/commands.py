"""``python -m lab contest``: parses, calls, prints."""

from __future__ import annotations

from coopsheaf.checks import check_choice
from coopsheaf.cli import show
from coopsheaf.cli.training import set_threads
from coopsheaf.report.tables import unit
from lab import args
from lab.contest.entries import Entry, read_entries
from lab.contest.plan import LEAGUES, PUBLISHED, League
from lab.documents import fill_files
from lab.squash.commands import _check_figure

FOLDER = "contest"  # of the records, below that of all results


def contest(command: args.Contest) -> int:
    check_choice("--league", command.league, LEAGUES)
    league = LEAGUES[command.league]
    for name in command.models:
        check_choice("--models", name, league.contestants)
    for name in command.datasets:
        check_choice("--datasets", name, league.budgets)
    if command.minutes is not None and not command.minutes > 0:
        raise ValueError(f"--minutes must be positive; got {command.minutes}")
    _check_figure(command.figure)
    if command.figure is not None and (command.plan or command.league != "directions"):
        raise ValueError("--figure is drawn of --league directions, and not beside --plan")
    if command.plan:
        return _show_plan(command, league)
    if not command.report:
        _run(command, league)
    return _write(command, league)


def _show_plan(command: args.Contest, league: League) -> int:
    from lab.contest.tables import budget_table, space_table

    show.say(budget_table(league))
    show.say(space_table(league))
    for name in command.models:
        for trial in range(max(budget.trials for budget in league.budgets.values())):
            settings = ", ".join(league.contestants[name].settings(trial))
            show.say(f"{name}, trial {trial}: {settings}")
    return 0


def _run(command: args.Contest, league: League) -> None:
    from lab.contest.running import Contest, deadline

    set_threads(command.threads)
    is_over = deadline(command.minutes)
    work = Contest(league, command.results / FOLDER, is_over, command.data_dir)
    names = command.models or tuple(league.contestants)
    for entry in work.run(names, command.datasets or tuple(league.budgets)):
        show.say(_line(entry))


def _line(entry: Entry) -> str:
    trial = "published settings" if entry.trial == PUBLISHED else f"trial {entry.trial}"
    factor, digits = unit(entry.metric)
    score = entry.trouble or "no score"
    if entry.val is not None:  # test scores are for the tables alone
        score = f"val {factor * entry.val:.{digits}f}, {entry.epochs} epochs"
    return f"{entry.dataset}, {entry.contestant}, {trial}, split {entry.split}: {score}"


def _write(command: args.Contest, league: League) -> int:
    from lab.contest.pages import contents
    from lab.contest.tables import league_table

    entries = read_entries(command.results / FOLDER)
    if command.figure is not None:
        from coopsheaf.figures.influence import save
        from lab.contest.figures import direction_figure

        show.say(f"figure: {save(direction_figure(entries), command.figure)}")
    if not command.document:
        show.say(league_table(league, entries))
        return 0
    for document, places in fill_files(command.document, contents(command.results)).items():
        show.say(f"{document}: {', '.join(places)}")
    return 0
