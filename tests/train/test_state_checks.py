"""The state of a fit that was stopped: what does not fit is refused before the next step."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from train.small import node_dataset, recipe

from coopsheaf.train.checkpoint import load_tensors, save_tensors
from coopsheaf.train.run import run_split
from coopsheaf.train.run_info import CheckpointError

Edit = Callable[[dict[str, Tensor], dict[str, Any]], None]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after its second epoch; read only."""
    folder, epochs = tmp_path_factory.mktemp("stopped") / "run", iter((False, True))
    run_split(recipe(epochs=4), node_dataset(), out=folder, should_stop=lambda: next(epochs))
    return folder


def first(tensors: dict[str, Tensor], start: str) -> str:
    return next(name for name in tensors if name.startswith(start) and tensors[name].dim() == 2)


def cut(start: str) -> Edit:
    def edit(tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        name = first(tensors, start)
        tensors[name] = tensors[name][:-1].clone()

    return edit


def drop(start: str) -> Edit:
    return lambda tensors, meta: tensors.__delitem__(first(tensors, start))


def put(place: str, value: Any) -> Edit:
    def edit(tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        *parents, last = place.split(".")
        for parent in parents:
            meta = meta[parent]
        meta[last] = value

    return edit


EDITS: dict[str, Edit] = {
    "shorter parameters": cut("model/"),
    "shorter best parameters": cut("best/"),
    "fewer best parameters": drop("best/"),
    "shorter moments": cut("optimizer/"),
    "fewer moments": drop("optimizer/"),
    "moments of nothing": lambda tensors, meta: tensors.update({"optimizer/999.step": torch.zeros(())}),
    "moments without a number": lambda tensors, meta: tensors.update({"optimizer/x.step": torch.zeros(())}),
    "whole moments": lambda tensors, meta: tensors.update({"optimizer/0.step": torch.tensor(1)}),
    "random state": lambda tensors, meta: tensors.update({"rng/0/cpu": torch.zeros(3, dtype=torch.uint8)}),
    "no random state": lambda tensors, meta: tensors.pop("rng/0/cpu"),
    "no state": lambda tensors, meta: meta.pop("state"),
    "state as a list": put("state", []),
    "epoch as text": put("state.epoch", "2"),
    "negative epoch": put("state.epoch", -1),
    "best epoch without end": put("state.best_epoch", 10**30),
    "best as a list": put("state.best", [1]),
    "history as text": put("state.history", "x"),
    "history of texts": put("state.history", [["a"]]),
    "seconds without end": put("state.seconds", float("inf")),
    "more than is known": put("state.magic", 1),
    "rates as text": put("rates", "x"),
    "two rates": put("rates", [0.1, 0.1]),
}  # fmt: skip


@pytest.mark.parametrize("case", EDITS)
def test_a_state_that_does_not_fit_is_refused(stopped: Path, tmp_path: Path, case: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    path = folder / "state.safetensors"
    tensors, meta = load_tensors(path)
    EDITS[case](tensors, meta)
    save_tensors(path, tensors, meta)
    with pytest.raises(CheckpointError, match=r"state\.safetensors: does not fit this model") as caught:  # fmt: skip
        run_split(recipe(epochs=4), node_dataset(), out=folder, resume=True)
    assert "\n" not in str(caught.value)


def test_one_that_fits_goes_on(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path / "run")
    _, result = run_split(recipe(epochs=4), node_dataset(), out=tmp_path / "run", resume=True)
    assert result.epochs == 4
