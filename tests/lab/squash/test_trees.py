"""Forests: many copies of one tree, numbered level by level."""

from __future__ import annotations

import pytest
import torch

from coopsheaf.data.synthetic import neighbors_match
from lab.squash.trees import EDGES, Forest, Forests


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_a_forest_is_copies_of_the_tree_of_the_data(depth: int) -> None:
    data, forest = neighbors_match(depth), Forest(depth, 3)
    n = data.num_nodes
    assert forest.num_nodes == 3 * n
    assert sorted(forest.place.tolist()) == list(range(3 * n))
    assert forest.place[:3].tolist() == [0, n, 2 * n]  # the roots
    want = {(j + c * n, i + c * n) for c in range(3) for j, i in data.edge_index.T.tolist()}
    found = forest.place[forest.graph("to-root").edge_index]
    assert set(map(tuple, found.T.tolist())) == want
    assert found.shape[1] == len(want)
    leaves = forest.place[forest.up_to(depth - 1) :]
    assert leaves.view(3, -1).tolist() == [(data.leaves + c * n).tolist() for c in range(3)]


def test_the_other_edges() -> None:
    forest = Forest(2, 2)
    up = forest.graph("to-root").edge_index
    down = forest.graph("to-leaves").edge_index
    both = forest.graph("both-ways").edge_index
    assert torch.equal(up.flip(0), down)
    pairs = {(j, i) for j, i in up.T.tolist() if j != i}
    assert {tuple(e) for e in both.T.tolist()} == pairs | {(i, j) for j, i in pairs}
    assert both.shape[1] == 2 * len(pairs)
    assert {len(forest.graph(kind).edge_index[0]) for kind in EDGES} == {26, 24}


def test_children_are_where_the_equation_says() -> None:
    forest = Forest(3, 5)
    for child, parent in forest.graph("to-root").edge_index.T.tolist():
        if child != parent:
            assert child in (2 * parent + 5, 2 * parent + 6)


def test_nothing_is_built_twice() -> None:
    forests = Forests(2)
    assert forests(4) is forests(4)
    assert forests(4).graph("both-ways") is forests(4).graph("both-ways")
    assert forests(3) is not forests(4)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="`depth`"):
        Forest(0, 1)
    with pytest.raises(ValueError, match="`copies`"):
        Forest(2, 0)
    with pytest.raises(ValueError, match="`edges` must be one of"):
        Forest(2, 1).graph("sideways")
    with pytest.raises(ValueError, match=r"`trees` must have shape \(2, 7"):
        Forest(2, 2).flatten(torch.zeros(2, 6, 2))
    assert repr(Forest(2, 4)) == "Forest(depth=2, copies=4)"
