"""A small dataset and recipe that train in a moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from graphs import generator
from torch_geometric.data import Data

from coopsheaf.data.dataset import GraphDataset, NodeDataset
from coopsheaf.data.links import LinkDataset, split_links
from coopsheaf.models.registry import make_settings
from coopsheaf.train.config import TrainConfig
from coopsheaf.train.recipe import Recipe
from coopsheaf.train.run import run_split


def node_dataset(n: int = 40, task: str = "multiclass", splits: int = 2) -> NodeDataset:
    rng = generator(0)
    y = torch.randint(0, 2 if task == "binary" else 3, (n,), generator=rng)
    x = torch.randn(n, 5, generator=rng) + torch.nn.functional.one_hot(y, 5).float()
    edge_index = torch.randint(0, n, (2, 3 * n), generator=rng)
    parts = torch.rand(splits, n, generator=rng)
    target = x.sum(1) if task == "regression" else y
    metric = {"multiclass": "accuracy", "binary": "auroc", "regression": "mae"}[task]
    return NodeDataset(
        "small", x, edge_index, target, parts < 0.5, (parts >= 0.5) & (parts < 0.75), parts >= 0.75,
        task, metric, checksum="abc",
    )  # fmt: skip


def with_edge_features(dataset: NodeDataset) -> NodeDataset:
    attr = torch.randn(dataset.num_edges, 2, generator=generator(5))
    return replace(dataset, edge_attr=attr, edge_names=("amount", "hour"))


def graph_dataset(count: int = 24) -> GraphDataset:
    rng = generator(1)
    graphs = []
    for _ in range(count):
        n = int(torch.randint(3, 8, (1,), generator=rng))
        x = torch.randn(n, 4, generator=rng)
        y = (x.sum(0, keepdim=True)[:, :2] > 0).float()
        graphs.append(Data(x=x, edge_index=torch.randint(0, n, (2, 2 * n), generator=rng), y=y))
    order = torch.arange(count)
    return GraphDataset(
        "small-graphs", graphs, order[: count // 2], order[count // 2 : -6], order[-6:],
        "multilabel", "ap",
    )  # fmt: skip


def recipe(**train: object) -> Recipe:
    options = {"epochs": 12, "lr": 0.02, **train}
    model = make_settings(
        "csnn", hidden_channels=4, num_layers=2, stalk_dim=2, dropout=0.2, norm="batch"
    )
    return Recipe("csnn", model, train=TrainConfig(**options))


def train_in_pieces(folder: Path, threads: int) -> None:
    """A training process that writes its state after every epoch, to be killed."""
    torch.set_num_threads(threads)
    run_split(recipe(epochs=150), node_dataset(), out=folder, resume=True, checkpoint_seconds=0)


def link_dataset(n: int = 40, *, undirected: bool = False, **options: object) -> LinkDataset:
    """Four of every node's next five on a ring are its targets; features say nothing of it."""
    rng = generator(2)
    source = torch.arange(n).repeat_interleave(4)
    step = torch.stack([torch.randperm(5, generator=rng)[:4] + 1 for _ in range(n)]).flatten()
    edges = torch.stack([source, (source + step) % n])
    x = torch.randn(n, 5, generator=rng)
    return split_links(x, edges, undirected=undirected, **options).dataset  # type: ignore[arg-type]
