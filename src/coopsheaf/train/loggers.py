"""Curves of a run where people watch them: files, TensorBoard, W&B, MLflow.

A logger is told of every row of a run's history, also of those before an interruption, so that what
it shows is the history, whatever happened in between. None of them is imported unless it is named.
"""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

from coopsheaf.data.dataset import PARTS
from coopsheaf.extras import load_extra
from coopsheaf.train.recipe import Recipe

PROJECT = "coopsheaf"  # what projects and experiments are called elsewhere


class Logger(Protocol):
    """The part of Lightning Fabric's loggers that runs use."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None: ...
    def finalize(self, status: str) -> None: ...


class Watch:
    """Hands the rows of a history on to a logger: epoch, loss, and the metric of each part.

    ``status`` is how the run ends: ``"success"``, ``"interrupted"`` or ``"failed"``.

    Args:
        logger: where to.
        metric: of the run.
    """

    def __init__(self, logger: Logger, metric: str) -> None:
        self.logger = logger
        self.status = "success"
        self.names = ("loss", *(f"{metric}/{part}" for part in PARTS))

    def __call__(self, row: Sequence[float]) -> None:
        epoch, *values = row
        known = {n: v for n, v in zip(self.names, values, strict=True) if not math.isnan(v)}
        self.logger.log_metrics(known, int(epoch))


@contextmanager
def watching(
    recipe: Recipe, metric: str, identity: str, out: Path | None, first: bool = True
) -> Iterator[Watch | None]:
    """What the settings ask for (``train.logger``), if anything, until the run ends or fails.

    Args:
        first: whether this process is the first of its run, which is the one that writes.
        recipe, metric, identity, out: see :func:`make_watch`.
    """
    watch = make_watch(recipe, metric, identity, out) if first else None
    try:
        yield watch
    except BaseException:
        if watch is not None:
            watch.status = "failed"
        raise
    finally:
        if watch is not None:
            watch.logger.finalize(watch.status)


def make_watch(recipe: Recipe, metric: str, identity: str, out: Path | None) -> Watch | None:
    """A logger by its name.

    Args:
        recipe: the settings, which some loggers show.
        metric: of the run.
        identity: of the run: resumed, it is the same one elsewhere, too.
        out: the run's folder.
    """
    kind = recipe.train.logger
    if kind is None:
        return None
    if kind in ("csv", "tensorboard"):
        if out is None:
            raise ValueError(
                f"`train.logger` {kind!r} writes into the folder of the run: give one (--out, or "
                "out=...)"
            )
        shutil.rmtree(out / "logs" / kind, ignore_errors=True)  # all of it is told again
    return Watch(_MAKERS[kind](recipe, identity, out), metric)


def _csv(recipe: Recipe, identity: str, out: Path | None) -> Any:
    from lightning_fabric.loggers.csv_logs import CSVLogger

    assert out is not None
    return CSVLogger(out, name="logs", version="csv", flush_logs_every_n_steps=1)


def _tensorboard(recipe: Recipe, identity: str, out: Path | None) -> Any:
    load_extra("tensorboard", "`train.logger` 'tensorboard' needs")
    from lightning_fabric.loggers.tensorboard import TensorBoardLogger

    assert out is not None
    logger = TensorBoardLogger(out, name="logs", version="tensorboard")
    for name, value in flat_settings(recipe).items():
        logger.experiment.add_text(name, str(value))
    return logger


class _Wandb:
    """Weights & Biases; ``WANDB_MODE=offline`` keeps it on this machine."""

    def __init__(self, recipe: Recipe, identity: str, out: Path | None) -> None:
        wandb = load_extra("wandb", "`train.logger` 'wandb' needs")
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        self.run = wandb.init(
            project=PROJECT,
            id=_short(identity),
            name=_title(recipe),
            resume="allow",
            dir=None if out is None else str(out),
            config=flat_settings(recipe),
        )

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        self.run.log(dict(metrics), step=step)

    def finalize(self, status: str) -> None:
        self.run.finish(exit_code=1 if status == "failed" else 0)


class _Mlflow:
    """MLflow, at ``MLFLOW_TRACKING_URI``; a resumed run goes on where it was."""

    STATES: ClassVar = {"success": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}
    TAG = "coopsheaf.identity"

    def __init__(self, recipe: Recipe, identity: str, out: Path | None) -> None:
        self.client = load_extra("mlflow", "`train.logger` 'mlflow' needs").MlflowClient()
        found = self.client.get_experiment_by_name(PROJECT)
        experiment = (
            self.client.create_experiment(PROJECT) if found is None else found.experiment_id
        )
        name = _short(identity)
        runs = self.client.search_runs([experiment], f"tags.`{self.TAG}` = '{name}'", max_results=1)
        if runs:
            self.id = runs[0].info.run_id
            self.client.update_run(self.id, status="RUNNING")
            history = self.client.get_metric_history(self.id, "loss")
            self.done = max((point.step for point in history), default=0)
        else:
            made = self.client.create_run(
                experiment, tags={self.TAG: name}, run_name=_title(recipe)
            )
            self.id, self.done = made.info.run_id, 0
            for key, value in flat_settings(recipe).items():
                self.client.log_param(self.id, key, value)

    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        if step is not None and step <= self.done:
            return  # it was told before the interruption, and is the same
        for name, value in metrics.items():
            self.client.log_metric(self.id, name, value, step=step)

    def finalize(self, status: str) -> None:
        self.client.set_terminated(self.id, self.STATES[status])


_MAKERS: dict[str, Any] = {
    "csv": _csv,
    "tensorboard": _tensorboard,
    "wandb": _Wandb,
    "mlflow": _Mlflow,
}


def flat_settings(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe by ``section.field``."""
    sections = recipe.to_mapping()
    return {
        f"{section}.{field}": value
        for section, fields in sections.items()
        for field, value in fields.items()
        if value != ""
    }


def _title(recipe: Recipe) -> str:
    return "-".join(filter(None, (recipe.model_name, recipe.data.name)))


def _short(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:16]
