"""When a fit ends: counted from the best epoch, or by the mean of the losses before."""

from __future__ import annotations

import pytest
from train.small import node_dataset, recipe

from coopsheaf.train.config import TrainConfig
from coopsheaf.train.patience import out_of_patience, remember_loss
from coopsheaf.train.run import run_split


def stops_after(losses: list[float], patience: int) -> int | None:
    """The rule as papers write it: of epoch t, loss[t] > mean(loss[t - patience : t])."""
    for t in range(patience, len(losses)):
        if losses[t] > sum(losses[t - patience : t]) / patience:
            return t + 1
    return None


@pytest.mark.parametrize("patience", [1, 2, 4])
def test_the_mean_of_the_losses_before_decides(patience: int) -> None:
    config = TrainConfig(stop="mean", patience=patience)
    losses = [5.0, 6.0, 3.0, 2.0, 1.5, 1.4, 1.6, 1.5, 1.9, 3.0]
    seen: list[float] = []
    for epoch, loss in enumerate(losses, start=1):
        seen = remember_loss(config, seen, loss)
        assert len(seen) <= patience + 1
        if out_of_patience(config, epoch, 1, seen):
            break
    assert epoch == stops_after(losses, patience)


def test_a_loss_that_stays_where_it_is_goes_on() -> None:
    config = TrainConfig(stop="mean", patience=2)
    assert not out_of_patience(config, 3, 1, [0.5, 0.5, 0.5])
    assert out_of_patience(config, 3, 1, [0.5, 0.5, 0.500001])
    assert not out_of_patience(config, 0, 0, [])


def test_without_the_rule_the_best_epoch_is_counted_from() -> None:
    config = TrainConfig(patience=5)
    assert remember_loss(config, [], 1.0) == []
    assert [out_of_patience(config, last, 10) for last in (14, 15)] == [False, True]
    assert not out_of_patience(TrainConfig(), 10_000, 1)


def test_a_run_stops_by_the_mean_and_keeps_the_best_epoch() -> None:
    options = {"epochs": 400, "patience": 10, "select": "loss"}
    _, by_mean = run_split(recipe(**options, stop="mean"), node_dataset())
    assert by_mean.epochs < 400
    _, longer = run_split(recipe(epochs=by_mean.epochs, select="loss"), node_dataset())
    assert by_mean.best_epoch == longer.best_epoch


def test_it_needs_a_length() -> None:
    with pytest.raises(ValueError, match="`patience` must be at least 1 beside `stop`; got 0"):
        TrainConfig(stop="mean")
    with pytest.raises(ValueError, match="`stop` must be"):
        TrainConfig(stop="median", patience=3)
