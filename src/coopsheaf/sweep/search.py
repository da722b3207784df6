"""Sweeps: settings are chosen, trained and compared on validation; the best become a recipe.

A trial is a recipe on some splits. Its value is the mean of the validation metric over them, and
nothing else is compared: test metrics are not in the study, and choose nothing. After each split
the mean so far is reported; a trial that is worse than the median of the completed ones after as
many splits is pruned, once five are completed.

A sweep is a folder::

    sweep.json      what is searched, and how
    journal.log     the trials, unless a database holds them
    records/        a record per trained split, as a bench makes them, apart from those of benches
    runs/           runs that have not ended; networks of those that have are not kept
    best.toml       the best recipe so far

The command line adds ``workers/``, what went wrong in its processes, and figures.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from coopsheaf.checks import check_int
from coopsheaf.config import ConfigError, config_hash
from coopsheaf.data.links import AnyDataset
from coopsheaf.files import locked, write_atomically, write_json
from coopsheaf.sweep.plan import Plan, SweepError, load_plan
from coopsheaf.sweep.queue import Claim, Queue, TrialRow, best_row
from coopsheaf.sweep.space import Choice, Setting, Value
from coopsheaf.sweep.storage import load_optuna, make_home
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.recipes import dump_toml
from coopsheaf.train.records import spell_splits
from coopsheaf.train.run import run_identity
from coopsheaf.train.runner import bench, current_commit
from coopsheaf.train.together.bench import bench_together

FEWEST_FOR_IMPORTANCE = 8


class Sweep:
    """A plan under way.

    Args:
        plan: what is searched.
        folder: of the sweep; made if it is not there.
        storage: what :func:`~coopsheaf.sweep.storage.check_storage` gave for the URL of a
            database; ``None`` for a journal in the folder.
    """

    def __init__(self, plan: Plan, folder: Path, storage: str | None = None) -> None:
        load_optuna()
        self.plan, self.folder = plan, folder
        self.commit = _announce(plan, folder)
        name = f"coopsheaf/{plan.recipe.model_name}/{plan.dataset}/{plan.identity}"
        self._home = make_home(folder, storage, name)
        self.queue = Queue(
            self._home,
            name,
            maximise=plan.maximise,
            sampler=plan.sampler,
            seed=plan.seed,
            prune=plan.prune and len(plan.splits) > 1,
            preset=lambda slot: plan.grid[slot] if plan.grid else {},
        )

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *error: object) -> None:
        self._home.close()

    def grow(self, trials: int) -> int:
        """Ask for this many trials in all; a grid has no more than its points. Returns how many."""
        check_int("trials", trials, minimum=1)
        if self.plan.sampler == "grid":
            trials = min(trials, len(self.plan.grid))
        self.queue.grow(trials)
        return trials

    def best(self) -> TrialRow | None:
        """The best trial so far."""
        return best_row(self.queue.rows(), maximise=self.plan.maximise)

    def recipe_of(self, row: TrialRow) -> Recipe:
        """The recipe of a trial."""
        return self.plan.point(lambda name, item: row.params[name])

    def work(
        self,
        dataset: AnyDataset,
        *,
        worker: str = "",
        should_stop: Callable[[], bool] = lambda: False,
        poll_seconds: float = 0.3,
        together: bool = False,
    ) -> bool:
        """Run trials until all are finished; ``False`` if it was stopped before.

        Any number of processes may do this at once. One that finds nothing to do waits: a trial
        that runs elsewhere may come back.

        Args:
            dataset: the processed data.
            worker: what to call this process.
            should_stop: asked after every epoch, and while there is nothing to do.
            poll_seconds: seconds between two looks.
            together: train the splits of a trial in one pass; nothing is pruned then.
        """
        if (dataset.name, dataset.checksum) != (self.plan.dataset, self.plan.checksum):
            raise SweepError(f"{self.folder}: is a sweep of other data than {dataset.name!r}")
        while not should_stop():
            claim = self.queue.claim(worker, self._suggest)
            if claim is not None:
                try:
                    self._run(claim, dataset, should_stop, together)
                finally:
                    claim.close()
            elif self.queue.is_finished():
                return True
            else:
                time.sleep(poll_seconds)
        return False

    def write_best(self) -> Path | None:
        """Write the best recipe so far; ``None`` if no trial was completed."""
        best = self.best()
        if best is None:
            return None
        recipe, plan = self.recipe_of(best), self.plan
        name = f"sweep/{recipe.model_name}/{plan.dataset}"
        recipe = replace(recipe, name=name, source=self.describe(best))
        write_atomically(self.folder / "best.toml", dump_toml(recipe).encode())
        return self.folder / "best.toml"

    def describe(self, best: TrialRow) -> str:
        """Where the best recipe comes from, in a sentence."""
        plan, rows = self.plan, [row for row in self.queue.rows() if row.finished]
        pruned = sum(row.state == "pruned" for row in rows)
        last = max((row.ended for row in rows if row.ended is not None), default=None)
        of = "" if len(rows) == self.queue.size else f" of {self.queue.size}"
        searched = ", ".join(plan.space.searched)
        return (
            f"sweep of {len(rows)}{of} trials ({pruned} pruned; {plan.sampler}, seed {plan.seed}) "
            f"over {plan.space.source or 'a space'}, varying {searched}; "
            f"selected on the mean validation {plan.metric} of {spell_splits(plan.splits)} "
            f"({best.value:.4f}, trial {best.number})"
            + ("" if last is None else f"; {last.date().isoformat()}")
            + (f"; commit {self.commit}" if self.commit else "")
        )

    def importances(self) -> dict[str, float]:
        """The share of each setting in being among the best trials, largest first (PED-ANOVA).

        Empty if there are too few trials to tell, or all are equal.
        """
        whole = [row.value for row in self.queue.rows() if row.state == "complete"]
        if len(whole) < FEWEST_FOR_IMPORTANCE or len(set(whole)) < 2:
            return {}
        importance = load_optuna().importance
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # experimental; equal quantiles
            evaluator = importance.PedAnovaImportanceEvaluator(target_quantile=0.25)
            found = importance.get_param_importances(self.queue.study, evaluator=evaluator)
        return {name: float(share) for name, share in found.items()} if any(found.values()) else {}

    def _suggest(self, trial: Any) -> Recipe | ConfigError:
        try:
            return self.plan.point(lambda name, item: _ask(trial, name, item))
        except ConfigError as error:  # values that are right one by one, but not together
            return error

    def _run(
        self, claim: Claim, dataset: AnyDataset, should_stop: Callable[[], bool], together: bool
    ) -> None:
        """Train a trial's recipe on the splits, or copy the answer of a trial with the same one."""
        gone = load_optuna().exceptions.UpdateFinishedTrialError
        try:
            state, value = self._evaluate(claim, dataset, should_stop, together)
            self.queue.end(claim, state, value)
        except gone:  # it was taken for dead; another process has it now
            return

    def _evaluate(
        self, claim: Claim, dataset: AnyDataset, should_stop: Callable[[], bool], together: bool
    ) -> tuple[str, float | None]:
        """How the trial ends, and its value if it is completed."""
        recipe, splits = claim.point, self.plan.splits
        if isinstance(recipe, ConfigError):
            claim.note(error=str(recipe))
            return "pruned", None
        claim.note(config=recipe.hash())
        twin = self._twin(claim.trial.number, recipe)
        if twin is not None:
            scores = {"vals": twin.vals, "parameters": twin.parameters}
            claim.note(same_as=twin.number, scores=scores)
            for step in range(len(twin.vals)):
                claim.trial.report(fmean(twin.vals[: step + 1]), step)
            if twin.error:
                claim.note(error=twin.error)
            return twin.state, twin.value if twin.state == "complete" else None
        vals: list[float] = []
        seconds = 0.0
        try:
            outcomes = (bench_together if together else bench)(
                recipe,
                dataset,
                list(splits),
                results=self.folder / "records",
                work=self.folder / "runs",
                should_stop=should_stop,
            )
            with closing(outcomes):  # type: ignore[type-var]
                for outcome in outcomes:
                    record = outcome.record
                    self._forget(recipe, dataset, outcome.split)
                    if record.val is None:
                        raise ValueError(f"the validation {record.metric} is not defined")
                    vals.append(record.val)
                    seconds += record.seconds or 0.0
                    scores = {"vals": vals, "parameters": record.parameters, "seconds": seconds}
                    claim.note(scores=scores)
                    claim.trial.report(fmean(vals), len(vals) - 1)
                    left = len(vals) < len(splits) and not together
                    if left and claim.trial.should_prune():
                        return "pruned", None
        except (ValueError, ArithmeticError, MemoryError, RuntimeError) as error:
            # It diverged, or does not fit into memory: that is what is to be known of it.
            claim.note(error=" ".join(str(error).split()) or type(error).__name__)
            return "pruned", None
        if len(vals) < len(splits):
            claim.note(error="stopped")
            return "fail", None
        return "complete", fmean(vals)

    def _twin(self, number: int, recipe: Recipe) -> TrialRow | None:
        """A trial of the same recipe that is completed, or came to nothing."""
        config = recipe.hash()
        for row in self.queue.rows():
            if row.config == config and row.number != number and row.finished:
                whole = row.state == "complete" and len(row.vals) == len(self.plan.splits)
                if whole or row.error:
                    return row
        return None

    def _forget(self, recipe: Recipe, dataset: AnyDataset, split: int) -> None:
        """Remove the run of a split that is recorded: thousands of networks are of no use."""
        identity = config_hash(run_identity(recipe, dataset, split))
        name = f"{recipe.model_name}-{dataset.name}-{split}-{identity}"
        shutil.rmtree(self.folder / "runs" / name, ignore_errors=True)


def _announce(plan: Plan, folder: Path) -> str:
    """Make the folder say whose it is; returns the commit it was begun with."""
    path = folder / "sweep.json"
    if folder.is_dir() and not path.exists() and any(folder.glob("[!.]*")):
        raise SweepError(f"{folder}: holds files and no sweep; choose another folder with --out")
    with locked(path):
        if path.exists():
            if load_plan(folder).identity != plan.identity:
                raise SweepError(
                    f"{folder}: holds another sweep (other settings, space, data, splits, sampler "
                    "or seed); choose another folder with --out"
                )
            commit = json.loads(path.read_text(encoding="utf-8")).get("commit", "")
            return str(commit)
        begun = current_commit()
        write_json(path, {"identity": plan.identity, "commit": begun, "plan": plan.to_plain()})
        return begun


def _ask(trial: Any, name: str, item: Setting) -> Value:
    if isinstance(item, Choice):
        return trial.suggest_categorical(name, item.values)
    if item.whole:
        return trial.suggest_int(name, item.low, item.high, step=int(item.step or 1), log=item.log)
    return trial.suggest_float(name, item.low, item.high, step=item.step, log=item.log)
