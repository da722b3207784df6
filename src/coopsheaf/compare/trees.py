"""Boosted trees of scikit-learn, fitted and chosen as networks are.

They get the rows that networks get: trained on the training part, the number of trees chosen by the
metric on the validation part (the first best one, with the same patience), the test part read at
that number. scikit-learn is imported when something is fitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from coopsheaf.extras import load_extra
from coopsheaf.train.task import Task

CHUNK = 20  # iterations between two looks at the validation part
WIDE = 256  # columns; with more of them fewer bins take a fraction of the time and memory
ABSENT = -30.0  # the logit of a class that training has not


@dataclass(frozen=True)
class TreeSettings:
    """Settings of the trees; the first four are scikit-learn's, with its defaults.

    Args:
        learning_rate, max_leaf_nodes, min_samples_leaf, l2_regularization: see
            ``HistGradientBoostingClassifier``.
        iterations: at most so many.
        patience: stop after so many iterations without a better validation metric.
        class_weights: weigh classes by their inverse frequency among the training nodes.
        seed: of the bins.
    """

    learning_rate: float = 0.1
    max_leaf_nodes: int = 31
    min_samples_leaf: int = 20
    l2_regularization: float = 0.0
    iterations: int = 300
    patience: int = 50
    class_weights: bool = False
    seed: int = 43


TREE_SPACE: dict[str, tuple[Any, ...]] = {
    "learning_rate": (0.03, 0.1, 0.3),
    "max_leaf_nodes": (7, 15, 31),
    "min_samples_leaf": (5, 20, 50),
    "l2_regularization": (0.0, 1.0, 10.0),
}


@dataclass(frozen=True)
class TreeResult:
    """What came of trees: scores at the first iteration with the best validation score."""

    scores: dict[str, float]
    best: int
    iterations: int
    seconds: float
    interrupted: bool = False


def load_sklearn() -> Any:
    """scikit-learn's ensembles; where it is missing, the extra is named."""
    return load_extra("sklearn.ensemble", "boosted trees need")


def fit_trees(
    columns: Tensor,
    y: Tensor,
    parts: Mapping[str, Tensor],
    task: Task,
    settings: TreeSettings,
    *,
    outputs: int,
    weight: Tensor | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TreeResult:
    """Boost trees until the validation metric stands still.

    Args:
        columns: ``(n, F)``, NaN where a cell is missing.
        y: targets, as those of :class:`~coopsheaf.train.task.Task`.
        parts: the rows of train, val and test.
        task: whose metric decides.
        settings: of the trees.
        outputs: how many a model of this task has.
        weight: ``(n,)``, how much each training row counts.
        should_stop: asked every few iterations.
    """
    limits = load_extra("threadpoolctl", "boosted trees need").threadpool_limits
    began = time.perf_counter()
    rows = {part: columns[index].double().numpy() for part, index in parts.items()}
    targets = {part: y[index] for part, index in parts.items()}
    forest = _make_forest(task, targets["train"], outputs, settings, columns.shape[1])
    masses = None if weight is None else weight[parts["train"]].double().numpy()
    best, best_at, done = None, 0, 0
    with limits(limits=torch.get_num_threads(), user_api="openmp"):
        while done < settings.iterations and done - best_at < settings.patience:
            if should_stop():
                seconds = time.perf_counter() - began
                return TreeResult({}, best_at, done, seconds, interrupted=True)
            ahead = min(done + CHUNK, settings.iterations)
            forest.grow(rows["train"], masses, ahead)
            for logits in islice(forest.staged(rows["val"]), done, ahead):
                done += 1
                score = task.score(logits, targets["val"])
                if task.better(score, best):
                    best, best_at = score, done
                elif done - best_at >= settings.patience:
                    break
        at = best_at or done  # a score that is never defined chooses nothing
        scores = {
            part: task.score(next(islice(forest.staged(rows[part]), at - 1, None)), targets[part])
            for part in parts
        }
    return TreeResult(scores, at, done, time.perf_counter() - began)


class _Forest:
    """One ensemble for all outputs, or one for each; grown step by step."""

    def __init__(self, members: list[_Member], outputs: int) -> None:
        self.members, self.outputs = members, outputs

    def grow(
        self, x: NDArray[np.float64], weight: NDArray[np.float64] | None, iterations: int
    ) -> None:
        for member in self.members:
            member.grow(x, weight, iterations)

    def staged(self, x: NDArray[np.float64]) -> Iterator[Tensor]:
        """Logits ``(rows, outputs)`` after one iteration, after two, ..."""
        for step in zip(*(member.staged(x) for member in self.members), strict=True):
            yield torch.cat([torch.from_numpy(part) for part in step], dim=1)


class _Member:
    """Trees for classes, for one label, or for one number.

    Args:
        model: of scikit-learn; ``None`` where there is nothing to learn.
        y: targets of the training rows.
        rows: which of them are known.
        outputs: number of logits.
    """

    def __init__(
        self, model: Any, y: NDArray[Any], rows: NDArray[np.bool_], outputs: int = 1
    ) -> None:
        self.model, self.y, self.rows, self.outputs = model, y, rows, outputs
        self.iterations = 0

    def grow(
        self, x: NDArray[np.float64], weight: NDArray[np.float64] | None, iterations: int
    ) -> None:
        self.iterations = iterations
        if self.model is not None:
            self.model.set_params(max_iter=iterations)
            known = None if weight is None else weight[self.rows]
            self.model.fit(x[self.rows], self.y[self.rows], sample_weight=known)

    def staged(self, x: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        if self.model is None:  # one class alone, for certain; or nothing is known
            known = self.y[self.rows]
            sure = 0.0 if not len(known) else (-ABSENT if known[0] else ABSENT)
            for _ in range(self.iterations):
                yield np.full((len(x), 1), sure)
        elif not hasattr(self.model, "classes_"):
            for values in self.model.staged_predict(x):
                yield values.reshape(-1, 1)
        else:
            for values in self.model.staged_decision_function(x):
                yield self._as_outputs(values)

    def _as_outputs(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(rows, outputs)`` of what scikit-learn gives for the classes that training has."""
        if self.outputs == 1:
            return values.reshape(-1, 1)
        if values.ndim == 1 or values.shape[1] == 1:  # two of the classes
            values = np.stack([np.zeros(len(values)), values.reshape(-1)], axis=1)
        out = np.full((len(values), self.outputs), ABSENT)
        out[:, self.model.classes_] = values
        return out


def _make_forest(
    task: Task, y: Tensor, outputs: int, settings: TreeSettings, width: int
) -> _Forest:
    ensembles = load_sklearn()
    options: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "max_leaf_nodes": settings.max_leaf_nodes,
        "min_samples_leaf": settings.min_samples_leaf,
        "l2_regularization": settings.l2_regularization,
        "max_bins": 63 if width > WIDE else 255,
        "early_stopping": False,
        "warm_start": True,
        "random_state": settings.seed,
    }
    if task.kind == "regression":
        # Networks learn by absolute distances; whoever is measured by squares may learn by them.
        loss = "absolute_error" if task.metric == "mae" else "squared_error"
        options["loss"] = loss
        make = ensembles.HistGradientBoostingRegressor
    else:
        options["class_weight"] = "balanced" if settings.class_weights else None
        make = ensembles.HistGradientBoostingClassifier
    if task.kind in ("binary", "multiclass"):
        classes = y.reshape(len(y)).long().numpy()
        return _Forest([_Member(make(**options), classes, np.ones(len(y), bool), outputs)], outputs)
    members = []
    for column in y.reshape(len(y), -1).double().numpy().T:  # (outputs, rows)
        known = ~np.isnan(column)
        several = len(np.unique(column[known])) > 1
        trained = several or (task.kind == "regression" and known.any())
        members.append(_Member(make(**options) if trained else None, column, known))
    return _Forest(members, outputs)
