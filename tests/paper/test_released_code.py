"""How the released code reads a list that holds each edge in one direction only."""

from __future__ import annotations

import torch
from graphs import randn
from paper.networks import influence, network
from paper.operators import EXACT, blocks, depends, random_pair
from torch import Tensor

from coopsheaf import ConformalMaps, Graph
from coopsheaf.nn import MLPLearner, ProjectedSAGELearner
from coopsheaf.sheaves.diffusion import paper_diffusion, released_diffusion


def one_way(n: int) -> Tensor:
    """The path 0 → 1 → ... → n-1."""
    nodes = torch.arange(n - 1)
    return torch.stack([nodes, nodes + 1])


def test_the_two_readings_move_information_in_opposite_directions() -> None:
    """The paper gathers at ``edge_index[1]``, the released code at ``edge_index[0]``."""
    graph, maps = Graph(one_way(4)), random_pair(4, 2)
    # Inner nodes have edges on both sides; the ends lack the degree for some of the blocks.
    along, against = (
        depends(paper_diffusion(graph, *maps)),
        depends(released_diffusion(graph, *maps)),
    )
    assert torch.equal(along, along.tril())
    assert along[2, 0]
    assert along[2, 1]
    assert torch.equal(against, against.triu())
    assert against[1, 2]
    assert against[1, 3]


def test_released_diagonal_can_exceed_one() -> None:
    """Step two counts rows but normalises by columns: r_i s_i² / (c_i s_i² + 1), here 5 / 1."""
    star = Graph(torch.tensor([[0] * 5, [1, 2, 3, 4, 5]]), 6)
    ones = torch.ones(6, dtype=torch.float64)
    maps = ConformalMaps(ones, torch.eye(2, dtype=torch.float64).repeat(6, 1, 1))
    centre = blocks(released_diffusion(star, maps, maps))[0, 0]
    expected = 5.0 * (5 / 6) * torch.eye(2, dtype=torch.float64)
    torch.testing.assert_close(centre, expected, **EXACT)
    assert blocks(paper_diffusion(star, maps, maps)).abs().max() < 1


def reach(
    learner: object, num_layers: int, semantics: str, edge_index: Tensor, node: int
) -> Tensor:
    """Which nodes influence ``node``, ``(n,)``, for at least one of five draws of features."""
    model, n = network(learner, num_layers, semantics=semantics), int(edge_index.max()) + 1
    draws = [influence(model, randn(n, 3, seed=k), edge_index, node) for k in range(5)]
    return (torch.stack(draws) > 0).any(0)


def test_released_learners_look_the_other_way() -> None:
    """GraphSAGE gathers at ``edge_index[1]`` in both readings: with, or against, the diffusion."""
    learner, edge_index = ProjectedSAGELearner(16, 1), one_way(8)
    along = reach(learner, 1, "paper", edge_index, 4)
    assert along.nonzero().flatten().tolist() == [1, 2, 3, 4]  # two hops, and the learner's one
    against = reach(learner, 1, "released", edge_index, 4)
    assert against.nonzero().flatten().tolist() == [3, 4, 5, 6]


# A binary tree, each child pointing at its parent, with self-loops.
TREE = torch.tensor([[1, 2, 3, 4, 5, 6, *range(7)], [0, 0, 1, 1, 2, 2, *range(7)]])


def test_leaves_reach_the_root_of_a_tree_only_through_the_learners() -> None:
    """Gathering at the child, the root's row of the operator holds nothing but its self-loop."""
    graph, maps = Graph(TREE), random_pair(7, 2)
    against = depends(released_diffusion(graph, *maps))[0]
    assert against.nonzero().flatten().tolist() == [0]
    assert depends(paper_diffusion(graph, *maps))[0].all()

    local = reach(MLPLearner(16), 2, "released", TREE, 0)
    assert local.nonzero().flatten().tolist() == [0]
    assert reach(ProjectedSAGELearner(16, 2), 2, "released", TREE, 0).all()
