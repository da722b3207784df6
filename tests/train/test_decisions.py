"""Probabilities that are frequencies again, and decisions that a run keeps."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from train.small import graph_dataset, link_dataset, node_dataset, recipe

from coopsheaf.predictions import node_outputs, predict, score
from coopsheaf.train.beforehand import check_splits
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.decisions import Decision, decide, fit_calibration, read_decision
from coopsheaf.train.run import CheckpointError, load_run, run_split
from coopsheaf.train.task import Task

BINARY, SEVERAL = Task("binary", "auroc"), Task("multiclass", "accuracy")


def draw_binary(n: int = 20_000, seed: int = 0) -> tuple[Tensor, Tensor]:
    """True log odds, and classes drawn from them; few are of the second class."""
    rng = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(n, generator=rng).double() - 4
    return z, (torch.rand(n, generator=rng) < z.sigmoid()).long()


def test_what_weights_and_haste_did_to_two_classes_is_undone() -> None:
    """Logits that are shifted by log 30 and twice too steep: z = (z' - b) / a."""
    z, y = draw_binary()
    seen = 2 * (z + math.log(30))[:, None]
    a, (b,) = fit_calibration(BINARY, seen, y)
    assert a == pytest.approx(0.5, rel=0.05)
    assert b == pytest.approx(-math.log(30), rel=0.05)
    before = Task("binary", "ece").score(seen, y)
    after = Task("binary", "ece").score(Decision(a, (b,)).adjust(seen), y)
    assert before > 0.2
    assert after < 0.01


def test_of_several_classes_weights_are_taken_back_and_a_temperature_is_fitted() -> None:
    rng = torch.Generator().manual_seed(0)
    z = 1.5 * torch.randn(20_000, 3, generator=rng).double() + torch.tensor([2.0, 0.0, -2.0])
    y = torch.multinomial(z.softmax(-1), 1, generator=rng).squeeze(1)
    weight = SEVERAL.class_weight(y)
    # A temperature before the weights, as a network that is too sure has it: z' = 3 z + log w.
    a, shift = fit_calibration(SEVERAL, 3 * z + weight.double().log(), y, weight)
    assert a == pytest.approx(1 / 3, rel=0.05)
    assert shift == pytest.approx((-a * weight.double().log()).tolist())
    found = Decision(a, shift).adjust(3 * z + weight.double().log())
    assert Task("multiclass", "ece").score(found, y) < 0.02
    a, shift = fit_calibration(SEVERAL, 2 * z, y)
    assert (a, shift) == (pytest.approx(0.5, rel=0.05), ())


def test_labels_have_one_temperature() -> None:
    z, y = draw_binary()
    labels = torch.stack([y.double(), y.double()], dim=1)
    labels[:100, 1] = math.nan
    a, shift = fit_calibration(Task("multilabel", "ap"), torch.stack([z, z], 1) * 4, labels)
    assert (a, shift) == (pytest.approx(0.25, rel=0.05), ())


@pytest.mark.parametrize("sign", [1, -1])
def test_perfect_order_and_its_opposite_stay_finite_and_in_order(sign: int) -> None:
    """What is separated has no steepest slope; what is the wrong way round is not turned."""
    z = sign * torch.tensor([-2.0, -1.0, 1.0, 2.0]).double()[:, None]
    a, (b,) = fit_calibration(BINARY, z, torch.tensor([0, 0, 1, 1]))
    assert 0 < a <= 100
    assert math.isfinite(b)
    assert (a > 0.5) == (sign > 0)


def test_calibration_is_on_by_default_where_classes_are_weighed() -> None:
    z, y = draw_binary(2000)
    logits = (z + math.log(30))[:, None]
    assert decide(BINARY, TrainConfig(), logits, y, None) == Decision()
    assert decide(BINARY, TrainConfig(class_weights=True), logits, y, None).calibrated
    off = TrainConfig(class_weights=True, calibrate=False)
    assert decide(BINARY, off, logits, y, None) == Decision()
    assert decide(BINARY, TrainConfig(calibrate=True), logits, y, None).calibrated


def test_the_threshold_is_one_of_calibrated_probabilities() -> None:
    z, y = draw_binary(2000)
    logits = (z + math.log(30))[:, None]
    config = TrainConfig(class_weights=True, threshold="f1")
    found = decide(BINARY, config, logits, y, None)
    best = BINARY.summary(found.adjust(logits), y, found.threshold)["f1"]
    for other in torch.linspace(0.01, 0.99, 99).tolist():
        assert BINARY.summary(found.adjust(logits), y, other)["f1"] <= best + 1e-12
    assert best > BINARY.summary(found.adjust(logits), y, 0.5)["f1"]


def test_decisions_are_read_back() -> None:
    found = Decision(1.5, (-2.0,), 0.25, "f1", ("a note",))
    assert read_decision(json.loads(json.dumps(found.to_plain()))) == found
    assert read_decision(None) == Decision()


def test_a_run_keeps_and_applies_its_decisions(tmp_path: Path) -> None:
    dataset = replace(node_dataset(120, task="binary"), class_names=("no", "yes"))
    settings = recipe(class_weights=True, threshold="precision=0.8", epochs=15)
    run, _ = run_split(settings, dataset, out=tmp_path / "run")
    plain, _ = run_split(recipe(class_weights=True, calibrate=False, epochs=15), dataset)
    for name, tensor in run.model.state_dict().items():
        assert torch.equal(tensor, plain.model.state_dict()[name]), "decisions change no weights"
    again = load_run(tmp_path / "run")
    assert again.notes == ()
    decision = again.decision
    assert decision == run.decision
    assert decision.rule == "precision=0.8"
    logits = node_outputs(again, dataset).double()
    p = (decision.scale * logits[:, 0] + decision.shift[0]).sigmoid()
    found = predict(again, dataset)
    assert found.probabilities is not None
    assert torch.allclose(found.probabilities[:, 1], p)
    assert list(found.values) == ["yes" if share > decision.threshold else "no" for share in p]
    assert list(found.values) != list(predict(plain, dataset).values)
    # What is stored is what comes out again.
    test = dataset.test[0]
    assert again.summary["test"].metrics == pytest.approx(run.summary["test"].metrics, nan_ok=True)
    assert score(again, dataset, test).value == pytest.approx(
        again.summary["test"].metrics["auroc"]
    )
    predicted = torch.tensor([value == "yes" for value in found.values])[test].long()
    counts = [[int(((dataset.y[test] == i) & (predicted == j)).sum()) for j in (0, 1)] for i in (0, 1)]  # fmt: skip
    assert again.summary["test"].confusion == counts


def test_runs_that_do_not_say_decide_as_before(tmp_path: Path) -> None:
    dataset = node_dataset(80, task="binary")
    run, _ = run_split(recipe(), dataset, out=tmp_path / "run")
    assert "decision" not in run.info
    before = predict(run, dataset).to_csv()
    file = tmp_path / "run" / "run.json"
    info = json.loads(file.read_text())
    del info["summary"]
    file.write_text(json.dumps(info))
    old = load_run(tmp_path / "run")
    assert old.summary == {}
    assert predict(old, dataset).to_csv() == before
    logits = node_outputs(old, dataset)
    assert torch.equal(old.classes(logits), old.task.classes(logits))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decision": {"threshold": 0.3}}, "it lacks 'scale'"),
        ({"decision": {"threshold": 1.5}}, "decision.threshold must be a number between 0 and 1"),
        ({"decision": {"scale": -1.0}}, "decision.scale must be a number from 0.001 to 1000"),
        ({"decision": {"shift": [1.0, 2.0]}}, "decision.shift must be 1 numbers"),
        ({"decision": {"shift": [math.inf]}}, "decision.shift"),
        ({"decision": 3}, "decision must be an object"),
        ({"summary": {"test": {"metrics": {"x": 1.0}, "confusion": []}}}, "'x', which is no metric"),
        ({"summary": {"val": {"metrics": {}, "confusion": [[1]]}}}, "2 rows of 2 counts, or none"),
        ({"summary": {"val": {"metrics": {}, "confusion": [[-1]]}}}, "summary.val.confusion"),
    ],
)  # fmt: skip
def test_decisions_of_strangers_are_checked(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    run_split(recipe(class_weights=True, epochs=2), node_dataset(task="binary"), out=tmp_path / "r")
    file = tmp_path / "r" / "run.json"
    info = json.loads(file.read_text())
    for key, value in change.items():
        whole = "lacks" in message or not isinstance(value, dict) or key == "summary"
        info[key] = value if whole else info[key] | value
    file.write_text(json.dumps(info))
    with pytest.raises(CheckpointError, match=r"run\.json: not a") as caught:
        load_run(tmp_path / "r")
    assert message in str(caught.value) or "not readable JSON" in str(caught.value)


def test_every_task_has_its_summary() -> None:
    for dataset in (node_dataset(task="regression"), link_dataset(), graph_dataset()):
        run, result = run_split(recipe(epochs=2), dataset)  # type: ignore[arg-type]
        assert run.summary["val"].confusion == []
        assert run.summary["val"].metrics[run.task.metric] == pytest.approx(result.scores["val"])
        assert run.summary["test"].metrics[run.task.metric] == pytest.approx(result.scores["test"])


def test_what_does_not_fit_is_refused_beforehand() -> None:
    several = node_dataset()
    with pytest.raises(ValueError, match=r"`train.threshold` is for two classes, .*'multiclass'"):
        check_splits(TrainConfig(threshold="f1"), several, [0])
    numbers = node_dataset(task="regression")
    with pytest.raises(ValueError, match=r"`train.calibrate` is for probabilities .*'regression'"):
        check_splits(TrainConfig(calibrate=True), numbers, [0])
    two = node_dataset(task="binary")
    alike = replace(two, val=two.val & (two.y == 1), metric="accuracy")
    for settings, name in (
        ({"threshold": "f1"}, "threshold` 'f1'"),
        ({"calibrate": True}, "calib"),
    ):
        with pytest.raises(ValueError, match=rf"`train.{name}.* must have two classes; on split 0"):
            check_splits(TrainConfig(**settings), alike, [0])  # type: ignore[arg-type]
    check_splits(TrainConfig(threshold=0.3), alike, [0])
    # Nobody asked for it by name, so it is left out and said.
    run, _ = run_split(recipe(class_weights=True, epochs=2), alike)
    assert not run.decision.calibrated
    assert run.decision.notes == (
        "probabilities are not calibrated: validation has one class only",
    )
