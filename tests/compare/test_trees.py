"""Boosted trees: chosen on validation, for every kind of task."""

from __future__ import annotations

import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor

from coopsheaf.compare.trees import ABSENT, TreeSettings, fit_trees
from coopsheaf.train.task import Task

N = 240
PARTS = {"train": torch.arange(0, 160), "val": torch.arange(160, 200), "test": torch.arange(200, N)}
FEW = TreeSettings(min_samples_leaf=5, iterations=60, patience=15)


def columns() -> Tensor:
    return torch.randn(N, 4, generator=torch.Generator().manual_seed(1))


def test_the_first_best_iteration_on_validation_is_kept() -> None:
    x = columns()
    noise = torch.randn(N, generator=torch.Generator().manual_seed(2))
    y = (x[:, 0] + 1.5 * noise > 0).long()
    found = fit_trees(x, y, PARTS, Task("binary", "auroc"), FEW, outputs=1)
    # The same by hand: all iterations at once, scored one by one.
    model = HistGradientBoostingClassifier(min_samples_leaf=5, max_iter=60, early_stopping=False, random_state=43)  # fmt: skip
    model.fit(x[PARTS["train"]].double().numpy(), y[PARTS["train"]].numpy())
    task = Task("binary", "auroc")
    by_part = {}
    for part in ("val", "test"):
        staged = model.staged_decision_function(x[PARTS[part]].double().numpy())
        by_part[part] = [
            task.score(torch.from_numpy(v).reshape(-1, 1), y[PARTS[part]]) for v in staged
        ]
    seen = by_part["val"][: found.iterations]
    best = seen.index(max(seen))
    assert found.best == best + 1
    assert found.iterations == min(60, found.best + 15)
    assert found.scores["val"] == pytest.approx(seen[best])
    assert found.scores["test"] == pytest.approx(by_part["test"][best])


def test_test_targets_choose_nothing() -> None:
    x = columns()
    y = (x[:, 0] > 0).long()
    other = y.clone()
    other[PARTS["test"]] = 1 - other[PARTS["test"]]
    first, second = (
        fit_trees(x, z, PARTS, Task("binary", "auroc"), FEW, outputs=1) for z in (y, other)
    )
    assert first.best == second.best
    assert first.scores["test"] == pytest.approx(1 - second.scores["test"])


def test_a_class_that_training_has_not_is_improbable() -> None:
    x = columns()
    y = (x[:, 0] > 0).long() * 2
    y[PARTS["test"][:3]] = 1  # one of three classes is in the test part alone
    found = fit_trees(x, y, PARTS, Task("multiclass", "accuracy"), FEW, outputs=3)
    assert 0.75 < found.scores["test"] <= 1 - 3 / 40
    assert ABSENT < -20


@pytest.mark.parametrize(
    ("kind", "metric", "y", "better_than"),
    [
        ("multiclass", "accuracy", lambda x: (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long(), 0.7),
        ("multilabel", "ap", lambda x: torch.stack([x[:, 0] > 0, x[:, 1] > 0], 1).float(), 0.8),
        ("regression", "mae", lambda x: x[:, 0] * 3, -1.0),
        ("regression", "mae", lambda x: torch.stack([x[:, 0], x[:, 1]], 1), -0.5),
    ],
)  # fmt: skip
def test_every_kind_of_task(kind: str, metric: str, y: object, better_than: float) -> None:
    targets = y(columns())  # type: ignore[operator]
    if targets.is_floating_point():
        targets[::7] = torch.nan  # unknown
    outputs = 3 if kind == "multiclass" else targets.reshape(N, -1).shape[1]
    found = fit_trees(columns(), targets, PARTS, Task(kind, metric), FEW, outputs=outputs)
    sign = -1 if kind == "regression" else 1
    assert sign * found.scores["test"] > better_than


def test_a_label_that_is_always_there() -> None:
    x = columns()
    y = torch.stack([(x[:, 0] > 0).float(), torch.ones(N)], 1)
    y[PARTS["test"], 1] = (x[PARTS["test"], 1] > 0).float()
    found = fit_trees(x, y, PARTS, Task("multilabel", "ap"), FEW, outputs=2)
    assert found.scores["val"] > 0.9


def test_it_can_be_stopped() -> None:
    x = columns()
    found = fit_trees(x, (x[:, 0] > 0).long(), PARTS, Task("binary", "auroc"), FEW, outputs=1, should_stop=lambda: True)  # fmt: skip
    assert found.interrupted
    assert found.iterations == 0


def test_rows_without_weight_teach_nothing() -> None:
    x = columns()
    y = (x[:, 0] > 0).long()
    weight = torch.ones(N)
    y[:80], weight[:80] = 1 - y[:80], 0.0  # half of the training rows are wrong, and do not count
    found = fit_trees(x, y, PARTS, Task("binary", "auroc"), FEW, outputs=1, weight=weight)
    assert found.scores["test"] > 0.95
    assert fit_trees(x, y, PARTS, Task("binary", "auroc"), FEW, outputs=1).scores["test"] < 0.9
