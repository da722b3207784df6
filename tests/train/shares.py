"""What one process of several does, in a module that a new process can import by its name."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from train.small import graph_dataset, node_dataset, recipe

from coopsheaf.models.registry import make_settings
from coopsheaf.train.batches import BatchConfig
from coopsheaf.train.checkpoint import save_tensors
from coopsheaf.train.launch import FirstFailed, find_launch
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split
from coopsheaf.train.world import ProcessLost, World, make_fabric

EXACT = make_settings(
    "csnn", hidden_channels=4, num_layers=2, stalk_dim=2, dropout=0.0, norm="layer"
)


def settings(kind: str, *, processes: int = 1, dropout: bool = False, **train: object) -> Recipe:
    """Settings in which a step of two processes is one of a single process with twice the batch."""
    base = recipe(**{"precision": "64", "epochs": 6, "eval_every": 2, **train})
    if not dropout:
        base = replace(base, model=EXACT)
    size = 4 // processes
    if kind == "graphs":
        return replace(base, train=replace(base.train, batch_size=size))
    if kind == "neighbours":  # all of them
        return replace(base, batch=BatchConfig("neighbours", size=size, fanouts="-1"))
    options = {"parts": 12} if kind == "clusters" else {}
    return replace(base, batch=BatchConfig(kind, size=size, halo=True, **options))


def train_share(folder: Path, name: str, kind: str, options: dict[str, object]) -> None:
    """One process of a run; it leaves what it has at the end."""
    data = graph_dataset() if kind == "graphs" else node_dataset(n=60)
    stops = int(options.pop("stops", 0))  # type: ignore[call-overload]
    calls = iter(range(1, 1000))
    run, result = run_split(
        settings(kind, processes=find_launch().size, **options),  # type: ignore[arg-type]
        data,
        out=folder / name,
        resume=True,
        device="cpu",
        should_stop=lambda: find_launch().rank == 1 and next(calls) == stops,
    )
    rank = find_launch().rank
    save_tensors(folder / f"{name}-{rank}.safetensors", run.model.state_dict(), {})
    history = {"history": result.history, "scores": result.scores, "epochs": result.epochs}
    (folder / f"{name}-{rank}.json").write_text(json.dumps(history))


def refuse(folder: Path, processes: int | None, batch: bool, message: str) -> None:
    base = settings("nodes" if batch else "graphs", processes=2)
    base = replace(base, train=replace(base.train, processes=processes))
    with pytest.raises(ValueError, match=message):
        run_split(base, node_dataset(), out=folder / "run", device="cpu")


def fail_first(folder: Path) -> None:
    """The folder holds another run: the first process says so, the others just end."""
    error: type[Exception] = ValueError if find_launch().rank == 0 else FirstFailed
    with pytest.raises(error):
        run_split(settings("nodes", processes=2), node_dataset(), out=folder / "run", device="cpu")


def agree(folder: Path) -> None:
    world = World(make_fabric(recipe().train, "cpu"))
    rank = world.rank
    assert world.sum(rank + 1, 0.5) == [3.0, 1.0]
    assert world.any(rank == 1, False) == [True, False]
    assert world.gather(f"process {rank}") == ["process 0", "process 1"]
    assert world.by_first(lambda: f"from {rank}") == "from 0"
    model = torch.nn.BatchNorm1d(2)
    model(torch.full((4, 2), float(rank)) + torch.randn(4, 2))
    world.align(model)
    mean = model.running_mean
    assert mean is not None
    assert torch.equal(*world.gather(mean))
    # 3 samples here and 1 there: the mean of the scaled means is the mean of all four.
    mine = torch.tensor([[1.0, 2.0, 3.0], [10.0, 0.0, 0.0]][rank])[: 3 - 2 * rank]
    scaled = world.balance(mine.mean(), float(len(mine)))
    assert math.isclose(world.sum(scaled.item())[0] / 2, 4.0)
    share = {"val": (torch.full((rank + 1, 1), rank), torch.zeros(rank + 1))}
    if rank == 0:
        share["test"] = (torch.ones(2, 1), torch.ones(2))
    joined = world.join(share, ("val", "test"))
    assert joined["val"][0].flatten().tolist() == [0, 1, 1]
    assert joined["test"][1].tolist() == [1, 1]


def train_until_lost(folder: Path) -> None:
    """Epochs without end; whoever is left writes down what it is told."""
    rank = find_launch().rank
    try:
        run_split(
            settings("nodes", processes=2, epochs=100_000),
            node_dataset(n=60),
            out=folder / "run",
            device="cpu",
            checkpoint_seconds=0,
        )
    except ProcessLost as error:
        (folder / f"lost-{rank}").write_text(str(error))
    os._exit(0)
