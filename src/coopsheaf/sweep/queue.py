"""The trials of a sweep, handed out one at a time; none is lost and none is run too often.

A sweep of N trials has N slots. A slot holds one trial that is waiting, running or finished
(completed or pruned), and any number of failed ones before it: a trial whose process was stopped or
has died fails, and its slot gets another one with the same settings. So N trials finish in the end,
whatever happens to the processes. Only :meth:`Queue.claim` and :meth:`Queue.end` move trials, and
only one process at a time is in them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from coopsheaf.files import finite
from coopsheaf.sweep.space import Value
from coopsheaf.sweep.storage import Home, load_optuna

MOST_DEATHS = 3
"""A trial that has ended so many processes is given up: it may need more memory than there is."""

SAMPLERS = {
    "tpe": "tree-structured Parzen estimator: looks where good trials were",
    "random": "every point as likely as any other",
    "grid": "every point once, in a random order",
}


@dataclass(frozen=True)
class TrialRow:
    """What is known of a trial.

    Args:
        number: in the order in which trials were made; failed ones count.
        slot: in the order in which trials are handed out.
        state: ``"waiting"``, ``"running"``, ``"complete"``, ``"pruned"`` or ``"fail"``.
        value: mean validation metric, of a pruned trial over fewer splits; ``None`` if there is
            none.
        params: what was chosen, by ``section.field``.
        vals: validation metric of each split so far.
        parameters: of the network.
        seconds: of training.
        config: the hash of its recipe.
        same_as: the number of the trial before it with the same settings that answered for it.
        error: why it came to nothing.
        worker: the process that runs or has run it.
        started, ended: when.
    """

    number: int
    slot: int
    state: str
    value: float | None = None
    params: Mapping[str, Value] = field(default_factory=dict)
    vals: tuple[float, ...] = ()
    parameters: int = 0
    seconds: float = 0.0
    config: str = ""
    same_as: int | None = None
    error: str = ""
    worker: str = ""
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def finished(self) -> bool:
        return self.state in ("complete", "pruned")


@dataclass(frozen=True)
class Claim:
    """A trial to be run by this process, until it is ended or closed."""

    trial: Any
    point: Any
    _lease: ExitStack

    def close(self) -> None:
        """Give up the promise to run it."""
        self._lease.close()

    def note(self, **attributes: Any) -> None:
        """Keep something about the trial."""
        for key, value in attributes.items():
            self.trial.set_user_attr(key, finite(value))


class Queue:
    """The trials of one study.

    Args:
        home: where they live.
        name: of the study, which is made if it is not there.
        maximise: whether a higher value is better.
        sampler: one of ``SAMPLERS``.
        seed: of the sampler. Each slot has its own seed drawn from it, so that what is sampled does
            not depend on how many processes there are or which of them asks.
        prune: whether trials may be pruned.
        preset: settings of a slot that are known beforehand.
    """

    def __init__(
        self,
        home: Home,
        name: str,
        *,
        maximise: bool,
        sampler: str,
        seed: int,
        prune: bool,
        preset: Callable[[int], Mapping[str, Value]] = lambda slot: {},
    ) -> None:
        self._optuna = load_optuna()
        self._home, self._sampler, self._seed, self._preset = home, sampler, seed, preset
        pruners = self._optuna.pruners
        with home.exclusive():
            self.study = self._optuna.create_study(
                storage=home.storage,
                study_name=name,
                direction="maximize" if maximise else "minimize",
                pruner=pruners.MedianPruner() if prune else pruners.NopPruner(),
                load_if_exists=True,
            )

    @property
    def size(self) -> int:
        """The number of slots."""
        return int(self.study.user_attrs.get("trials", 0))

    def grow(self, trials: int) -> None:
        """Have this many slots; there were at most as many before."""
        with self._home.exclusive():
            if trials < self.size:
                raise ValueError(
                    f"`trials` must be at least {self.size}, which this sweep was asked for "
                    f"before; got {trials}"
                )
            if trials > self.size:
                self.study.set_user_attr("trials", trials)
            self._fill(self.rows())

    def rows(self) -> list[TrialRow]:
        """All trials, in the order of their numbers."""
        return [_row(trial) for trial in self.study.get_trials(deepcopy=False)]

    def is_finished(self) -> bool:
        """Whether every slot is."""
        return sum(row.finished for row in self.rows()) >= self.size

    def claim(self, worker: str, suggest: Callable[[Any], Any]) -> Claim | None:
        """A trial to run; ``None`` if nothing waits at the moment.

        Args:
            worker: who asks.
            suggest: draws the settings of an Optuna trial; what it returns is the claim's point.
        """
        with self._home.exclusive():
            rows = self._fill(self._bury(self.rows()))
            waiting = [row for row in rows if row.state == "waiting"]
            if not waiting:
                return None
            self.study.sampler = self._make_sampler(waiting[0].slot)
            trial = self.study.ask()
            assert trial.number == waiting[0].number
            with ExitStack() as stack:
                stack.enter_context(self._home.lease(trial.number))
                trial.set_user_attr("worker", worker)
                return Claim(trial, suggest(trial), stack.pop_all())

    def end(self, claim: Claim, state: str, value: float | None = None) -> bool:
        """End a claimed trial; ``False`` if it was taken for dead and given to another process."""
        with self._home.exclusive():
            alive = self._state(claim.trial.number) == self._optuna.trial.TrialState.RUNNING
            if alive:
                kind = self._optuna.trial.TrialState[state.upper()]
                self.study.tell(claim.trial.number, value, state=kind)
            claim.close()
            return alive

    def _state(self, number: int) -> Any:
        return self.study.get_trials(deepcopy=False)[number].state

    def _bury(self, rows: list[TrialRow]) -> list[TrialRow]:
        """End the trials whose process has ended without doing so; returns all as they are then."""
        states = self._optuna.trial.TrialState
        running = [row for row in rows if row.state == "running"]
        dead = [row for row in running if not self._home.is_leased(row.number)]
        for row in dead:
            before = [r for r in rows if r.slot == row.slot and r.state == "fail" and not r.error]
            if len(before) + 1 < MOST_DEATHS:
                self.study.tell(row.number, state=states.FAIL)
                continue
            storage = self._home.storage
            study = storage.get_study_id_from_name(self.study.study_name)
            number = storage.get_trial_id_from_study_id_trial_number(study, row.number)
            error = f"{MOST_DEATHS} processes have died of it"
            storage.set_trial_user_attr(number, "error", error)
            self.study.tell(row.number, state=states.PRUNED)
        return self.rows() if dead else rows

    def _fill(self, rows: list[TrialRow]) -> list[TrialRow]:
        """Give every slot a trial that waits, runs or is finished; returns all trials."""
        last = {row.slot: row for row in rows}
        empty = [
            slot for slot in range(self.size) if slot not in last or last[slot].state == "fail"
        ]
        for slot in empty:
            params = dict(last[slot].params if slot in last else self._preset(slot))
            self.study.enqueue_trial(params, user_attrs={"slot": slot})
        return self.rows() if empty else rows

    def _make_sampler(self, slot: int) -> Any:
        digest = hashlib.sha256(f"{self._seed}/{slot}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        samplers = self._optuna.samplers
        return (
            samplers.TPESampler(seed=seed)
            if self._sampler == "tpe"
            else samplers.RandomSampler(seed)
        )


def best_row(rows: Sequence[TrialRow], *, maximise: bool) -> TrialRow | None:
    """The completed trial with the best value; of equals the smallest network, then the first.

    The first by its slot: a trial whose process has died is run again under a later number, and
    must win or lose as it would have.
    """
    sign = -1.0 if maximise else 1.0
    whole = [row for row in rows if row.state == "complete" and row.value is not None]

    def order(row: TrialRow) -> tuple[float, int, int, int]:
        return sign * (row.value or 0.0), row.parameters, row.slot, row.number

    return min(whole, key=order, default=None)


def _row(trial: Any) -> TrialRow:
    attributes = trial.user_attrs
    scores = attributes.get("scores", {})  # written at once
    return TrialRow(
        number=trial.number,
        slot=attributes.get("slot", trial.number),
        state=trial.state.name.lower(),
        value=trial.value,
        # Of a trial that waits, or has died early: what was asked of it.
        params={**trial.system_attrs.get("fixed_params", {}), **trial.params},
        vals=tuple(scores.get("vals", ())),
        parameters=scores.get("parameters", 0),
        seconds=scores.get("seconds", 0.0),
        config=attributes.get("config", ""),
        same_as=attributes.get("same_as"),
        error=attributes.get("error", ""),
        worker=attributes.get("worker", ""),
        started=trial.datetime_start,
        ended=trial.datetime_complete,
    )
