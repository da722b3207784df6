"""The training loop: plain to read, stoppable at any moment, resumable to the same end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from coopsheaf.data.dataset import PARTS
from coopsheaf.memory import ease_memory
from coopsheaf.schema import brief_text
from coopsheaf.train.checkpoint import load_tensors, pack, save_tensors, unpack
from coopsheaf.train.config import STEP_EPOCHS, STEP_FALL, TrainConfig
from coopsheaf.train.engine import Engine, without_tiny_numbers
from coopsheaf.train.evaluation import epochs_between, evaluate_together, regular_parts
from coopsheaf.train.evaluation import evaluate as evaluate
from coopsheaf.train.feed import Feed
from coopsheaf.train.patience import out_of_patience, remember_loss
from coopsheaf.train.run_info import CheckpointError
from coopsheaf.train.run_schema import check_state
from coopsheaf.train.sample_weights import weighted_loss
from coopsheaf.train.state_checks import check_moments, check_same_shapes
from coopsheaf.train.tally import Tally
from coopsheaf.train.task import HIGHER_IS_BETTER, Task
from coopsheaf.train.world import World


@dataclass(frozen=True)
class EpochReport:
    """What a progress bar shows."""

    epoch: int
    epochs: int
    loss: float
    val: float
    best_val: float
    best_epoch: int
    seconds_left: float


@dataclass
class FitState:
    """Where a fit stands, tensors aside; everything here is a plain value."""

    epoch: int = 0
    best_epoch: int = 0
    best: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    # Epoch, loss, train, val, test; NaN for a part that was not scored.
    history: list[list[float]] = field(default_factory=list)
    plateau: dict[str, Any] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)  # of the last evaluations, where they count


@dataclass(frozen=True)
class FitResult:
    """What came of a fit: scores at the first epoch with the best validation score."""

    scores: dict[str, float]
    best_epoch: int
    epochs: int
    seconds: float
    history: list[list[float]]
    interrupted: bool
    eval_every: int = 1  # as it was; with "auto" that is worked out


def train_dtype(config: TrainConfig) -> torch.dtype:
    """The dtype of features and parameters."""
    return torch.float64 if config.precision == "64" else torch.float32


@without_tiny_numbers()
def fit(
    model: nn.Module,
    feed: Feed,
    task: Task,
    config: TrainConfig,
    *,
    fabric: Engine,
    state_path: Path | None = None,
    identity: str = "",
    resume: bool = False,
    checkpoint_seconds: float = 30.0,
    report: Callable[[EpochReport], None] | None = None,
    watch: Callable[[Sequence[float]], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> FitResult:
    """Train ``model``; it ends with the parameters of the best validation epoch.

    Selection is on validation alone: the first epoch that attains the best value of the metric, or
    of the loss if the settings say so. The test metric is recorded at that epoch and decides
    nothing; where an evaluation leaves it out (:func:`regular_parts`), it is found with the
    parameters that were kept.

    Args:
        model: the network, freshly built after seeding.
        feed: the data.
        task: loss and metric.
        config: the settings.
        fabric: device, precision and processes. With several, each sees its share of every step,
            all have the same parameters, and the first one writes.
        state_path: where the state goes every ``checkpoint_seconds``, and at the end.
        identity: what the state belongs to; resuming something else is an error.
        resume: continue from ``state_path`` if it is there.
        checkpoint_seconds: seconds between two states.
        report: called after every evaluation.
        watch: called with every row of the history, also with those before an interruption.
        should_stop: asked after every epoch; ``True`` saves the state and returns.
    """
    optimizer = _make_optimizer(model, config)
    if config.compile:
        model.compile()
    wrapped, optimizer = fabric.setup(model, optimizer)
    plateau = _make_plateau(optimizer, task, config)
    weight = None
    if config.class_weights:
        weight = task.class_weight(feed.train_targets()).to(train_dtype(config))
    state, best = FitState(), _copy(model)
    world = World(fabric)
    parts = regular_parts(feed, config)
    every = epochs_between(
        config, lambda: world.by_first(lambda: feed.evaluation_share(model, parts))
    )
    if resume and state_path is not None:
        path = state_path
        kept = world.by_first(lambda: _read(path, identity) if path.exists() else None)
        if kept is not None:
            state, best = _restore(path, *kept, model, optimizer, plateau, world)
    if watch is not None:
        for row in state.history:
            watch(row)

    def save() -> None:
        if state_path is not None:
            _save(state_path, identity, model, optimizer, plateau, state, best, world)

    interrupted = False
    start, before = time.monotonic(), state.seconds
    last_save = start
    while state.epoch < config.epochs and not _is_enough(state, config):
        _set_learning_rate(optimizer, config, state.epoch)
        loss = train_epoch(wrapped, feed, task, optimizer, world, config, weight, state.epoch)
        world.align(model)
        ease_memory()
        state.epoch += 1
        if state.epoch % every == 0 or state.epoch == config.epochs:
            scores = evaluate_together(model, feed, task, world, parts)
            found = (scores.get(part, math.nan) for part in PARTS)
            state.history.append([state.epoch, loss, *found])
            if watch is not None:
                watch(state.history[-1])
            state.losses = remember_loss(config, state.losses, scores["val_loss"])
            if _better(scores, state.best, task, config):
                state.best, state.best_epoch, best = scores, state.epoch, _copy(model)
            if plateau is not None:
                plateau.step(scores["val"])
            state.seconds = before + time.monotonic() - start
            if report is not None:
                report(_report(state, config, loss, scores["val"]))
        due = world.is_first and time.monotonic() - last_save >= checkpoint_seconds
        interrupted, due = world.any(should_stop is not None and should_stop(), due)
        if interrupted:
            break
        if due:
            save()
            last_save = time.monotonic()
    state.seconds = before + time.monotonic() - start
    save()
    if not interrupted:
        if state.best_epoch == 0:
            raise ValueError(
                f"the validation metric, {task.metric}, was never defined (too few labels, or one "
                "class only), so no epoch can be selected; choose another split"
            )
        model.load_state_dict(best)
        if left := [part for part in PARTS if part not in parts]:
            state.best |= evaluate_together(model, feed, task, world, left)
    scores = {part: state.best.get(part, math.nan) for part in PARTS}
    return FitResult(
        scores, state.best_epoch, state.epoch, state.seconds, state.history, interrupted, every
    )


def train_epoch(
    model: Any,
    feed: Feed,
    task: Task,
    optimizer: Optimizer,
    world: World,
    config: TrainConfig,
    weight: Tensor | None,
    epoch: int,
) -> float:
    """The steps of one epoch; returns the mean loss over the samples of all processes."""
    model.train()
    tally = Tally(epoch, config)
    for logits, y, *samples in feed.steps(model, epoch):
        mass: Tensor | float
        if samples:
            loss, mass = weighted_loss(task, logits, y, weight, *samples)
        else:
            mass = task.mass(y, weight)
            # Without samples of its own a process still takes part: others have some.
            some = isinstance(mass, Tensor) or mass > 0
            loss = task.loss(logits, y, weight) if some else logits.sum() * 0
        optimizer.zero_grad(set_to_none=True)
        world.fabric.backward(world.balance(loss, mass))
        tally.look_at(model)
        if config.clip is not None:
            norm = world.fabric.clip_gradients(
                model, optimizer, max_norm=config.clip, error_if_nonfinite=False
            )
            tally.clipped(norm)
        optimizer.step()
        tally.add(loss, mass)
    return tally.mean(world)


def _make_optimizer(model: nn.Module, config: TrainConfig) -> Optimizer:
    owners = {"step_epochs": "steps", "step_fall": "steps", "plateau_floor": "plateau"}
    for name, owner in owners.items():
        if config.schedule != owner and getattr(config, name) is not None:
            raise ValueError(
                f"`{name}` belongs to `schedule` {owner}; got {config.schedule!r}: remove one"
            )
    if config.plateau_floor is not None and config.plateau_floor > config.lr:
        raise ValueError(
            f"`plateau_floor` must be at most `lr`, {config.lr:g}; got {config.plateau_floor:g}"
        )
    kinds: dict[str, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    kind = kinds.get(config.optimizer, torch.optim.AdamW)
    # Models that are not ours need not know of groups or maps.
    own: list[dict[str, Any]] = getattr(model, "parameter_groups", list)()
    own = [*own, *_map_groups(model, config)]
    taken = {parameter for group in own for parameter in group["params"]}
    others = [parameter for parameter in model.parameters() if parameter not in taken]
    # A rate of one's own follows the schedule from where it begins.
    rates = ({"own_lr": group["lr"]} if "lr" in group else {} for group in own)
    groups = [{"params": others}, *(group | rate for group, rate in zip(own, rates, strict=True))]
    return kind(groups, lr=config.lr, weight_decay=config.weight_decay, fused=True)


def _map_groups(model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
    """What learns maps, where it is trained by rules of its own."""
    rules: dict[str, float] = {}
    if config.map_weight_decay is not None:
        rules["weight_decay"] = config.map_weight_decay
    if config.map_lr_factor is not None:
        rules["lr"] = config.map_lr_factor * config.lr
    if not rules:
        return []
    find: Any = getattr(model, "map_learners", list)
    maps = {parameter for learner in find() for parameter in learner.parameters()}
    if not maps:
        which = "map_lr_factor" if config.map_weight_decay is None else "map_weight_decay"
        raise ValueError(f"`{which}` needs a network that learns maps; remove it for this model")
    learned = [parameter for parameter in model.parameters() if parameter in maps]
    return [{"params": learned, **rules}]


def _better(
    scores: dict[str, float], best: dict[str, float], task: Task, config: TrainConfig
) -> bool:
    """Whether this epoch shall be kept; the first of equals is."""
    if config.select == "loss":
        return not math.isnan(scores["val"]) and scores["val_loss"] < best.get("val_loss", math.inf)
    return task.better(scores["val"], best.get("val"))


def _make_plateau(optimizer: Any, task: Task, config: TrainConfig) -> ReduceLROnPlateau | None:
    if config.schedule != "plateau":
        return None
    return ReduceLROnPlateau(
        getattr(optimizer, "optimizer", optimizer),
        mode="max" if HIGHER_IS_BETTER[task.metric] else "min",
        factor=0.5,
        patience=config.plateau_patience,
        min_lr=config.plateau_floor or 0.0,
    )


def _rate(config: TrainConfig, epoch: int) -> float | None:
    """The learning rate of an epoch in parts of the first; ``None`` if it is not for us to set.

    A function of the epoch alone: nothing to save, nothing to restore.
    """
    if config.schedule == "steps":
        falls = epoch // (config.step_epochs or STEP_EPOCHS)
        return max(0.0, 1 - falls * (config.step_fall or STEP_FALL))
    if config.schedule != "cosine":
        return None
    if epoch < config.warmup:
        return max(1e-6, epoch / config.warmup)
    done = (epoch - config.warmup) / max(1, config.epochs - config.warmup)
    return 0.5 * (1 + math.cos(math.pi * done))


def _set_learning_rate(optimizer: Optimizer, config: TrainConfig, epoch: int) -> None:
    factor = _rate(config, epoch)
    if factor is None:
        return
    for group in optimizer.param_groups:
        group["lr"] = group.get("own_lr", config.lr) * factor


def _is_enough(state: FitState, config: TrainConfig) -> bool:
    last = state.history[-1][0] if state.history else 0
    return out_of_patience(config, last, state.best_epoch, state.losses)


def _report(state: FitState, config: TrainConfig, loss: float, val: float) -> EpochReport:
    left = (config.epochs - state.epoch) * state.seconds / state.epoch
    best = state.best.get("val", math.nan)
    return EpochReport(state.epoch, config.epochs, loss, val, best, state.best_epoch, left)


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def _save(
    path: Path,
    identity: str,
    model: nn.Module,
    optimizer: Any,
    plateau: ReduceLROnPlateau | None,
    state: FitState,
    best: dict[str, Tensor],
    world: World,
) -> None:
    drawn = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        drawn["cuda"] = torch.cuda.get_rng_state()
    everyone = world.gather(drawn)
    moments = {
        f"{index}.{name}": value
        for index, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }
    tensors = {
        **pack("model", model.state_dict()),
        **pack("best", best),
        **pack("optimizer", moments),
    }
    for rank, states in enumerate(everyone):
        tensors |= pack(f"rng/{rank}", states)
    if plateau is not None:
        keep = ("best", "num_bad_epochs", "last_epoch", "_last_lr", "cooldown_counter")
        state.plateau = {key: plateau.state_dict()[key] for key in keep}
    rates = [group["lr"] for group in optimizer.param_groups]
    meta = {"identity": identity, "state": asdict(state), "rates": rates}
    world.by_first(lambda: save_tensors(path, tensors, meta))


def _read(path: Path, identity: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, meta = load_tensors(path)
    if meta.get("identity") != identity:
        raise CheckpointError(
            f"{path}: the state of another run (other settings, data or split); "
            "choose another folder, or start without --resume"
        )
    return tensors, meta


def _restore(
    path: Path,
    tensors: dict[str, Tensor],
    meta: dict[str, Any],
    model: nn.Module,
    optimizer: Any,
    plateau: ReduceLROnPlateau | None,
    world: World,
) -> tuple[FitState, dict[str, Tensor]]:
    try:
        check_state(meta)
        model.load_state_dict(unpack("model", tensors))
        best = unpack("best", tensors)
        check_same_shapes(best, model.state_dict())
        state = FitState(**meta["state"])
        packed = optimizer.state_dict()
        packed["state"] = {}
        for name, value in unpack("optimizer", tensors).items():
            index, _, key = name.partition(".")
            packed["state"].setdefault(int(index), {})[key] = value
        groups = optimizer.param_groups
        check_moments(packed["state"], [p for group in groups for p in group["params"]])
        optimizer.load_state_dict(packed)
        for group, rate in zip(optimizer.param_groups, meta["rates"], strict=True):
            group["lr"] = rate
        if plateau is not None:
            plateau.load_state_dict(state.plateau)
        drawn = unpack(f"rng/{world.rank}", tensors)
        torch.set_rng_state(drawn["cpu"])
        if "cuda" in drawn and torch.cuda.is_available():
            torch.cuda.set_rng_state(drawn["cuda"])
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = brief_text((str(error) or type(error).__name__).split("\n")[0])
        raise CheckpointError(f"{path}: does not fit this model ({reason})") from None
    return state, best
