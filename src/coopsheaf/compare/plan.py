"""What is compared: data, folds, models and their trials, as plain values. Imports no PyTorch.

A comparison is a folder::

    compare.json    this plan
    records/        a record per model, trial and fold, as a bench makes them
    runs/           runs that have not ended; networks of those that have are not kept

All that a comparison says follows from the plan and the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from coopsheaf.files import locked, write_json
from coopsheaf.schema import (
    anything,
    brief_text,
    each,
    find_fault,
    keys,
    many,
    read_json,
    truth,
    whole,
)
from coopsheaf.schema import text as words

FORMAT = 1
FILE = "compare.json"
LARGEST_FILE = 1 << 24  # bytes


class ComparisonError(ValueError):
    """A folder that holds no comparison, or another one; one line."""


@dataclass(frozen=True)
class TrialPlan:
    """A setting: its hash in records, and what is not as in the default."""

    hash: str
    changed: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelPlan:
    """A contestant and its trials, the default settings first."""

    name: str
    version: int
    sees_graph: bool
    trials: tuple[TrialPlan, ...]


@dataclass(frozen=True)
class FoldPlan:
    """A fold: its number, its split and checksum in records, and the sizes of its parts."""

    number: int
    split: int
    checksum: str
    train: int
    val: int
    test: int


@dataclass(frozen=True)
class Plan:
    """What is compared.

    Args:
        dataset: its name.
        size: of the data in words.
        task, metric: of the data; the metric decides and is compared.
        over: what the folds are: ``"folds"``, ``"random splits"`` or ``"splits"``.
        seed: of folds and trials.
        train_seed: of all fits.
        folds: the parts.
        models: the contestants.
        remarks: what has to be said beside the numbers.
    """

    dataset: str
    size: str
    task: str
    metric: str
    over: str
    seed: int
    train_seed: int
    folds: tuple[FoldPlan, ...]
    models: tuple[ModelPlan, ...]
    remarks: tuple[str, ...] = ()

    @property
    def fits(self) -> int:
        """How many there are in all."""
        return len(self.folds) * sum(len(model.trials) for model in self.models)

    @property
    def test_per_train(self) -> float:
        """Test nodes per training node, over all folds."""
        return sum(fold.test for fold in self.folds) / sum(fold.train for fold in self.folds)

    def key(self, fold: FoldPlan, model: ModelPlan, trial: TrialPlan) -> tuple[Any, ...]:
        """The key of the record of a fit."""
        return (
            model.name,
            self.dataset,
            fold.split,
            self.train_seed,
            trial.hash,
            model.version,
            fold.checksum,
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain values; :func:`plan_from_plain` reads them back."""
        return {"format": FORMAT, **asdict(self)}


_TRIAL = keys({"hash": words, "changed": each(anything)})
_MODEL = keys({"name": words, "version": whole(), "sees_graph": truth, "trials": many(_TRIAL)})
_SIZES = dict.fromkeys(("number", "split", "train", "val", "test"), whole())
_FOLD = keys({"checksum": words, **_SIZES})
_PLAN = keys(
    {
        **dict.fromkeys(("dataset", "size", "task", "metric", "over"), words),
        **dict.fromkeys(("format", "seed", "train_seed"), whole()),
        "folds": many(_FOLD),
        "models": many(_MODEL),
        "remarks": many(words),
    }
)


def plan_from_plain(values: Any) -> Plan:
    """Read what :meth:`Plan.to_plain` gave; anybody may have written it."""
    fault = find_fault(values, _PLAN)
    if fault is not None:
        raise ValueError(fault)
    if values["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT}; got {values['format']}")
    if not values["folds"] or not values["models"]:
        raise ValueError("it must have folds and models; it has none")
    if not any(fold["train"] for fold in values["folds"]):
        raise ValueError("its folds must have something to train on; they have nothing")
    folds = tuple(_pick(FoldPlan, fold) for fold in values["folds"])
    models = tuple(
        _pick(ModelPlan, model | {"trials": tuple(_pick(TrialPlan, t) for t in model["trials"])})
        for model in values["models"]
    )
    remarks = tuple(values["remarks"])
    return _pick(Plan, values | {"folds": folds, "models": models, "remarks": remarks})


def _pick(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**{name: values[name] for name in kind.__dataclass_fields__})


def load_plan(folder: Path) -> Plan:
    """The plan of a comparison's folder."""
    path = folder / FILE
    try:
        return plan_from_plain(read_json(path, LARGEST_FILE))
    except FileNotFoundError:
        raise ComparisonError(f"{folder}: not a comparison (there is no {FILE} in it)") from None
    except (OSError, ValueError, RecursionError) as error:
        reason = brief_text(getattr(error, "strerror", None) or str(error), 500)
        raise ComparisonError(f"{path}: not a comparison of coopsheaf ({reason})") from None


def enter(folder: Path, plan: Plan) -> None:
    """Make a folder that of a comparison; models and trials may be others than before."""
    path = folder / FILE
    if folder.is_dir() and not path.exists() and any(folder.glob("[!.]*")):
        raise ComparisonError(
            f"{folder}: holds files and no comparison; choose another folder with --out"
        )
    with locked(path):
        if path.exists() and _same(load_plan(folder)) != _same(plan):
            raise ComparisonError(
                f"{folder}: holds another comparison (other data, folds, metric or seed); choose "
                "another folder with --out"
            )
        write_json(path, plan.to_plain())


def _same(plan: Plan) -> tuple[Any, ...]:
    """What fits must have in common to be compared."""
    return plan.dataset, plan.task, plan.metric, plan.over, plan.seed, plan.folds
