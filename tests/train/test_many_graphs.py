"""Runs on many graphs with places and features of edges: trained, kept, loaded, measured."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from train.small import graph_dataset

from coopsheaf.data.dataset import GraphDataset, Processing
from coopsheaf.data.encodings import encode_graphs
from coopsheaf.models.registry import make_settings
from coopsheaf.predictions import graph_outputs
from coopsheaf.train.build import build_model
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.loop import evaluate
from coopsheaf.train.make_feed import make_feed
from coopsheaf.train.recipe import DataConfig, Recipe
from coopsheaf.train.run import load_run, run_split
from coopsheaf.train.run_info import CheckpointError
from coopsheaf.train.task import Task

CPU = torch.device("cpu")


def dataset(pe: str | None = "rwse", *, edges: int = 3) -> GraphDataset:
    """Small graphs, both ways, with places and features of edges."""
    plain = graph_dataset()
    for number, graph in enumerate(plain.graphs):
        graph.edge_index = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
        rng = torch.Generator().manual_seed(number)
        if edges:
            graph.edge_attr = torch.randn(graph.num_edges, edges, generator=rng)
    if pe is not None:
        places = encode_graphs(plain.graphs, pe, "small").split([g.num_nodes for g in plain.graphs])
        for graph, part in zip(plain.graphs, places, strict=True):
            graph.pe = part
    return replace(plain, processing=Processing(pe=pe))


def recipe(name: str, pe: str | None = "rwse", **model: Any) -> Recipe:
    kind = {} if pe is None else {"pe_kind": pe, "pe_width": 4}
    settings = make_settings(name, hidden_channels=8, num_layers=2, **(kind | model))
    train = TrainConfig(epochs=3, lr=0.01, batch_size=5, clip=1.0, schedule="cosine", warmup=1)
    return Recipe(name, settings, DataConfig(pe=pe), train)


@pytest.mark.parametrize("name", ["gcn-lrgb", "gine", "gatedgcn", "gps", "csnn"])
@pytest.mark.parametrize("pe", ["rwse", "lappe"])
def test_a_run_is_trained_kept_and_loaded(name: str, pe: str, tmp_path: Path) -> None:
    edges = 0 if name == "gcn-lrgb" else 3
    data = dataset(pe, edges=edges)
    run, result = run_split(recipe(name, pe), data, out=tmp_path / "run")
    assert result.epochs == 3
    again = load_run(tmp_path / "run")
    assert (again.info["pe_channels"], again.info["edge_channels"]) == (20, edges)
    assert again.info["processing"]["pe"] == pe
    assert torch.equal(graph_outputs(again, data), graph_outputs(run, data))
    with pytest.raises(CheckpointError, match=r"the data has 0 places; .* trained with 20"):
        graph_outputs(again, dataset(None, edges=edges))


def test_networks_without_places_and_edges_work_as_before() -> None:
    run, _ = run_split(recipe("csnn", None), dataset(None, edges=0))
    assert "pe_channels" not in run.info


def test_places_that_a_network_cannot_use_or_reads_otherwise_are_refused() -> None:
    with pytest.raises(ValueError, match=r"gcn cannot use the places of nodes \(20 columns\)"):
        run_split(replace(recipe("gcn", None), data=DataConfig(pe="rwse")), dataset(edges=0))
    with pytest.raises(ValueError, match=r"`model.pe_kind` 'lappe' reads places of"):
        run_split(replace(recipe("gps", "lappe"), data=DataConfig(pe="rwse")), dataset("rwse"))
    with pytest.raises(ValueError, match="`pe_channels` must be 0 without an encoding"):
        build_model(recipe("gps", None), dataset("rwse"))


@pytest.mark.parametrize(("task", "metric"), [("multilabel", "ap"), ("regression", "mae")])
def test_scores_do_not_depend_on_the_size_of_batches(task: str, metric: str) -> None:
    """They are of the whole part, not means over batches."""
    data = replace(dataset(), task=task, metric=metric)
    setting = recipe("gine")
    model = build_model(setting, data).eval()
    scores = []
    for size in (1, 3, 7, 100):
        train = replace(setting.train, batch_size=size)
        feed = make_feed(data, 0, replace(setting, train=train), CPU)
        scores.append(evaluate(model, feed, Task(task, metric)))
    for part in ("train", "val", "test"):
        assert [score[part] for score in scores] == pytest.approx([scores[0][part]] * 4, rel=1e-5)


def slow_ap(scores: Tensor, labels: Tensor) -> float:
    """Precision at every true one, walking down the ranking; no ties."""
    order = scores.argsort(descending=True)
    hits, total = 0, 0.0
    for rank, place in enumerate(order.tolist(), 1):
        if labels[place] == 1:
            hits += 1
            total += hits / rank
    return total / hits


def test_average_precision_skips_labels_that_are_all_one_way_and_unknown_ones() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = torch.randn(40, 5, generator=rng, dtype=torch.float64)
    y = (torch.rand(40, 5, generator=rng) < 0.4).float()
    y[:, 1], y[:, 3] = 0.0, 1.0  # nobody, and everybody
    y[:10, 2] = math.nan
    y[y[:, 4] == 0, 4] = math.nan  # of those that are known all are true
    task = Task("multilabel", "ap")
    want = (slow_ap(logits[:, 0], y[:, 0]) + slow_ap(logits[10:, 2], y[10:, 2])) / 2
    assert task.score(logits, y) == pytest.approx(want, abs=1e-6)
    constant = torch.zeros(40, 1, dtype=torch.float64)
    rate = y[:, :1].mean().item()
    assert task.score(constant, y[:, :1]) == pytest.approx(rate, abs=1e-6)


def test_the_loss_of_labels_leaves_unknown_ones_out() -> None:
    logits, y = torch.randn(6, 3), torch.tensor([[0.0, 1.0, math.nan]] * 6)
    want = torch.nn.functional.binary_cross_entropy_with_logits(logits[:, :2], y[:, :2])
    torch.testing.assert_close(Task("multilabel", "ap").loss(logits, y), want)
