"""An order of communities: a permutation that brings neighbours together."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from coopsheaf import Graph
from coopsheaf.data import node_order
from coopsheaf.data.communities import heterophilic_communities
from coopsheaf.data.node_order import NodeNumbers, community_order


def grid(side: int) -> Tensor:
    nodes = torch.arange(side * side).view(side, side)
    right = torch.stack([nodes[:, :-1].flatten(), nodes[:, 1:].flatten()])
    down = torch.stack([nodes[:-1].flatten(), nodes[1:].flatten()])
    return torch.cat([right, down], dim=1)


def share_near(edge_index: Tensor, order: Tensor, distance: int) -> float:
    rank = torch.empty_like(order).scatter(0, order, torch.arange(order.numel()))
    ends = rank[edge_index]
    return float(((ends[0] - ends[1]).abs() < distance).double().mean())


@pytest.mark.parametrize("directed", [False, True], ids=["both ways", "directed"])
@pytest.mark.parametrize("kind", ["communities", "grid"])
def test_neighbours_come_together(kind: str, directed: bool) -> None:
    if kind == "grid":
        edges, n = grid(50), 2500
        edges = torch.randperm(n, generator=torch.Generator().manual_seed(0))[edges]
        edges = edges if directed else torch.cat([edges, edges.flip(0)], dim=1)
    else:
        data = heterophilic_communities(4000, 40_000, community=200)
        edges, n = data.edge_index, 4000
        edges = edges[:, edges[0] < edges[1]] if directed else edges
    order = community_order(Graph(edges, n))
    assert torch.equal(order.sort().values, torch.arange(n))
    before, after = (share_near(edges, o, 200) for o in (torch.arange(n), order))
    # Of the communities nine in ten edges stay inside; half of them are nearer than 200 for sure.
    assert before < 0.2
    assert after > 0.7


@pytest.mark.parametrize("n", [1, 2, 17, 40])
@pytest.mark.parametrize("m", [0, 1, 60])
def test_any_graph_has_one(n: int, m: int) -> None:
    edges = torch.randint(n, (2, m), generator=torch.Generator().manual_seed(n))
    order = community_order(Graph(edges, n))
    assert torch.equal(order.sort().values, torch.arange(n))
    assert torch.equal(order, community_order(Graph(edges, n)))


def test_stars_loops_and_strangers() -> None:
    hub = torch.stack([torch.zeros(3000, dtype=torch.int64), torch.arange(3000)])
    order = community_order(Graph(torch.cat([hub, hub[:, :5]], dim=1), 5000))
    assert torch.equal(order.sort().values, torch.arange(5000))


def test_groups_have_room_for_so_many() -> None:
    """A random graph has no communities: without a limit nearly all of it would be one."""
    keys = torch.randint(600 * 600, (6000,), generator=torch.Generator().manual_seed(0))
    keys = torch.cat([keys, keys % 600 * 600 + keys // 600]).unique()
    sides = node_order._neighbours(Graph(torch.stack([keys // 600, keys % 600]), 600))
    assert len(sides) == 1  # it is there both ways: one side says it all
    ones = torch.ones(600, dtype=torch.int64)
    # Nodes of a piece decide at once: they may overfill a group, but hardly.
    largest = [int(node_order._propagate(sides, ones, room).bincount().max()) for room in (50, 600)]
    assert largest[0] < 100
    assert largest[1] > 200


def test_groups_are_joined_by_all_their_edges() -> None:
    edges = torch.tensor([[0, 0, 1, 2, 3, 3, 4], [2, 3, 2, 0, 1, 3, 4]])
    sides = node_order._neighbours(Graph(edges, 5))
    found = node_order._contract(sides, torch.tensor([0, 0, 1, 1, 2]), 3)
    # Between {0, 1} and {2, 3} there are five edges, seen from both ends; 4 has only its loop.
    assert (found.ptr.tolist(), found.other.tolist()) == ([0, 1, 2, 2], [1, 0])
    assert found.weight is not None
    assert found.weight.tolist() == [5, 5]


def test_numbers_are_names() -> None:
    names = NodeNumbers(torch.tensor([30, 4, 0, 12], dtype=torch.int32))
    assert [*names] == ["30", "4", "0", "12"]
    assert (len(names), names[1], names[-1], [*names[1:3]]) == (4, "4", "12", ["4", "0"])
    assert [names.index(name) for name in names] == [0, 1, 2, 3]
    assert "12" in names
    for wrong in ("1", "012", "x", "", "²", "4.0"):
        assert wrong not in names
        with pytest.raises(ValueError, match="is not a number of a node"):
            names.index(wrong)
