"""Settings of a training run. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from coopsheaf.checks import check_choice, check_int
from coopsheaf.data.metrics import METRICS
from coopsheaf.train.thresholds import parse_rule

OPTIMIZERS = {
    "adam": "Adam",
    "adamw": "AdamW, decoupled weight decay",
    "sgd": "plain gradient descent",
}
SCHEDULES = {
    "none": "constant learning rate",
    "plateau": "halve when the validation metric stalls for `plateau_patience` epochs, down to "
    "`plateau_floor`",
    "cosine": "cosine to zero after `warmup` epochs of linear warm-up",
    "steps": "down by `step_fall` of `lr` after every `step_epochs` epochs, to zero at the lowest",
}
STEP_EPOCHS, STEP_FALL = 40, 0.01  # where the settings do not say
SELECTIONS = {"metric": "best validation metric", "loss": "lowest validation loss"}
STOPS = {
    "mean": "when the validation loss is above its mean over the `patience` evaluations before"
}
AUTO = "auto"
EVAL_PARTS = {"all": "training, validation and test part at every evaluation"}
PRECISIONS = {
    "32": "32-true",
    "64": "64-true",
    "bf16": "bf16-mixed",
}


LOGGERS = {
    "csv": "logs/csv/metrics.csv in the run's folder",
    "tensorboard": "logs/tensorboard in the run's folder",
    "wandb": "Weights & Biases",
    "mlflow": "MLflow, where MLFLOW_TRACKING_URI says",
}


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Args:
        optimizer: ``"adam"``, ``"adamw"`` or ``"sgd"`` (plain gradient descent, no momentum).
        lr: learning rate.
        weight_decay: weight decay.
        epochs: at most this many epochs.
        patience: stop after this many epochs without a better validation metric (or loss, see
            ``select``); 0 never stops.
        schedule: ``"none"``, ``"plateau"``, ``"cosine"`` or ``"steps"``.
        warmup: epochs of linear warm-up of the cosine schedule.
        plateau_patience: of the plateau schedule.
        clip: largest norm of the gradient.
        precision: ``"32"``, ``"64"`` or ``"bf16"``: on the CPU CSNN multiplies in bfloat16 and does
            everything else in single precision; elsewhere, and for other networks, autocast.
        batch_size: graphs per step; whole-graph tasks only.
        class_weights: weigh classes by their inverse frequency among the training nodes.
        eval_every: epochs between evaluations, or ``"auto"``: so many that evaluations take about a
            tenth of the time (:func:`~coopsheaf.train.evaluation.epochs_between`).
        seed: of initialisation, dropout and shuffling.
        select: what decides which epoch is kept and when patience ends: the validation metric if
            not set, or ``"loss"``, the validation loss.
        map_weight_decay: weight decay of what learns the maps of a sheaf; that of everything else
            if not set.
        map_lr_factor: learning rate of what learns the maps of a sheaf, in multiples of ``lr``; 1
            if not set.
        compile: run the network through ``torch.compile``: the first epoch takes minutes, the
            others are faster. Needs a C++ compiler.
        eval_parts: ``"all"`` scores the training and the test part at every evaluation. If not set,
            they are where they cost nothing, and otherwise (many graphs) once, at the epoch that
            validation has chosen.
        stop: ``"mean"`` stops as soon as the validation loss exceeds its mean over the ``patience``
            evaluations before, whatever the best one was; which epoch is kept is another matter
            (``select``). If not set, patience is counted from the best epoch.
        metric: what is measured, and on validation selects (see ``select``), by its name in
            :data:`~coopsheaf.data.metrics.METRICS`; that of the dataset if not set.
        logger: where else the curves go: ``"csv"``, ``"tensorboard"``, ``"wandb"`` or ``"mlflow"``.
            It changes nothing of the run, and is no part of its hash.
        threshold: of two classes, how likely the second must be to be predicted: a number, or how
            validation chooses it, ``"f1"``, ``"youden"``, ``"precision=0.9"`` or ``"cost=10:1"``
            (of a miss and of a false alarm); 0.5 if not set.
        calibrate: fit probabilities to frequencies on validation
            (:mod:`coopsheaf.train.decisions`); if not set, where ``class_weights`` are used.
        step_epochs: of the steps schedule, epochs between two falls; 40 if not set.
        step_fall: of the steps schedule, what the learning rate loses at each, in parts of ``lr``;
            0.01 if not set.
        plateau_floor: of the plateau schedule, the learning rate below which it halves no further;
            none if not set.
        processes: how many processes share every step; set by how the program was started
            (``torchrun --nproc-per-node N -m coopsheaf train ...``), not by hand.
    """

    optimizer: str = "adam"
    lr: float = 0.01
    weight_decay: float = 0.0
    epochs: int = 200
    patience: int = 0
    schedule: str = "none"
    warmup: int = 0
    plateau_patience: int = 10
    clip: float | None = None
    precision: str = "32"
    batch_size: int = 128
    class_weights: bool = False
    eval_every: int | str = 1
    seed: int = 43
    # Later additions are None by default: then the hashes of recorded settings stay what they are.
    select: str | None = None
    map_weight_decay: float | None = None
    compile: bool | None = None
    processes: int | None = None
    eval_parts: str | None = None
    stop: str | None = None
    metric: str | None = None
    threshold: float | str | None = None
    calibrate: bool | None = None

    map_lr_factor: float | None = None

    logger: str | None = None

    step_epochs: int | None = None
    step_fall: float | None = None
    plateau_floor: float | None = None

    def __post_init__(self) -> None:
        if self.logger is not None:
            check_choice("logger", self.logger, LOGGERS)
        check_choice("optimizer", self.optimizer, OPTIMIZERS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("precision", self.precision, PRECISIONS)
        for name, minimum in (
            ("epochs", 1),
            ("patience", 0),
            ("warmup", 0),
            ("plateau_patience", 1),
            ("batch_size", 1),
            ("seed", 0),
        ):
            if getattr(self, name) < minimum:
                raise ValueError(f"`{name}` must be at least {minimum}; got {getattr(self, name)}")
        if self.eval_every != AUTO and (isinstance(self.eval_every, str) or self.eval_every < 1):
            raise ValueError(
                f"`eval_every` must be at least 1, or {AUTO!r}; got {self.eval_every!r}"
            )
        if self.eval_parts is not None:
            check_choice("eval_parts", self.eval_parts, EVAL_PARTS)
        if self.metric is not None:
            check_choice("metric", self.metric, METRICS)
        if self.threshold is not None:
            parse_rule(self.threshold)
        if self.processes is not None:
            check_int("processes", self.processes, minimum=2)
        if self.step_epochs is not None:
            check_int("step_epochs", self.step_epochs, minimum=1)
        if self.step_fall is not None and not 0 < self.step_fall <= 1:
            raise ValueError(f"`step_fall` must be above 0 and at most 1; got {self.step_fall}")
        if self.plateau_floor is not None and not self.plateau_floor > 0:
            raise ValueError(f"`plateau_floor` must be above 0; got {self.plateau_floor}")
        if self.select is not None:
            check_choice("select", self.select, SELECTIONS)
        if self.stop is not None:
            check_choice("stop", self.stop, STOPS)
            if self.patience == 0:
                raise ValueError("`patience` must be at least 1 beside `stop`; got 0")
        if self.seed >= 2**32:
            raise ValueError(f"`seed` must be below 2**32; got {self.seed}")
        for name in ("lr", "weight_decay", "map_weight_decay", "map_lr_factor"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ValueError(f"`{name}` must be finite and not negative; got {value}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"`clip` must be positive; got {self.clip}")
