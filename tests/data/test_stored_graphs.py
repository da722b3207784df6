"""Graphs over shared arrays are those of a list, each made when it is asked for."""

from __future__ import annotations

import pytest
import torch
from data.test_graph_store import some
from torch import nn
from torch_geometric.data import Data

from coopsheaf.data.dataset import GraphDataset
from coopsheaf.data.stored_graphs import StoredGraphs
from coopsheaf.train.feed import GraphFeed


def stored() -> StoredGraphs:
    return StoredGraphs.of(some().graphs)


def same(one: Data, two: Data) -> bool:
    return one.keys() == two.keys() and all(
        one[key].dtype == two[key].dtype and torch.equal(one[key], two[key])
        for key in one.keys()  # noqa: SIM118
    )


def dataset(graphs: list[Data] | StoredGraphs) -> GraphDataset:
    parts = some()
    return GraphDataset("some", graphs, *parts[1:], task="multilabel", metric="ap")


def test_it_is_the_list() -> None:
    graphs, wanted = stored(), list(some().graphs)
    assert len(graphs) == len(wanted) == 3
    assert all(same(one, two) for one, two in zip(graphs, wanted, strict=True))
    assert same(graphs[-1], wanted[2])
    assert [len(graph.x) for graph in graphs[1:]] == [1, 7]
    for index in (3, -4):
        with pytest.raises(IndexError):
            graphs[index]
    assert StoredGraphs.of(graphs) is graphs


def test_what_is_changed_stays_changed_and_is_seen() -> None:
    graphs = stored()
    data = dataset(graphs)
    assert data.stack("x").shape == (12, 9)
    graphs[1].x = graphs[1].x + 100
    assert graphs[1] is graphs[1]
    assert graphs.whole("x") is None
    assert torch.equal(data.stack("x")[4:5], some().graphs[1].x + 100)
    assert torch.equal(data.stack("x")[5:], some().graphs[2].x)


def test_looking_at_the_sizes_makes_no_graph() -> None:
    graphs = stored()
    data = dataset(graphs)
    assert (data.num_features, data.out_channels) == (9, 10)
    assert (data.edge_channels, data.pe_channels) == (0, 0)
    assert data.counts() == ([4, 1, 7], [6, 0, 12])
    assert graphs.untouched
    assert graphs[0] is graphs.first()


def test_columns_are_given_to_graphs_that_are_there_too() -> None:
    graphs, pe = stored(), torch.rand(12, 2)
    first = graphs[0]
    graphs.put("pe", pe)
    assert torch.equal(first.pe, pe[:4])
    assert torch.equal(graphs[2].pe, pe[5:])
    assert dataset(graphs).pe_channels == 2
    with pytest.raises(ValueError, match="`pe` must have 12 rows; got 11"):
        graphs.put("pe", pe[1:])
    graphs[1].pe = None
    with pytest.raises(ValueError, match="`graphs` must all have `pe` of 2 columns"):
        dataset(graphs)
    bad = stored()
    bad.put("edge_attr", torch.full((18, 2), float("nan")))
    with pytest.raises(ValueError, match="`edge_attr` must"):
        dataset(bad)


@pytest.mark.parametrize("touched", [False, True])
def test_batches_are_those_of_a_list(touched: bool) -> None:
    class Look(nn.Module):
        def forward(self, x, graph, batch, batch_size, edge_attr, pe):  # type: ignore[no-untyped-def]
            seen.append((x, graph.source, graph.target, batch, edge_attr, pe))
            return torch.zeros(batch_size, 10)

    found = []
    for lazy in (True, False):
        graphs: list[Data] | StoredGraphs = stored()
        assert isinstance(graphs, StoredGraphs)
        graphs.put("pe", torch.arange(24.0).view(12, 2))
        graphs.put("edge_attr", torch.arange(18.0).view(18, 1))
        if touched or not lazy:
            made = list(graphs)
            graphs = graphs if lazy else made
        seen: list[tuple[torch.Tensor, ...]] = []
        feed = GraphFeed(
            dataset(graphs), batch_size=2, seed=0, device=torch.device("cpu"), dtype=torch.float32
        )
        targets = [y for _, y in feed.steps(Look(), 0)] + [feed.train_targets()]
        outputs = [feed.outputs(Look(), ("val",))["val"][1]]
        found.append([*(part for row in seen for part in row), *targets, *outputs])
    assert len(found[0]) == len(found[1]) > 12
    assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_counts_must_fit() -> None:
    one = torch.tensor([1])
    for nodes, edges in ((one, torch.tensor([1, 2])), (-one, one), (one, -one)):
        with pytest.raises(ValueError, match="`edges` must"):
            StoredGraphs(nodes, edges, {})
