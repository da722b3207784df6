"""One process on the CPU without Lightning Fabric: the same numbers, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from test_architecture import loaded_by
from train.small import node_dataset, recipe

from coopsheaf.train import engine, run
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.engine import Plain, make_fabric, without_tiny_numbers
from coopsheaf.train.run import run_split

SETTINGS: list[dict[str, Any]] = [
    {},
    {"precision": "64"},
    {"clip": 0.1, "optimizer": "adamw", "weight_decay": 0.1, "map_weight_decay": 0.01},
    {"precision": "64", "clip": 0.1, "schedule": "plateau"},
    {"precision": "bf16"},
]


@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: ",".join(options) or "default")
def test_training_is_what_fabric_makes_of_it(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, dataset = recipe(epochs=5, **options), node_dataset()
    own, own_result = run_split(settings, dataset, device="cpu")
    assert isinstance(make_fabric(settings.train, "cpu", halves=True), Plain)
    made = engine._fabric(accelerator="cpu", devices=1, **engine._precision(settings.train, True))
    monkeypatch.setattr(run, "make_fabric", lambda *given, **options: made)
    theirs, their_result = run_split(settings, dataset, device="cpu")
    assert own_result.history == their_result.history
    want = theirs.model.state_dict()
    for name, value in own.model.state_dict().items():
        assert torch.equal(value, want[name]), name


def test_new_tensors_are_double_inside_a_double_network_only() -> None:
    class New(torch.nn.Module):
        def forward(self) -> torch.Tensor:
            return torch.zeros(1)

    plain = Plain("64")
    (wrapped,) = plain.setup(New())
    assert wrapped().dtype == torch.float64
    with plain.autocast():
        assert torch.zeros(1).dtype == torch.float64
    assert torch.zeros(1).dtype == torch.float32
    model = New()
    assert Plain().setup(model) == (model,)


def test_fabric_is_there_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_fabric(TrainConfig(), "cpu"), Plain)
    half = TrainConfig(precision="bf16")
    assert not isinstance(make_fabric(half, "cpu"), Plain)
    assert isinstance(make_fabric(half, "cpu", halves=True), Plain)
    compiled = TrainConfig(precision="bf16", compile=True)
    assert not isinstance(make_fabric(compiled, "cpu", halves=True), Plain)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    assert not engine._is_cpu("auto")
    assert engine._is_cpu("cpu")
    assert not engine._is_cpu("cuda")


def test_an_unknown_device_is_an_error() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        make_fabric(TrainConfig(), "nonsense")


def test_a_plain_run_imports_neither_fabric_nor_metrics() -> None:
    code = """
from train.small import node_dataset, recipe
from coopsheaf.train.run import run_split
for task in ("multiclass", "binary", "regression"):
    run_split(recipe(epochs=1), node_dataset(task=task), device="cpu")
"""
    tests = f"import sys; sys.path.insert(0, {str(__file__.rpartition('/train/')[0])!r})"
    modules = loaded_by(f"{tests}\n{code}")
    assert "coopsheaf.train.loop" in modules
    heavy = ("lightning", "lightning_fabric", "torchmetrics", "optuna", "matplotlib", "sklearn")
    assert not {name for name in modules if name.partition(".")[0] in heavy}


def halved(number: float) -> float:
    return torch.full((1,), number).mul(0.5).item()


def test_tiny_numbers_are_zero_in_training_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    ordinary = engine.Plain.backward
    monkeypatch.setattr(
        engine.Plain, "backward", lambda *given: (seen.append(halved(1e-40)), ordinary(*given))
    )
    assert halved(1e-40) > 0
    run_split(recipe(epochs=2), node_dataset(), device="cpu")
    assert seen == [0.0, 0.0]
    assert halved(1e-40) > 0


def test_who_has_asked_for_it_before_keeps_it() -> None:
    torch.set_flush_denormal(True)
    try:
        with without_tiny_numbers():
            assert halved(1e-40) == 0
        assert halved(1e-40) == 0
    finally:
        torch.set_flush_denormal(False)


def test_it_holds_for_every_thread_and_for_none_afterwards() -> None:
    """A thread of PyTorch's that has started before would not learn of it by itself."""
    tiny, threads = torch.full((200_000,), 1e-40), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert tiny.mul(0.5).count_nonzero() == tiny.numel()  # both threads have started
        with without_tiny_numbers():
            assert tiny.mul(0.5).count_nonzero() == 0
        assert tiny.mul(0.5).count_nonzero() == tiny.numel()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_whatever_the_default_dtype(dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)
    try:
        with without_tiny_numbers():
            pass
        assert torch.full((1,), 1e-40, dtype=torch.float32).mul(0.5).item() > 0
    finally:
        torch.set_default_dtype(torch.float32)
