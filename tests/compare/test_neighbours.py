"""What trees see of a graph, against sums written out."""

from __future__ import annotations

from dataclasses import replace

import torch
from compare.tiny import dataset
from torch_geometric.data import Data

from coopsheaf.compare.neighbours import neighbour_columns, plain_columns
from coopsheaf.data.dataset import GraphDataset, NodeDataset

# 0 → 1 twice, 2 → 1, 1 → 0, 3 on its own with a loop.
EDGES = torch.tensor([[0, 0, 2, 1, 3], [1, 1, 1, 0, 3]])
X = torch.tensor([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0], [8.0, 80.0]])
NAN = float("nan")


def graph(**changes: object) -> NodeDataset:
    mask = torch.ones(1, 4, dtype=torch.bool)
    return dataset(4, x=X, edge_index=EDGES, y=torch.tensor([0, 1, 0, 1]), train=mask, val=mask, test=mask, **changes)  # fmt: skip


def test_degrees_and_means_of_both_directions() -> None:
    want = [
        [1, 10, 1, 2, 20, 2, 2, 20],
        [2, 20, 3, 2, 20, 1, 1, 10],
        [4, 40, 0, NAN, NAN, 1, 2, 20],
        [8, 80, 0, NAN, NAN, 0, NAN, NAN],
    ]
    torch.testing.assert_close(neighbour_columns(graph()), torch.tensor(want), equal_nan=True)
    assert torch.equal(plain_columns(graph()), X)


def test_one_direction_is_enough_where_both_are_the_same() -> None:
    both = torch.cat([EDGES, EDGES.flip(0)], dim=1)
    found = neighbour_columns(replace(graph(), edge_index=both))
    assert found.shape == (4, 2 + 1 + 2)
    torch.testing.assert_close(found[2, 2:], torch.tensor([1.0, 2.0, 20.0]))


def test_weights_weigh_and_features_of_edges_are_averaged() -> None:
    weight, attr = torch.tensor([1.0, 2.0, 5.0, 1.0, 9.0]), torch.tensor([[1.0], [2.0], [6.0], [4.0], [7.0]])  # fmt: skip
    found = neighbour_columns(graph(edge_weight=weight, edge_attr=attr))
    # Columns, in-degree, sum of weights, means; the same outwards; features of edges in and out.
    assert found.shape == (4, 2 + 4 + 4 + 2)
    torch.testing.assert_close(found[1, 2:6], torch.tensor([3.0, 8.0, 23 / 8, 230 / 8]))
    torch.testing.assert_close(found[1, -2:], torch.tensor([3.0, 4.0]))


def test_targets_are_not_looked_at() -> None:
    one, other = graph(), replace(graph(), y=torch.tensor([1, 0, 1, 0]))
    torch.testing.assert_close(neighbour_columns(one), neighbour_columns(other), equal_nan=True)


def test_graphs_are_means_over_their_nodes() -> None:
    graphs = [Data(x=X, edge_index=EDGES, y=torch.tensor([[1.0]])), Data(x=X[:1], edge_index=EDGES[:, :0], y=torch.tensor([[0.0]]))]  # fmt: skip
    part = torch.tensor([0, 1])
    many = GraphDataset("many", graphs, part, part, part, "regression", "mae")
    torch.testing.assert_close(plain_columns(many), torch.stack([X.mean(0), X[0]]))
    found = neighbour_columns(many)
    assert found.shape == (2, 8 + 2)
    torch.testing.assert_close(found[0, 2:4], torch.tensor([1.0, 2.0]))  # mean degree and mean
    assert found[:, -2:].tolist() == [[4, 5], [1, 0]]
    assert found[1, 3].isnan()
