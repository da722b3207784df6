"""What a step and an evaluation see."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from train.small import graph_dataset, node_dataset, with_edge_features

from coopsheaf.data.dataset import PARTS
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.feed import GraphFeed, NodeFeed

CPU = torch.device("cpu")


class Watcher(nn.Module):
    """Gives every node its own number, or every graph its size, and keeps what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Tensor, Graph, Tensor | None]] = []

    def forward(self, x: Tensor, graph: Graph, edge_weight: Tensor | None = None, *, batch: Tensor | None = None, batch_size: int | None = None) -> Tensor:  # fmt: skip
        self.calls.append((x, graph, edge_weight))
        if batch is None:
            return torch.arange(x.shape[0])
        return torch.zeros(batch_size or 1, x.shape[1]).index_add(0, batch, x.float())


def test_a_step_on_one_graph_is_at_the_training_nodes_of_its_split() -> None:
    dataset = node_dataset()
    for split in range(2):
        feed, watcher = NodeFeed(dataset, split, device=CPU, dtype=torch.float64), Watcher()
        ((logits, y),) = feed.steps(watcher, 0)
        assert torch.equal(logits, dataset.train[split].nonzero().flatten())
        assert torch.equal(y, dataset.y[dataset.train[split]])
        assert torch.equal(feed.train_targets(), y)
        for part, (logits, y) in feed.outputs(watcher).items():
            assert torch.equal(logits, getattr(dataset, part)[split].nonzero().flatten())
            assert torch.equal(y, dataset.y[logits])
        assert watcher.calls[0][0].dtype == torch.float64


def test_edge_weights_reach_the_network() -> None:
    dataset = node_dataset()
    weight = torch.arange(dataset.num_edges).float()
    feed = NodeFeed(replace(dataset, edge_weight=weight), 0, device=CPU, dtype=torch.float64)
    watcher = Watcher()
    feed.outputs(watcher)
    _, graph, seen = watcher.calls[0]
    assert torch.equal(graph.edge_index, dataset.edge_index)
    assert torch.equal(seen, weight.double())


def order(seed: int, epoch: int) -> list[float]:
    feed = GraphFeed(graph_dataset(), batch_size=5, seed=seed, device=CPU, dtype=torch.float32)
    return [value for logits, _ in feed.steps(Watcher(), epoch) for value in logits[:, 0].tolist()]


def test_graphs_are_shuffled_anew_from_seed_and_epoch_alone() -> None:
    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)
    assert sorted(order(0, 0)) == sorted(order(1, 3))


def test_every_graph_is_evaluated_once_with_its_own_target() -> None:
    dataset = graph_dataset()
    feed = GraphFeed(dataset, batch_size=5, seed=0, device=CPU, dtype=torch.float32)
    for part, (logits, y) in feed.outputs(Watcher()).items():
        graphs = [dataset.graphs[int(i)] for i in getattr(dataset, part)]
        assert torch.equal(y, torch.cat([graph.y for graph in graphs]))
        torch.testing.assert_close(logits, torch.stack([graph.x.sum(0) for graph in graphs]))
    assert tuple(feed.outputs(Watcher())) == PARTS


class Seen(nn.Module):
    """Keeps the features of edges that it is given."""

    def forward(self, x: Tensor, graph: Graph, edge_attr: Tensor | None = None, **rest: object) -> Tensor:  # fmt: skip
        self.seen = (graph, edge_attr)
        return x


def test_features_of_edges_reach_the_network() -> None:
    data, model = with_edge_features(node_dataset()), Seen()
    NodeFeed(data, 0, device=CPU, dtype=torch.float64).forward(model)
    assert data.edge_attr is not None
    assert torch.equal(model.seen[1], data.edge_attr.double())


def test_features_of_edges_of_many_graphs_reach_the_network() -> None:
    data, model = graph_dataset(), Seen()
    for number, graph in enumerate(data.graphs):
        graph.edge_attr = (graph.edge_index[:1].T + 100 * number).double()
    data = replace(data)
    feed = GraphFeed(data, batch_size=50, seed=0, device=CPU, dtype=torch.float32)
    list(feed.steps(model, 0))
    graph, attr = model.seen
    assert attr.dtype == torch.float32
    own = attr[:, 0] % 100  # the source of every edge, as its own graph counts
    number = (attr[:, 0] // 100).long()
    assert set(number.tolist()) == set(data.train.tolist())
    for one in data.train.tolist():
        here = number == one
        shift = (graph.source[here] - own[here]).unique()
        assert len(shift) == 1, "rows stay with their edges"


class Inputs(nn.Module):
    """Keeps all that it is called with."""

    def forward(self, x: Tensor, graph: Graph, **named: Tensor) -> Tensor:
        self.seen = (x, graph, named)
        return x


def test_a_batch_is_that_of_pyg_with_features_of_edges_and_places() -> None:
    dataset = graph_dataset()
    for number, graph in enumerate(dataset.graphs):
        graph.edge_attr = torch.randn(graph.num_edges, 2)
        graph.pe = torch.full((graph.num_nodes, 3), float(number))
    dataset = replace(dataset)
    feed = GraphFeed(dataset, batch_size=5, seed=0, device=CPU, dtype=torch.float64)
    index, watcher = torch.tensor([7, 2, 11]), Inputs()
    _, y = feed.step(watcher, index)
    wanted = Batch.from_data_list([dataset.graphs[int(i)] for i in index])
    x, graph, named = watcher.seen
    anew = Graph(wanted.edge_index, wanted.num_nodes)
    assert torch.equal(x, wanted.x.double())
    assert torch.equal(y, wanted.y.double())
    assert torch.equal(graph.edge_index, wanted.edge_index)
    assert all(map(torch.equal, graph.by_target, anew.by_target))
    assert all(map(torch.equal, graph.by_source, anew.by_source))
    assert named.pop("batch_size") == 3
    assert set(named) == {"batch", "edge_attr", "pe"}
    assert torch.equal(named["batch"], wanted.batch)
    assert torch.equal(named["edge_attr"], wanted.edge_attr.double())
    assert torch.equal(named["pe"], wanted.pe.double())


def test_graphs_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = GraphFeed(graph_dataset(), batch_size=5, seed=0, device=CPU, dtype=torch.float32)
    list(feed.steps(Watcher(), 0))
    monkeypatch.setattr("coopsheaf.sheaves.graph._sort", None)
    assert len(list(feed.steps(Watcher(), 1))) > 1


def test_graphs_have_places_all_or_none() -> None:
    dataset = graph_dataset()
    dataset.graphs[3].pe = torch.zeros(dataset.graphs[3].num_nodes, 2)
    with pytest.raises(ValueError, match="`pe` of 0 columns, as the first; graph 3 has 2"):
        replace(dataset)
