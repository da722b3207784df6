"""The loop of many runs: one pass for all, and for each its own rate, best epoch and end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from coopsheaf.data.dataset import PARTS
from coopsheaf.memory import ease_memory
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.engine import Engine, without_tiny_numbers
from coopsheaf.train.evaluation import epochs_between
from coopsheaf.train.feed import NodeFeed
from coopsheaf.train.loop import (
    EpochReport,
    FitResult,
    FitState,
    _better,
    _is_enough,
    _make_optimizer,
    _make_plateau,
    _set_learning_rate,
)
from coopsheaf.train.patience import remember_loss
from coopsheaf.train.task import Task
from coopsheaf.train.together.samples import Losses, Scores
from coopsheaf.train.together.stack import Kept, Stack
from coopsheaf.train.trouble import divergence, endless_gradient


@dataclass
class Member:
    """One of the runs.

    Args:
        network: as it was drawn; in the end it has its best parameters.
        feed: its data; graph and features are those of all.
        config: its settings.
        watch: called with every row of its history.
    """

    network: nn.Module
    feed: NodeFeed
    config: TrainConfig
    watch: Callable[[Sequence[float]], None] | None = None
    state: FitState = field(default_factory=FitState)
    trouble: str = ""  # why it came to nothing


class Rows:
    """The optimisers of the runs that are under way: one for each row of the stack.

    Runs whose settings are the same, as those of many splits are, have one for all rows: what Adam
    does to a number depends on no other.
    """

    def __init__(self, members: Sequence[Member], task: Task, stack: Stack) -> None:
        self.stack = stack
        made = [_make_optimizer(member.network, member.config) for member in members]
        options = [[_options(group) for group in one.param_groups] for one in made]
        filled = [k for k, segment in enumerate(stack.segments) if segment.start < segment.stop]
        alike = all(one == options[0] for one in options) and len(filled) == 1
        kind: Any = type(made[0])
        self.optimizers: list[Optimizer]
        self.plateaus: list[ReduceLROnPlateau | None] = [None] * len(members)
        if alike and members[0].config.schedule != "plateau":
            whole = options[0][filled[0]] | {"params": [nn.Parameter(stack.matrix)]}
            self.optimizers = [kind([whole])]
            self.places: list[Any] = [[slice(None)]]
            return
        parts = [stack.segments[k] for k in filled]
        self.places = [[(row, part) for part in parts] for row in range(len(members))]
        self.optimizers = []
        for own, places in zip(options, self.places, strict=True):
            groups = [
                own[k] | {"params": [nn.Parameter(stack.matrix[place])]}
                for k, place in zip(filled, places, strict=True)
            ]
            self.optimizers.append(kind(groups))
        pairs = zip(self.optimizers, members, strict=True)
        self.plateaus = [_make_plateau(opt, task, member.config) for opt, member in pairs]

    @property
    def is_one(self) -> bool:
        return self.places == [[slice(None)]]

    def set_rates(self, now: Sequence[Member], epoch: int) -> None:
        """The learning rates of an epoch."""
        for optimizer, member in zip(self.optimizers, now, strict=False):
            _set_learning_rate(optimizer, member.config, epoch)

    def clip(self, row: int, most: float) -> float:
        """Shorten the gradient of a run; returns the norm that it had."""
        gradient = self.stack.gradient[row]
        norm = gradient.norm()
        gradient.mul_(torch.clamp(most / (norm + 1e-6), max=1.0))
        return float(norm)

    def step(self, skip: Sequence[bool] = ()) -> None:
        """A step of all runs but some."""
        for row, (optimizer, places) in enumerate(zip(self.optimizers, self.places, strict=True)):
            if skip and skip[row] and not self.is_one:
                continue
            for group, place in zip(optimizer.param_groups, places, strict=True):
                group["params"][0].grad = self.stack.gradient[place]
            optimizer.step()

    def keep(self, rows: Sequence[int]) -> None:
        """Follow the stack, which has left the others out."""
        self.plateaus = [self.plateaus[row] for row in rows]
        if self.is_one:
            for moments in self.optimizers[0].state.values():
                for key, value in moments.items():
                    by_row = isinstance(value, Tensor) and value.dim() == 2
                    moments[key] = value[rows] if by_row else value
        else:
            self.optimizers = [self.optimizers[row] for row in rows]
            self.places = [
                [(row, part) for _, part in self.places[old]] for row, old in enumerate(rows)
            ]
        for optimizer, places in zip(self.optimizers, self.places, strict=True):
            for group, place in zip(optimizer.param_groups, places, strict=True):
                group["params"][0].data = self.stack.matrix[place]


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}


class Pass:
    """What one epoch of the runs under way computes."""

    def __init__(
        self, members: Sequence[Member], task: Task, stack: Stack, x: Tensor, engine: Engine
    ) -> None:
        self.stack, self.x, self.engine, feed = stack, x, engine, members[0].feed
        self.graph, self.inputs = feed.graph, feed.edge_inputs
        feeds, n = [member.feed for member in members], feed.x.shape[0]

        def losses(part: str, **weights: Any) -> Losses:
            nodes, y = [f.index[part] for f in feeds], [f.y[part] for f in feeds]
            return Losses(task, nodes, y, n, **weights)

        weighted = members[0].config.class_weights
        classes = [task.class_weight(f.y["train"]) for f in feeds] if weighted else None
        samples = [weight for f in feeds for weight in f.weight] or None
        self.losses = losses("train", class_weights=classes, sample_weights=samples)
        self.val_losses = losses("val")
        self.scores = Scores(
            task,
            [[f.index[part] for f in feeds] for part in PARTS],
            [[f.y[part] for f in feeds] for part in PARTS],
            n,
        )

    def train(self, generators: Sequence[torch.Generator]) -> tuple[list[float], list[str]]:
        """Gradients in the stack; what each run loses, and parameters that nobody uses."""
        leaves = self.stack.leaves()
        out = self._outputs(leaves, generators, training=True)
        losses = self.losses(out)
        idle = self.stack.backward(losses.sum(), leaves)
        return losses.tolist(), idle

    @torch.no_grad()
    def evaluate(self, generators: Sequence[torch.Generator]) -> list[dict[str, float]]:
        """The scores of each run, and the loss of its validation part."""
        leaves = {name: leaf.detach() for name, leaf in self.stack.leaves().items()}
        out = self._outputs(leaves, generators, training=False)
        wide = out.to(torch.promote_types(out.dtype, torch.float32))
        found = zip(self.scores(out), self.val_losses(wide).tolist(), strict=True)
        return [
            dict(zip(PARTS, scores, strict=True)) | {"val_loss": loss} for scores, loss in found
        ]

    def _outputs(self, leaves: Any, generators: Any, *, training: bool) -> Tensor:
        given = self.x, self.graph, self.inputs, generators
        with self.engine.autocast():  # the network alone, as in a run alone
            return self.stack.outputs(leaves, *given, training=training)


@without_tiny_numbers()
def fit_together(
    members: Sequence[Member],
    task: Task,
    x: Tensor,
    *,
    engine: Engine,
    stack: Stack,
    report: Callable[[EpochReport], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[FitResult] | None:
    """Train many networks on one graph; each ends with the parameters of its best epoch.

    The same as :func:`coopsheaf.train.loop.fit` of one after the other, up to rounding: what is
    random in a run comes from a generator of its own with the seed of that run. A run that ends is
    left out of the passes that follow. One whose loss is not finite ends with ``trouble``, and the
    others go on.

    Args:
        members: the runs; their settings differ in rates, decays and seeds at most.
        task: loss and metric.
        x: the features, as the networks shall see them.
        engine: the precision.
        stack: their networks.
        report: called after every evaluation, with means over the runs under way.
        should_stop: asked after every epoch.

    Returns:
        For each run what came of it; ``None`` if it was told to stop.
    """
    config, results = members[0].config, dict[int, FitResult]()
    every = epochs_between(config, lambda: 1.0)
    active, kept = list(range(len(members))), dict[int, Kept]()
    rows, work = Rows(members, task, stack), Pass(members, task, stack, x, engine)
    generators = [torch.Generator().manual_seed(member.config.seed) for member in members]
    start = last = time.monotonic()
    epoch = 0
    while active:
        now = [members[number] for number in active]
        drawing = [generators[number] for number in active]
        rows.set_rates(now, epoch)
        losses, _ = work.train(drawing)
        _step(rows, now, losses, epoch)
        ease_memory()
        epoch += 1
        if epoch % every == 0 or epoch == config.epochs:
            found = work.evaluate(drawing)
            for row, (number, member) in enumerate(zip(active, now, strict=True)):
                if not member.trouble and _look(member, task, epoch, losses[row], found[row]):
                    kept[number] = stack.copy(row)
                plateau = rows.plateaus[row]
                if plateau is not None:
                    plateau.step(found[row]["val"])
            if report is not None:
                seconds = time.monotonic() - start
                report(_report(members, now, config, epoch, seconds))
        last = _share_time(now, epoch, last)
        ended = [epoch == config.epochs or _is_over(member) for member in now]
        if any(ended):
            left = [row for row, is_over in enumerate(ended) if not is_over]
            stack.keep(left)
            rows.keep(left)
            active = [active[row] for row in left]
            if active:
                work = Pass([members[number] for number in active], task, stack, x, engine)
        if should_stop is not None and should_stop() and active:
            return None
    for number, member in enumerate(members):
        if number in kept and not member.trouble:
            member.network.load_state_dict(stack.state(kept[number]))
        elif not member.trouble:
            member.trouble = (
                f"the validation metric, {task.metric}, was never defined (too few labels, or one "
                "class only), so no epoch can be selected; choose another split"
            )
        results[number] = _result(member.state, every)
    return [results[number] for number in range(len(members))]


def _step(rows: Rows, now: Sequence[Member], losses: Sequence[float], epoch: int) -> None:
    """A step of every run whose numbers are sound; the others have trouble."""
    finite = [True] * len(now)
    if epoch == 0:
        finite = rows.stack.gradient.isfinite().all(1).tolist()
    for row, (member, loss, sound) in enumerate(zip(now, losses, finite, strict=True)):
        if not (sound and math.isfinite(loss)):
            member.trouble = divergence(loss, epoch, sound, member.config)
        elif member.config.clip is not None:
            norm = rows.clip(row, member.config.clip)
            if not math.isfinite(norm):
                member.trouble = endless_gradient(epoch, sound, member.config)
    rows.step([member.trouble != "" for member in now])


def _look(member: Member, task: Task, epoch: int, loss: float, found: dict[str, float]) -> bool:
    """Take an evaluation down; whether it is the best so far."""
    state, config = member.state, member.config
    state.history.append([epoch, loss, *(found[part] for part in PARTS)])
    if member.watch is not None:
        member.watch(state.history[-1])
    state.losses = remember_loss(config, state.losses, found["val_loss"])
    if not _better(found, state.best, task, config):
        return False
    state.best, state.best_epoch = found, epoch
    return True


def _is_over(member: Member) -> bool:
    return member.trouble != "" or _is_enough(member.state, member.config)


def _share_time(now: Sequence[Member], epoch: int, last: float) -> float:
    """Give each run its share of an epoch's time; returns when it ended."""
    ended = time.monotonic()
    for member in now:
        member.state.epoch = epoch
        member.state.seconds += (ended - last) / len(now)
    return ended


def _report(
    members: Sequence[Member],
    now: Sequence[Member],
    config: TrainConfig,
    epoch: int,
    seconds: float,
) -> EpochReport:
    rows = [member.state.history[-1] for member in now if not member.trouble]
    best = [m.state.best["val"] for m in members if m.state.best_epoch]
    return EpochReport(
        epoch,
        config.epochs,
        _mean([row[1] for row in rows]),
        _mean([row[3] for row in rows]),
        _mean(best),
        max(member.state.best_epoch for member in members),
        (config.epochs - epoch) * seconds / epoch,
    )


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _result(state: FitState, every: int) -> FitResult:
    scores = {part: state.best.get(part, math.nan) for part in PARTS}
    return FitResult(
        scores, state.best_epoch, state.epoch, state.seconds, state.history, False, every
    )
