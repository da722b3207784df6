"""The loop: selection, schedules, stopping, and resuming to the same end."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from train.small import graph_dataset, node_dataset, recipe

from coopsheaf.models.registry import make_settings
from coopsheaf.train.build import build_model
from coopsheaf.train.checkpoint import load_tensors
from coopsheaf.train.loop import FitResult, _make_optimizer, fit
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.run import Run, run_split
from coopsheaf.train.run_info import CheckpointError
from coopsheaf.train.task import Task
from coopsheaf.train.world import make_fabric
from coopsheaf.zoo.plain.network import PlainMLP


def same(a: tuple[Run, FitResult], b: tuple[Run, FitResult]) -> None:
    assert a[1].scores == b[1].scores
    assert a[1].best_epoch == b[1].best_epoch
    assert repr(a[1].history) == repr(b[1].history)  # every bit, and NaN where nothing is known
    theirs = b[0].model.state_dict()
    for name, tensor in a[0].model.state_dict().items():
        assert torch.equal(tensor, theirs[name]), name


def test_a_run_is_deterministic_given_its_seed() -> None:
    a, b = (run_split(recipe(), node_dataset()) for _ in range(2))
    same(a, b)
    other = run_split(recipe(seed=1), node_dataset())
    assert other[1].history != a[1].history


def test_it_learns() -> None:
    _, result = run_split(recipe(epochs=80), node_dataset(200))
    assert result.history[-1][2] > 0.7
    assert result.history[-1][1] < 0.6 * result.history[0][1]


def test_the_first_best_validation_epoch_is_kept_and_test_decides_nothing() -> None:
    run, result = run_split(recipe(epochs=30), node_dataset())
    vals = [row[3] for row in result.history]
    best = vals.index(max(vals))
    assert result.best_epoch == best + 1
    assert result.scores["test"] == result.history[best][4]
    # The model that comes back is the one of that epoch.
    feed = make_feed(node_dataset(), 0, run.recipe, torch.device("cpu"))
    with torch.no_grad():
        outputs = feed.outputs(run.model.eval())
    assert run.task.score(*outputs["val"]) == result.scores["val"]


def test_selection_by_loss_keeps_the_epoch_with_the_lowest_validation_loss() -> None:
    losses, dataset = [], node_dataset()
    settings = recipe(epochs=60, select="loss", lr=0.05)
    model, fabric = build_model(settings, dataset), make_fabric(settings.train)
    feed, task = make_feed(dataset, 0, settings, fabric.device), Task("multiclass", "accuracy")

    def watch(report: object) -> None:
        model.eval()
        with torch.no_grad():
            losses.append(task.loss(*feed.outputs(model)["val"]).item())
        model.train()

    result = fit(model, feed, task, settings.train, fabric=fabric, report=watch)
    assert result.best_epoch == losses.index(min(losses)) + 1
    vals = [row[3] for row in result.history]
    assert result.best_epoch != vals.index(max(vals)) + 1, "the test tells the two apart"
    assert result.scores["val"] == vals[result.best_epoch - 1]
    short = replace(settings.train, epochs=500, patience=5)
    again = fit(build_model(settings, dataset), feed, task, short, fabric=make_fabric(short))
    assert again.epochs == again.best_epoch + 5 < 500


def test_maps_can_have_a_weight_decay_of_their_own() -> None:
    """A decay that leaves nothing else to learn pulls the learners, and only them, to zero."""
    strong = recipe(epochs=60, lr=0.05, optimizer="adamw", map_weight_decay=15.0)
    run, _ = run_split(strong, node_dataset())
    learned = {p for learner in run.model.map_learners() for p in learner.parameters()}
    assert max(p.abs().max() for p in learned) < 0.15
    others = [p for p in run.model.parameters() if p not in learned]
    assert max(p.abs().max() for p in others) > 0.5
    without_maps = replace(strong, model_name="mlp", model=make_settings("mlp"))
    with pytest.raises(ValueError, match="`map_weight_decay` needs a network that learns maps"):
        run_split(without_maps, node_dataset())


@pytest.mark.parametrize("schedule", ["none", "cosine"])
def test_maps_can_have_a_learning_rate_of_their_own(schedule: str) -> None:
    """With a factor of 0 the learners stay as they were drawn, and everything else learns."""
    settings = recipe(epochs=8, schedule=schedule, map_lr_factor=0.0, map_weight_decay=0.1)
    before, (run, _) = build_model(settings, node_dataset()), run_split(settings, node_dataset())
    held = {name for name, _ in before.named_parameters() if "_learner." in name}
    after = dict(run.model.named_parameters())
    for name, start in before.named_parameters():
        assert torch.equal(after[name], start) == (name in held), name
    optimizer = _make_optimizer(before, replace(settings.train, map_lr_factor=0.25, lr=0.04))
    assert [group["lr"] for group in optimizer.param_groups] == [0.04, 0.01]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.0, 0.1]
    without_maps = replace(recipe(map_lr_factor=0.5), model_name="mlp", model=make_settings("mlp"))
    with pytest.raises(ValueError, match="`map_lr_factor` needs a network that learns maps"):
        run_split(without_maps, node_dataset())


@pytest.mark.parametrize("schedule", ["none", "cosine"])
def test_parameters_can_have_a_rate_and_a_decay_of_their_own(
    monkeypatch: pytest.MonkeyPatch, schedule: str
) -> None:
    """A rate of 0 stays 0 and leaves them where they began; the others learn."""

    def groups(model: PlainMLP) -> list[dict]:
        return [{"params": list(model.layers[0].parameters()), "lr": 0.0}]

    settings = replace(
        recipe(epochs=10, schedule=schedule), model_name="mlp", model=make_settings("mlp")
    )
    monkeypatch.setattr(PlainMLP, "parameter_groups", groups)
    before = build_model(settings, node_dataset())
    run, _ = run_split(settings, node_dataset())
    first, second = run.model.layers
    assert torch.equal(first.weight, before.layers[0].weight)
    assert not torch.equal(second.weight, before.layers[1].weight)


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_a_compiled_run_is_a_run() -> None:
    torch.compiler.reset()
    small = replace(
        recipe(epochs=4),
        model_name="mlp",
        model=make_settings("mlp", hidden_channels=4, dropout=0.0),
    )
    plain = run_split(small, node_dataset())[1]
    compiled = run_split(replace(small, train=replace(small.train, compile=True)), node_dataset())
    assert_close(torch.tensor(compiled[1].history), torch.tensor(plain.history))
    assert list(compiled[0].model.state_dict()) == list(
        build_model(small, node_dataset()).state_dict()
    )


def step_gradient(clip: float | None) -> float:
    """The norm of the gradient with which one step of training is made."""
    dataset, settings = node_dataset(), recipe(epochs=1, clip=clip)
    model, fabric = build_model(settings, dataset), make_fabric(settings.train, "cpu")
    feed = make_feed(dataset, 0, settings, fabric.device)
    fit(model, feed, Task("multiclass", "accuracy"), settings.train, fabric=fabric)
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item()  # fmt: skip


def test_gradients_are_clipped_to_the_norm_that_is_set() -> None:
    free = step_gradient(None)
    assert free > 0.2
    assert step_gradient(free / 8) == pytest.approx(free / 8, rel=1e-3)
    assert step_gradient(2 * free) == pytest.approx(free, rel=1e-5), "a short one stays as it is"


def test_clipping_changes_where_training_goes() -> None:
    """Adam forgets the size of a gradient, but not how sizes of different steps compare."""
    free, clipped = (
        run_split(recipe(clip=clip, optimizer="adamw"), node_dataset())[1] for clip in (None, 0.05)
    )
    assert free.history[0][1] == clipped.history[0][1]
    assert free.history[-1][1] != clipped.history[-1][1]


def test_patience_stops_early() -> None:
    _, result = run_split(recipe(epochs=500, patience=5), node_dataset())
    assert result.epochs == result.best_epoch + 5 < 500


def test_lower_is_better_for_errors() -> None:
    _, result = run_split(recipe(epochs=30), node_dataset(task="regression"))
    assert result.scores["val"] == min(row[3] for row in result.history)


@pytest.mark.parametrize("options", [{"schedule": "plateau", "plateau_patience": 2}, {"schedule": "cosine", "warmup": 3}, {"optimizer": "adamw", "weight_decay": 0.1}, {"optimizer": "sgd", "weight_decay": 0.1}, {"clip": 0.1}, {"precision": "64"}, {"precision": "bf16"}, {"class_weights": True}, {"eval_every": 5}, {"select": "loss"}, {"map_weight_decay": 0.1}, {"stop": "mean", "patience": 3}, {"schedule": "steps", "step_epochs": 3, "step_fall": 0.3}], ids=str)  # fmt: skip
def test_every_setting_trains_and_resumes_to_the_same_end(options: dict, tmp_path: Path) -> None:
    whole = run_split(recipe(**options), node_dataset(), out=tmp_path / "whole")
    asked = 0

    def now_and_then() -> bool:
        nonlocal asked
        asked += 1
        return asked % 4 == 0

    while True:
        pieces = run_split(
            recipe(**options),
            node_dataset(),
            out=tmp_path / "pieces",
            resume=True,
            should_stop=now_and_then,
        )
        if not pieces[1].interrupted:
            break
    assert asked > 8
    same(whole, pieces)


@pytest.mark.parametrize(("kind", "metric", "good"), [("multiclass", "accuracy", 0.1), ("regression", "mae", -0.1)])  # fmt: skip
def test_the_plateau_schedule_slows_down_where_scores_get_no_better(kind, metric, good) -> None:
    from coopsheaf.train.loop import _make_plateau

    config = recipe(schedule="plateau", plateau_patience=2, lr=0.08).train
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.08)
    plateau = _make_plateau(optimizer, Task(kind, metric), config)
    score, rates = 5.0, []
    for change in [good] * 5 + [-good] * 4:
        score += change
        plateau.step(score)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [0.08] * 7 + [0.04] * 2
    assert _make_plateau(optimizer, Task(kind, metric), recipe(schedule="cosine").train) is None


def test_the_plateau_schedule_stops_at_its_floor() -> None:
    from coopsheaf.train.loop import _make_plateau

    config = recipe(schedule="plateau", plateau_patience=1, lr=0.08, plateau_floor=0.03).train
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=config.lr)
    plateau = _make_plateau(optimizer, Task("multiclass", "accuracy"), config)
    assert plateau is not None
    rates = []
    for _ in range(9):
        plateau.step(0.5)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.08] * 2 + [0.04] * 2 + [0.03] * 5)


def test_a_floor_is_refused_where_it_does_nothing_and_counts_in_a_hash() -> None:
    with pytest.raises(ValueError, match="`plateau_floor` belongs to `schedule` plateau; got 'no"):
        run_split(recipe(plateau_floor=0.001), node_dataset())
    with pytest.raises(ValueError, match=r"`plateau_floor` must be above 0; got 0"):
        recipe(plateau_floor=0.0)
    with pytest.raises(ValueError, match=r"`plateau_floor` must be at most `lr`, 0.1; got 0.2"):
        run_split(recipe(schedule="plateau", lr=0.1, plateau_floor=0.2), node_dataset())
    plain = recipe(schedule="plateau")
    assert "plateau_floor" not in plain.to_mapping()["train"]
    assert plain.hash() != recipe(schedule="plateau", plateau_floor=1e-5).hash()


def test_the_plateau_schedule_follows_the_validation_score(tmp_path: Path) -> None:
    """Not the loss, which goes on falling while nothing gets better."""
    dataset, settings = node_dataset(), recipe(schedule="plateau", plateau_patience=1, epochs=14)
    model, fabric = build_model(settings, dataset), make_fabric(settings.train, "cpu")
    feed, path = make_feed(dataset, 0, settings, fabric.device), tmp_path / "state"
    task = Task("multiclass", "accuracy")
    result = fit(model, feed, task, settings.train, fabric=fabric, state_path=path)
    rate, best, bad = settings.train.lr, -math.inf, 0
    for _, _, _, val, _ in result.history:
        bad = 0 if val > best * (1 + 1e-4) or best < 0 else bad + 1
        best = max(best, val)
        if bad > 1:
            rate, bad = rate / 2, 0
    assert rate < settings.train.lr
    assert load_tensors(path)[1]["rates"] == pytest.approx([rate])


def test_a_resumed_run_remembers_how_long_it_has_been_no_better(tmp_path: Path) -> None:
    """Stopped after every epoch, it would otherwise never lose its patience."""
    settings = recipe(schedule="plateau", plateau_patience=1, epochs=14, lr=0.1)
    whole = run_split(settings, node_dataset())
    vals = [row[3] for row in whole[1].history]
    assert sum(b <= max(vals[: k + 1]) for k, b in enumerate(vals[1:])) > 3, "some are no better"
    for _ in range(15):
        pieces = run_split(
            settings, node_dataset(), out=tmp_path / "run", resume=True, should_stop=lambda: True
        )
    assert not pieces[1].interrupted
    same(whole, pieces)


def test_graph_batches_resume_to_the_same_end(tmp_path: Path) -> None:
    settings = recipe(epochs=6, batch_size=5)
    whole = run_split(settings, graph_dataset())
    stops = iter([False, False, True, False, True, *[False] * 99])
    for _ in range(3):
        pieces = run_split(
            settings,
            graph_dataset(),
            out=tmp_path / "run",
            resume=True,
            should_stop=lambda: next(stops),
        )
    assert not pieces[1].interrupted
    same(whole, pieces)


def test_the_cosine_schedule_warms_up_and_ends_at_zero() -> None:
    from coopsheaf.train.loop import _set_learning_rate

    config = recipe(schedule="cosine", warmup=5, epochs=250, lr=1e-3).train
    optimizer = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1e-3)
    rates = {}
    for epoch in (0, 1, 5, 250):
        _set_learning_rate(optimizer, config, epoch)
        rates[epoch] = optimizer.param_groups[0]["lr"]
    assert rates[0] == pytest.approx(1e-9)
    assert rates[1] == pytest.approx(2e-4)
    assert rates[5] == pytest.approx(1e-3)
    assert rates[250] == pytest.approx(0, abs=1e-12)


def test_the_steps_schedule_goes_down_by_the_same_amount() -> None:
    """As MixHop is trained: from 0.5, minus 0.005 after every 40 epochs."""
    from coopsheaf.train.loop import _set_learning_rate

    def rates(epochs: Sequence[int], **options: Any) -> list[float]:
        config = recipe(schedule="steps", lr=0.5, **options).train
        own = {"params": [torch.zeros(1, requires_grad=True)], "own_lr": 2.0}
        optimizer = torch.optim.SGD([{"params": [torch.zeros(1, requires_grad=True)]}, own], lr=0.5)
        found = []
        for epoch in epochs:
            _set_learning_rate(optimizer, config, epoch)
            first, second = (group["lr"] for group in optimizer.param_groups)
            assert second == pytest.approx(4 * first)  # a rate of one's own falls with the others
            found.append(first)
        return found

    assert rates([0, 39, 40, 79, 80, 399]) == pytest.approx([0.5, 0.5, 0.495, 0.495, 0.49, 0.455])
    own = {"step_epochs": 3, "step_fall": 0.4}
    assert rates([0, 2, 3, 6, 9, 99], **own) == pytest.approx([0.5, 0.5, 0.3, 0.1, 0.0, 0.0])


def test_the_steps_schedule_is_followed_in_training() -> None:
    """A rate of nothing from the third epoch on: scores move no more."""

    def history(**options: Any) -> list[list[float]]:
        settings = recipe(lr=0.1, **options)
        mlp = replace(settings, model_name="mlp", model=make_settings("mlp"))
        return run_split(mlp, node_dataset())[1].history

    stopped = history(schedule="steps", step_epochs=2, step_fall=1.0)
    constant = history()
    assert stopped[:2] == constant[:2]
    assert all(row[2:] == stopped[1][2:] for row in stopped[2:])
    assert constant[-1][2:] != constant[1][2:]


def test_settings_of_the_steps_schedule_are_refused_beside_another() -> None:
    with pytest.raises(ValueError, match="`step_fall` belongs to `schedule` steps; got 'none'"):
        run_split(recipe(step_fall=0.1), node_dataset())
    with pytest.raises(ValueError, match="`step_fall` must be above 0 and at most 1; got 2"):
        recipe(step_fall=2)
    with pytest.raises(ValueError, match="`step_epochs` must be an integer of at least 1; got 0"):
        recipe(step_epochs=0)


def test_reports_come_after_every_epoch() -> None:
    reports = []
    run_split(recipe(), node_dataset(), report=reports.append)
    assert [report.epoch for report in reports] == list(range(1, 13))
    assert reports[-1].epochs == 12
    assert reports[-1].seconds_left == 0
    assert all(math.isfinite(report.loss) for report in reports)


def test_a_loss_that_is_not_finite_stops_the_run_with_advice() -> None:
    with pytest.raises(ValueError, match=r"the loss became nan in epoch \d+; lower `train.lr`"):
        run_split(recipe(lr=1e30, epochs=50), node_dataset(task="regression"))


def test_a_state_of_other_settings_is_refused(tmp_path: Path) -> None:
    settings, dataset = recipe(), node_dataset()
    path = tmp_path / "state.safetensors"

    def go(identity: str, resume: bool) -> None:
        model = build_model(settings, dataset)
        feed = make_feed(dataset, 0, settings, torch.device("cpu"))
        fit(
            model, feed, Task("multiclass", "accuracy"), settings.train,
            fabric=make_fabric(settings.train, "cpu"), state_path=path, identity=identity, resume=resume,
        )  # fmt: skip

    go("a", False)
    with pytest.raises(CheckpointError, match="the state of another run"):
        go("b", True)


def test_class_weights_change_the_loss() -> None:
    dataset = node_dataset(task="binary")
    plain, weighted = (run_split(recipe(class_weights=flag), dataset)[1] for flag in (False, True))
    assert plain.history[0][1] != weighted.history[0][1]


def test_double_precision_reaches_the_model() -> None:
    run, _ = run_split(recipe(precision="64"), node_dataset())
    assert run.model.encoder.weight.dtype == torch.float64
    assert_close(run.model.epsilons[0], run.model.epsilons[0].double())


def test_patience_waits_for_an_evaluation() -> None:
    """Epochs that were not looked at are no reason to give up."""
    _, result = run_split(recipe(epochs=60, patience=5, eval_every=20), node_dataset())
    assert result.history[0][0] == 20
    assert result.epochs % 20 == 0
    assert math.isfinite(result.scores["val"])


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_seeds_have_a_range(seed: int) -> None:
    with pytest.raises(ValueError, match="`seed` must be"):
        recipe(seed=seed)
    run_split(recipe(epochs=1, seed=2**32 - 1), node_dataset())


def test_targets_of_any_size_are_learned() -> None:
    """Better than the mean of the targets, in the units of the targets."""
    dataset = node_dataset(200, task="regression")
    dataset = replace(dataset, y=200_000 + 50_000 * dataset.x[:, 0])
    _, result = run_split(recipe(epochs=60), dataset)
    test = dataset.test[0]
    guess = dataset.y[dataset.train[0]].mean()
    assert result.scores["test"] < 0.6 * (dataset.y[test] - guess).abs().mean()


def test_an_undefined_validation_metric_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody has looked beforehand."""
    monkeypatch.setattr("coopsheaf.train.run.check_splits", lambda *_: None)
    dataset = node_dataset(task="binary")
    one = dataset.val & (dataset.y == 1)
    with pytest.raises(ValueError, match="the validation metric, auroc, was never defined"):
        run_split(recipe(epochs=2), replace(dataset, val=one))


class UnevenSteps:
    """Two steps, of one sample and of four, whose losses are 1 and 6."""

    one_pass = True

    def steps(self, model: torch.nn.Module, epoch: int):
        for size, target in ((1, 1.0), (4, 6.0)):
            yield model(torch.zeros(size, 1)) * 1e-9, torch.full((size, 1), target)

    def outputs(self, model: torch.nn.Module, parts: tuple[str, ...]) -> dict:
        return {part: (torch.zeros(1, 1), torch.zeros(1, 1)) for part in parts}

    def train_targets(self) -> torch.Tensor:
        return torch.zeros(1, 1)


def test_the_loss_of_an_epoch_is_the_mean_over_its_samples() -> None:
    config = recipe(epochs=1).train
    task, model = Task("regression", "mae"), torch.nn.Linear(1, 1)
    result = fit(model, UnevenSteps(), task, config, fabric=make_fabric(config, "cpu"))
    assert result.history[0][1] == pytest.approx((1 + 4 * 6) / 5, rel=1e-5)


def test_the_time_of_all_pieces_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that strikes once every time somebody looks."""
    strikes = count()
    clock = SimpleNamespace(monotonic=lambda: float(next(strikes)))
    monkeypatch.setattr("coopsheaf.train.loop.time", clock)
    seconds = []
    for _ in range(4):
        pieces = run_split(
            recipe(epochs=3), node_dataset(), out=tmp_path, resume=True, should_stop=lambda: True
        )
        seconds.append(pieces[1].seconds)
    assert seconds[0] > 0
    assert [b - a for a, b in pairwise(seconds)] == pytest.approx([seconds[0]] * 2 + [1.0])
