"""Advice names the learning rate only where it is to blame."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from train.small import node_dataset, recipe

from coopsheaf.data.dataset import NodeDataset
from coopsheaf.sheaves.kernels import use_kernel
from coopsheaf.train.engine import Plain
from coopsheaf.train.run import run_split
from coopsheaf.train.tally import Tally, finite_gradients
from coopsheaf.train.task import Task
from coopsheaf.train.trouble import chance_score, remark
from coopsheaf.train.world import World


def weighted(weight: float) -> NodeDataset:
    data = node_dataset()
    return replace(data, edge_weight=torch.full((data.num_edges,), weight))


@pytest.mark.parametrize("clip", [None, 1.0])
def test_huge_weights_are_not_the_learning_rates_fault(clip: float | None) -> None:
    with pytest.raises(ValueError, match="not finite before the first step") as error:
        run_split(recipe(epochs=3, clip=clip), weighted(3e38), device="cpu")
    assert "train.lr" not in str(error.value)


def test_a_learning_rate_that_is_to_blame_is_named() -> None:
    with pytest.raises(ValueError, match=r"lower `train.lr` \(it is 1e\+30\) or set `train.clip`"):
        run_split(recipe(epochs=8, lr=1e30), node_dataset(), device="cpu")


def test_a_norm_that_cannot_be_clipped_is_one_line() -> None:
    """Every gradient is finite, the root of the sum of their squares is not."""
    layer = torch.nn.Linear(4, 1)
    layer(torch.full((1, 4), 1e30)).sum().backward()
    assert finite_gradients(layer)
    optimizer, world = torch.optim.Adam(layer.parameters()), World(Plain())
    with pytest.raises(RuntimeError, match="non-finite"):
        world.fabric.clip_gradients(layer, optimizer, max_norm=1.0)
    tally = Tally(0, recipe().train)
    options = {"max_norm": 1.0, "error_if_nonfinite": False}
    tally.clipped(world.fabric.clip_gradients(layer, optimizer, **options))
    tally.add(torch.tensor(1.0), 1.0)
    message = "the norm of the gradient is not finite in epoch 1; scale very large"
    with pytest.raises(ValueError, match=message):
        tally.mean(world)


def test_chance_gets_a_word() -> None:
    data, task = node_dataset(), Task("multiclass", "accuracy")
    made = recipe(epochs=12, lr=1000.0)
    with use_kernel("factored"):  # with other masks it may be luckier
        run, result = run_split(made, data, device="cpu")
    word = remark(run.task, data, 0, result, made.train)
    assert word is not None
    assert "no better than chance" in word
    assert "lower `train.lr` (it is 1000)" in word
    good = replace(result, scores={"train": 1.0, "val": 1.0, "test": 1.0})
    assert remark(task, data, 0, good, made.train) is None
    # At chance, though the loss fell: the data may hold no more, and nothing is to blame.
    fell = replace(result, history=[[n, 2.0 / n, 0, 0, 0] for n in range(1, 9)])
    word = remark(run.task, data, 0, fell, made.train)
    assert word is not None
    assert "train.lr" not in word


def test_scores_of_chance() -> None:
    assert chance_score(Task("multiclass", "accuracy"), torch.tensor([0, 2, 2, 2])) == 0.75
    assert chance_score(Task("binary", "auroc"), torch.tensor([0, 1])) == 0.5
    assert chance_score(Task("regression", "mae"), torch.tensor([0.5])) != 0
