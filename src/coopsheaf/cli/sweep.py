"""``coopsheaf sweep``: search settings with several processes, and keep the best recipe."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch

from coopsheaf.cli import args, show, sweep_show, training
from coopsheaf.cli.limits import check_threads, check_workers
from coopsheaf.cli.own import has_own, refuse_pipes
from coopsheaf.cli.stopping import Stop, stoppable
from coopsheaf.cli.sweep_worker import Job, Team, read_data
from coopsheaf.sweep.plan import Plan, make_plan
from coopsheaf.sweep.search import Sweep
from coopsheaf.sweep.space import Space, load_space
from coopsheaf.sweep.storage import as_storage_error, check_storage, load_optuna, masked
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.records import spell_splits
from coopsheaf.train.together.run import check_together

_POLL_SECONDS = 0.3
_DEFAULT_SPLITS = 3
_GO_ON = ". No finished trial is lost: the same command goes on"


def sweep(command: args.Sweep) -> int:
    if command.trials < 1:
        raise ValueError(f"--trials must be at least 1; got {command.trials}")
    check_workers(command.workers)
    if command.threads is not None:
        check_threads(command.threads)
    load_optuna()
    storage = None if command.storage is None else check_storage(command.storage)
    own = has_own(command.tables, command.dataset)
    refuse_pipes(command.tables)
    recipe, space = _recipe_and_space(command, own)
    with show.notice(f"reading {recipe.data.name or command.tables.nodes} ..."):
        dataset = read_data(recipe, command.tables, command.data_dir)
    few = min(_DEFAULT_SPLITS, dataset.num_splits)
    splits = show.parse_splits(command.splits or f"0-{few - 1}", dataset.num_splits)
    options = {"sampler": command.sampler, "seed": command.seed, "prune": command.prune}
    if command.together:
        check_together(recipe, dataset)
    plan = make_plan(recipe, space, dataset, splits, **options)
    out = command.out or Path("sweeps") / f"{recipe.model_name}-{dataset.name}"
    with as_storage_error(storage, _GO_ON), Sweep(plan, out.resolve(), storage) as search:
        trials = search.grow(command.trials)
        training.introduce(recipe, dataset)
        _introduce(plan, out, trials, command)
        with stoppable() as stop:
            finished = _run(search, _job(command, search, storage), trials, command.workers, stop)
        return _conclude(search, out, own, 0 if finished else stop.exit_code())


def _recipe_and_space(command: args.Sweep, own: bool) -> tuple[Recipe, Space]:
    recipe = training.choose_recipe(
        args.Train(
            dataset=command.dataset,
            model=command.model,
            recipe=command.recipe,
            set=command.set,
            epochs=command.epochs,
        ),
        own,
    )
    fixed = {assignment.partition("=")[0] for assignment in command.set}
    if command.epochs is not None:
        fixed.add("train.epochs")
    return recipe, load_space(recipe, command.space, fixed)


def _introduce(plan: Plan, out: Path, trials: int, command: args.Sweep) -> None:
    points = len(plan.grid) if plan.sampler == "grid" else plan.space.combinations()
    size = "no end of points" if points is None else f"{points:,} points"
    show.say(f"space: {plan.space.source}: {', '.join(plan.space.searched)} ({size})")
    show.say(
        f"{trials} trials of {spell_splits(plan.splits)}, {command.workers} at a time; the mean "
        f"validation {plan.metric} decides ({plan.sampler}, seed {plan.seed})"
    )
    if command.together:
        show.say("  the splits of a trial are trained in one pass; no trial is pruned")
    where = out if command.storage is None else f"{out}, {masked(command.storage)}"
    show.say(f"sweep: {where}")
    if trials < command.trials:
        show.say(f"  NOTE: the grid has {trials} points, so that is the number of trials")


def _job(command: args.Sweep, search: Sweep, storage: str | None) -> Job:
    threads = command.threads or max(1, torch.get_num_threads() // command.workers)
    return Job(
        folder=search.folder,
        storage=storage,
        tables=command.tables,
        data_dir=command.data_dir,
        threads=threads,
        cwd=Path.cwd(),
        environment=dict(os.environ),
        together=command.together,
    )


def _run(search: Sweep, job: Job, trials: int, workers: int, stop: Stop) -> bool:
    """Keep the processes at work until all trials are finished; ``False`` if a signal was first."""
    rows = search.queue.rows()
    if search.queue.is_finished():
        return True
    with sweep_show.progress(search.plan, trials, rows) as update:
        team = Team(job, min(workers, trials), _warn)
        try:
            while not stop():
                rows = search.queue.rows()
                update(rows)
                if search.queue.is_finished():
                    team.join()
                    return True
                team.check(sum(row.finished for row in rows))
                time.sleep(_POLL_SECONDS)
            team.stop()
            while team.is_at_work():
                time.sleep(0.05)
            update(search.queue.rows())
            return search.queue.is_finished()
        finally:
            team.close()


def _warn(line: str) -> None:
    sys.stderr.write(line + "\n")


def _conclude(search: Sweep, out: Path, own: bool, code: int) -> int:
    rows = search.queue.rows()
    best = search.write_best()
    if best is not None:
        sweep_show.best_table(search.plan, rows)
        figures = _draw(search, out)
        if figures:
            show.say(f"figures: {', '.join(map(str, figures))}")
        file = out / best.name
        how = (
            f"coopsheaf train --nodes ... --edges ... --recipe {file}"
            if own
            else f"coopsheaf bench {file}"
        )
        show.say(f"best recipe: {file}   test it with: {how}")
    done = sum(row.finished for row in rows)
    if code:
        sys.stderr.write(
            f"stopped; {done} of {search.queue.size} trials are finished. The same command goes "
            "on\n"
        )
        return code
    if best is None:
        first = next((row.error for row in rows if row.error), "no reason is known")
        raise ValueError(f"{out}: no trial was completed; the first one failed because {first}")
    return 0


def _draw(search: Sweep, out: Path) -> list[Path]:
    """The figures of the sweep, if matplotlib is there."""
    from coopsheaf.figures.influence import save
    from coopsheaf.figures.sweeps import history_figure, importance_figure

    plan, files = search.plan, []
    try:
        history = history_figure(
            search.queue.rows(), metric=plan.metric, maximise=plan.maximise, splits=len(plan.splits)
        )
        files.append(save(history, out / "history.svg"))
        importances = search.importances()
        if importances:
            files.append(save(importance_figure(importances), out / "importance.svg"))
    except ImportError:
        return []
    return files
