"""``coopsheaf compare``: networks and boosted trees on the same folds."""

from __future__ import annotations

from pathlib import Path

from coopsheaf.cli import args, show
from coopsheaf.cli.own import has_own, reading_progress, refuse_pipes, table_options
from coopsheaf.cli.passed_over import say_passed_over
from coopsheaf.cli.stopping import stoppable
from coopsheaf.cli.training import set_threads
from coopsheaf.compare.comparison import Comparison
from coopsheaf.compare.contestants import Contestant
from coopsheaf.compare.data import Division, named_folds, table_folds
from coopsheaf.compare.folds import Dataset, Folds
from coopsheaf.compare.lineup import USUAL, find_contestants
from coopsheaf.compare.running import Match, Step, check_fits
from coopsheaf.compare.texts import explanation, head, heading, number, remarks, rows
from coopsheaf.files import write_atomically
from coopsheaf.report.text import one_line
from coopsheaf.train.recipe import DataConfig
from coopsheaf.train.records import PassedOver


def compare(command: args.Compare) -> int:
    set_threads(command.threads)
    own = has_own(command.tables, command.dataset)
    epochs = [] if command.epochs is None else [f"train.epochs={command.epochs}"]
    settings = [*command.set, *epochs]
    # Names of models and settings are looked at before anything large is read.
    data = DataConfig(command.dataset or "")
    _contestants(command, data, settings)
    folds, data = _read(command, own, settings)
    match = Match(
        folds,
        _contestants(command, data, settings, folds.dataset),
        trials=command.trials,
        seed=command.seed,
        metric=command.metric,
    )
    out = command.out or Path("comparisons") / match.plan.dataset
    _introduce(match, out)
    check_fits(match.plan, command.max_fits)
    with stoppable() as stop:
        done = 0
        for step in match.run(out, progress=show.progress, should_stop=stop):
            done = step.number
            _say_step(match, step)
        code = 0 if done == match.plan.fits else stop.exit_code()
    passed_over = PassedOver()
    comparison = match.conclude(out, passed_over)
    say_passed_over(passed_over.reasons)
    if code:
        show.note(
            f"stopped after {done} of {match.plan.fits} fits; the same command continues where it "
            "was"
        )
        return code
    _say(comparison)
    if command.output is not None:
        write_atomically(command.output, comparison.to_markdown().encode())
    show.say(f"comparison: {out}" + (f", {command.output}" if command.output else ""))
    return 0


def _contestants(
    command: args.Compare,
    data: DataConfig,
    settings: list[str],
    dataset: Dataset | None = None,
) -> list[Contestant]:
    return find_contestants(
        command.models or USUAL,
        data,
        settings=settings,
        class_weights=command.class_weights,
        metric=command.metric,
        dataset=dataset,
    )


def _read(command: args.Compare, own: bool, settings: list[str]) -> tuple[Folds, DataConfig]:
    tables, splits = command.tables, command.splits
    # How many splits there are is only known when the data is.
    chosen = None if splits is None else tuple(show.parse_splits(splits, 1 << 20))
    division = Division(command.folds, command.repeats, chosen, command.seed)
    if not own:
        with show.notice(f"reading {command.dataset} ..."):
            return named_folds(
                command.dataset or "", division, settings=settings, data_dir=command.data_dir
            )
    refuse_pipes(tables, "for every fold")
    options = table_options(tables, command.seed)
    folds, first = table_folds(
        tables.nodes, tables.edges, tables.graphs, options, division, reading_progress()
    )
    for note in first.notes:
        show.say(note)
    return folds, DataConfig()


def _introduce(match: Match, out: Path) -> None:
    plan = match.plan
    show.say(f"{plan.dataset}: {plan.size}, {plan.task}")
    counts = " + ".join(f"{len(model.trials)} {model.name}" for model in plan.models)
    missing = match.missing(out)
    state = f"; {plan.fits - missing} recorded already" if missing < plan.fits else ""
    count = len(plan.folds)
    over = match.folds.one if count == 1 else plan.over
    show.say(f"{count} {over} x ({counts}) = {plan.fits} fits{state}")
    show.say(f"validation {plan.metric} chooses in each of them; the test part chooses nothing")


def _say_step(match: Match, step: Step) -> None:
    """A line for each model and fold, when its last trial is done."""
    trials = match.trials[step.model]
    if step.trial < len(trials) - 1:
        return
    val = step.record.val
    last = "-" if val is None else number(match.plan.metric, val)
    show.note(
        f"{step.number}/{step.total} fits: {step.model}, {match.folds.one} {step.fold} "
        f"(last validation {match.plan.metric} {last})"
    )


def _say(comparison: Comparison) -> None:
    show.say()
    show.say(one_line(heading(comparison)))
    show.table(head(comparison), rows(comparison))
    show.say(f"({explanation(comparison)})")
    for remark in remarks(comparison):
        show.say(f"NOTE: {one_line(remark)}")
    show.say()
    show.say(comparison.sentence)
