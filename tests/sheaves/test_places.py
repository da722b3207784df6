"""Places of nodes in a list: right, cleared after use, lent to one at a time."""

from __future__ import annotations

import threading

import pytest
import torch
from allocations import LargestTensor

from coopsheaf import Graph
from coopsheaf.sheaves.places import Places

N = 1000
NODES = torch.tensor([7, 3, 999, 0])


def places() -> Places:
    return Places(N, torch.device("cpu"))


def test_a_list_grows() -> None:
    with places().placing(NODES) as placing:
        assert placing.find(torch.arange(8)).tolist() == [3, -1, -1, 1, -1, -1, -1, 0]
        new = placing.add_new(torch.tensor([5, 3, 5, 1]))
        assert new.tolist() == [1, 5]
        assert placing.nodes.tolist() == [7, 3, 999, 0, 1, 5]
        assert placing.find(placing.nodes).tolist() == [*range(6)]


def test_nothing_is_left_of_a_list() -> None:
    lent = places()
    with lent.placing(NODES) as placing:
        placing.add_new(torch.arange(100))
    with pytest.raises(RuntimeError, match="half-way"), lent.placing(NODES):
        raise RuntimeError("half-way")
    with pytest.raises(ValueError, match="some occur twice"), lent.placing(torch.tensor([1, 1])):
        pass
    with lent.placing(torch.empty(0, dtype=torch.int64)) as placing:
        assert (placing.find(torch.arange(N)) == -1).all()
    assert len(lent._free) == 1


def test_two_at_once_have_an_array_each() -> None:
    lent = places()
    with lent.placing(NODES) as one, lent.placing(NODES.flip(0)) as two:
        assert one.find(NODES).tolist() == [0, 1, 2, 3]
        assert two.find(NODES).tolist() == [3, 2, 1, 0]
    assert len(lent._free) == 2


def test_threads_do_not_disturb_each_other() -> None:
    graph = Graph(torch.randint(N, (2, 5000), generator=torch.Generator().manual_seed(0)), N)
    lists = [torch.randperm(N, generator=torch.Generator().manual_seed(k))[:300] for k in range(8)]
    want = [graph.subgraph(nodes) for nodes in lists]
    wrong: list[int] = []

    def look(k: int) -> None:
        for _ in range(20):
            found = graph.subgraph(lists[k])
            if not torch.equal(found.edge, want[k].edge):
                wrong.append(k)

    threads = [threading.Thread(target=look, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_first_may_come_in_inference_mode() -> None:
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), 3)
    nodes = torch.tensor([0, 1])
    with torch.inference_mode():
        first = graph.subgraph(nodes)
    assert torch.equal(graph.subgraph(nodes).edge, first.edge)


def test_only_the_first_list_costs_an_array_of_all_nodes() -> None:
    lent = places()
    for most in (N, 4):
        with LargestTensor() as seen, lent.placing(NODES) as placing:
            placing.find(NODES)
        assert seen.numel == most, seen.where
