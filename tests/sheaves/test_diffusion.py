"""The operator of a layer, entry by entry from its equations, on whole graphs and on parts."""

from __future__ import annotations

import pytest
import torch
from graphs import ODD_GRAPHS, generator, random_conformal, random_weight
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import ConformalMaps, FlatSheaf, Graph, out_laplacian
from coopsheaf.sheaves.adjacency import along_edges
from coopsheaf.sheaves.diffusion import (
    SEMANTICS,
    message_diffusion,
    paper_diffusion,
    released_diffusion,
    rescale_missing,
)
from coopsheaf.sheaves.laplacian import NodeMapOperator

EACH_GRAPH = pytest.mark.parametrize("name", ODD_GRAPHS)
D = 2


def step(
    edges: list[tuple[int, int, float]],
    n: int,
    own: list[float],
    norm: list[float],
    source: Tensor,
    target: Tensor,
) -> Tensor:
    """own_i / norm_i on the diagonal, - w TᵢᵀSⱼ / √(norm_i norm_j) for every (receiver i, sender j)."""
    matrix = torch.zeros(n, D, n, D, dtype=torch.float64)
    for i in range(n):
        matrix[i, :, i] += own[i] / norm[i] * torch.eye(D).double()
    for i, j, w in edges:
        matrix[i, :, j] -= w * target[i].T @ source[j] / (norm[i] * norm[j]) ** 0.5
    return matrix.reshape(n * D, n * D)


def equation(
    semantics: str, graph: Graph, source: ConformalMaps, target: ConformalMaps, weight: Tensor
) -> Tensor:
    n, w = graph.num_nodes, weight.tolist()
    pairs = list(zip(graph.target.tolist(), graph.source.tolist(), w, strict=True))
    if semantics == "released":  # gathers at edge_index[0] what comes from edge_index[1]
        pairs = [(j, i, w) for i, j, w in pairs]
    hears = [sum(w for i, _, w in pairs if i == node) for node in range(n)]
    sends = [sum(w for _, j, w in pairs if j == node) for node in range(n)]
    s2, t2 = source.scale.square().tolist(), target.scale.square().tolist()
    out = [degree * scale for degree, scale in zip(sends, s2, strict=True)]
    into = [degree * scale for degree, scale in zip(hears, t2, strict=True)]
    maps = source.to_dense(), target.to_dense()
    if semantics == "messages":
        return step(pairs, n, [0.0] * n, [d + 1 for d in out], *maps)
    outward = step(pairs, n, out, [d + 1 for d in out], *maps)
    inward = step(pairs, n, into, [d + 1 for d in into], *maps)
    if semantics == "paper":
        return inward @ outward
    mixed = [degree * scale for degree, scale in zip(hears, s2, strict=True)]
    return step(pairs, n, mixed, [d + 1 for d in out], *maps) @ inward


@EACH_GRAPH
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_it_is_the_equation(name: str, weighted: bool, semantics: str) -> None:
    n, edges = ODD_GRAPHS[name]
    graph, m = Graph(edges, n), edges.shape[1]
    source, target = random_conformal(n, D), random_conformal(n, D, seed=5)
    weight = random_weight(m) if weighted else None
    operator = SEMANTICS[semantics](graph, source, target, weight)
    ones = torch.ones(m, dtype=torch.float64) if weight is None else weight
    want = equation(semantics, graph, source, target, ones)
    assert_close(operator.to_dense(), want, rtol=1e-12, atol=1e-12)
    x = torch.eye(n * D).double().view(n, D, n * D)
    assert_close(operator.mv(x).flatten(0, 1), want, rtol=1e-12, atol=1e-12)


def test_the_order_of_the_two_steps_matters() -> None:
    n, edges = ODD_GRAPHS["bidirected"]
    source, target = random_conformal(n, D), random_conformal(n, D, seed=5)
    paper, released = (
        make(Graph(edges, n), source, target).to_dense()
        for make in (paper_diffusion, released_diffusion)
    )
    assert not torch.allclose(paper, released)


@EACH_GRAPH
def test_messages_are_the_out_laplacian_without_its_diagonal(name: str) -> None:
    n, edges = ODD_GRAPHS[name]
    source, target = random_conformal(n, D), random_conformal(n, D, seed=5)
    outward = out_laplacian(FlatSheaf(Graph(edges, n), source, target), "augmented")
    got = message_diffusion(Graph(edges, n), source, target).to_dense()
    diagonal = torch.block_diag(*(own * torch.eye(D).double() for own in outward.diagonal))
    assert_close(got, outward.to_dense() - diagonal, rtol=0, atol=1e-14)
    assert_close(got, -along_edges(outward).to_dense(), rtol=0, atol=1e-14)


def test_on_one_way_edges_they_move_in_opposite_directions() -> None:
    graph = Graph(torch.tensor([[0], [1]]), 2)
    source, target = random_conformal(2, D), random_conformal(2, D, seed=5)
    for make, quiet in ((paper_diffusion, (0, 1)), (released_diffusion, (1, 0))):
        blocks = make(graph, source, target).to_dense().view(2, D, 2, D).transpose(1, 2)
        assert not blocks[quiet].any()
        assert blocks[quiet[::-1]].any()


def part_operator(weight: Tensor | None) -> tuple[NodeMapOperator, NodeMapOperator]:
    """An operator on a part of a star-like directed graph, before and after rescaling."""
    # Into 0 come four edges and one leaves it: degrees in and out are never the same.
    graph = Graph(torch.tensor([[1, 2, 3, 4, 0, 1], [0, 0, 0, 0, 1, 2]]), 5)
    whole = None
    if weight is not None:
        from coopsheaf.sheaves.graph import Degrees

        zeros = torch.zeros(5, dtype=weight.dtype)
        whole = Degrees(zeros.index_add(0, graph.target, weight), zeros.index_add(0, graph.source, weight))  # fmt: skip
    part = graph.subgraph(torch.tensor([0, 1, 2]), whole)
    maps = torch.randn(2, 3, D, D, generator=generator(0), dtype=torch.float64)
    here = None if weight is None else weight[part.edge]
    operator = NodeMapOperator(part.graph, torch.ones(3).double(), maps[0], maps[1], here)
    return operator, rescale_missing(operator)


def test_what_is_heard_makes_up_for_the_edges_that_are_missing() -> None:
    before, after = (operator.to_dense() for operator in part_operator(None))
    own = torch.eye(3 * D).double()
    heard_before, heard_after = own - before, own - after
    # Node 0 hears two of its four senders, nodes 1 and 2 all of theirs.
    factor = torch.tensor([2.0, 1.0, 1.0]).double().repeat_interleave(D)
    assert_close(heard_after, factor[:, None] * heard_before)


def test_weights_count_as_much_as_they_weigh() -> None:
    weight = torch.tensor([1.0, 3.0, 2.0, 6.0, 5.0, 7.0]).double()
    before, after = (operator.to_dense() for operator in part_operator(weight))
    own = torch.eye(3 * D).double()
    factor = torch.tensor([12 / 4, 1.0, 1.0]).double().repeat_interleave(D)
    assert_close(own - after, factor[:, None] * (own - before))


def test_a_node_that_hears_nobody_here_stays_finite() -> None:
    graph = Graph(torch.tensor([[1, 0], [0, 2]]), 3).subgraph(torch.tensor([0, 2])).graph
    maps = torch.randn(2, 2, D, D, generator=generator(0), dtype=torch.float64)
    operator = rescale_missing(NodeMapOperator(graph, torch.ones(2).double(), *maps))
    assert torch.equal(operator.left, maps[0])


def test_a_whole_graph_is_left_alone() -> None:
    graph = Graph(torch.tensor([[1, 0], [0, 2]]), 3)
    operator = NodeMapOperator(graph, torch.ones(3), torch.ones(3, 1, 1), torch.ones(3, 1, 1))
    assert rescale_missing(operator) is operator
