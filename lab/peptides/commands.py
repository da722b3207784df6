"""``python -m lab peptides``: parses, calls, prints."""

from __future__ import annotations

from coopsheaf.checks import check_choice, check_int
from coopsheaf.cli import show
from coopsheaf.cli.stopping import stoppable
from coopsheaf.cli.training import set_threads
from coopsheaf.report.tables import unit
from coopsheaf.train.config import PRECISIONS
from lab import args
from lab.documents import fill_files
from lab.peptides.plan import MODELS, PARTS, SEARCHED, SEEDS, TRIALS, Job
from lab.peptides.records import chosen_trial, jobs, read_known, search_precision, searched
from lab.peptides.tables import contents


def peptides(command: args.Peptides) -> int:
    check_choice("--part", command.part, PARTS)
    check_choice("--precision", command.precision, PRECISIONS)
    check_int("--seeds", command.seeds, minimum=1)
    for name in command.models:
        check_choice("--models", name, dict.fromkeys(MODELS))
    if command.minutes is not None and not command.minutes > 0:
        raise ValueError(f"--minutes must be positive; got {command.minutes}")
    if command.seeds > len(SEEDS):
        raise ValueError(f"--seeds must be at most {len(SEEDS)}; got {command.seeds}")
    if command.part != "full" and command.seeds > 1:
        raise ValueError(f"--seeds goes with --part full; {command.part} has one seed")
    if command.part == "search" and command.models:
        raise ValueError(f"--models goes with --part cut and full; the search is of {SEARCHED}")
    if command.report and (command.models or command.minutes is not None or command.seeds > 1):
        raise ValueError("--models, --minutes and --seeds go with training; --report shows all")
    code = 0 if command.report else _train(command)
    return _write(command) or code


def _train(command: args.Peptides) -> int:
    from lab.contest.running import deadline
    from lab.peptides.running import measure

    set_threads(command.threads)
    known = read_known(command.results)
    models = command.models or MODELS
    chosen = chosen_trial(known)
    if command.part != "search" and SEARCHED in models and chosen is None:
        count = len(searched(known, search_precision(known)))
        raise ValueError(
            f"--models: {SEARCHED} takes the setting that the search has chosen, and {count} of "
            f"{len(TRIALS)} settings are recorded; run --part search first, or name other models"
        )
    is_over = deadline(command.minutes)
    plan = jobs(command.part, models, SEEDS[: command.seeds], command.precision, chosen)
    done = 0
    with stoppable() as stop:
        for job, outcome in measure(
            plan,
            known,
            results=command.results,
            work=command.work,
            data_dir=command.data_dir,
            should_stop=lambda: stop() or is_over(),
            progress=lambda job: show.progress(_label(job)),
        ):
            record, done = outcome.record, done + 1
            factor, digits = unit(record.metric)
            score = "no score" if record.val is None else f"{factor * record.val:.{digits}f}"
            state = "recorded already" if outcome.skipped else f"{record.seconds:.0f} s"
            show.say(f"{_label(job)}: val {score} ({state})")  # test scores are for the tables
            if command.document is not None and not outcome.skipped:
                _write(command)  # runs take hours: the page is never behind the records
    if done < len(plan):
        show.note(f"{done} of {len(plan)} runs are recorded; the same command goes on")
    return stop.exit_code() if stop() else 0


def _label(job: Job) -> str:
    return f"{job.part}, {job.name}, seed {job.recipe.train.seed}"


def _write(command: args.Peptides) -> int:
    tables = contents(read_known(command.results))
    if command.document is None:
        show.say("\n".join(tables.values()))
        return 0
    fill_files([command.document], tables)
    show.say(f"tables: {command.document}")
    return 0
