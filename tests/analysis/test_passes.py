"""Flows of edges: what the dense operator says they are."""

from __future__ import annotations

import pytest
import torch
from analysis.cooperation import block_norms, blocks, maps_of, operator_of, scaled
from graphs import ODD_GRAPHS, bidirected, graphs, path, random_weight
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.analysis.passes import read_passes
from coopsheaf.sheaves.diffusion import SEMANTICS

EACH_SEMANTICS = pytest.mark.parametrize("semantics", SEMANTICS)

# Graphs on which two nodes are joined by one walk of at most two hops: blocks are single walks.
TREES: dict[str, tuple[int, Tensor]] = {
    "path": (5, path(5)),
    "one-way": ODD_GRAPHS["one-way"],
    "star": (5, bidirected(torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]]))),
    "isolated": (6, torch.tensor([[1, 4, 4], [4, 1, 2]])),
    "no-edges": ODD_GRAPHS["no-edges"],
}


def some(n: int, seed: int) -> Tensor:
    """Scales, every third of them 0."""
    scale = 0.2 + 2 * torch.rand(n, generator=torch.Generator().manual_seed(seed)).double()
    scale[seed % 3 :: 3] = 0
    return scale


@EACH_SEMANTICS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", TREES)
def test_on_trees_the_flow_is_the_norm_of_the_block(
    name: str, semantics: str, weighted: bool
) -> None:
    n, edges = TREES[name]
    graph = Graph(edges, n)
    weight = random_weight(graph.num_edges) if weighted else None
    model = scaled(some(n, 1), some(n, 2), semantics=semantics)
    operator = operator_of(model, graph, weight=weight)
    got = read_passes(operator)
    norms = block_norms(operator.to_dense(), n)
    want = norms[got.graph.target, got.graph.source]
    assert_close(got.flow, want, rtol=1e-12, atol=1e-14)
    assert torch.equal(got.flow == 0, want == 0)
    rows = graph.edge_index.flip(0) if semantics == "released" else graph.edge_index
    assert torch.equal(got.graph.edge_index, rows)


@EACH_SEMANTICS
@pytest.mark.parametrize("name", ODD_GRAPHS)
def test_on_all_graphs_it_is_the_norm_of_the_walks_over_one_edge(name: str, semantics: str) -> None:
    n, edges = ODD_GRAPHS[name]
    graph, weight = Graph(edges, n), random_weight(edges.shape[1])
    model = scaled(some(n, 4), some(n, 5), semantics=semantics)
    operator = operator_of(model, graph, weight=weight)
    got = read_passes(operator)
    if semantics == "messages":
        assert got.second is None
        for e, (j, i) in enumerate(graph.edge_index.T.tolist()):
            walk = -weight[e] * operator.left[i].T @ operator.right[j]
            assert_close(got.flow[e], torch.linalg.matrix_norm(walk, ord=2), rtol=1e-12, atol=0)
            assert_close(got.first.edge[e], got.flow[e], rtol=1e-12, atol=0)
        assert (got.first.diagonal == 0).all()
        return
    for e in range(graph.num_edges):
        # Two passes that have this edge alone, and the diagonals of the whole graph.
        j, i = (int(end[e]) for end in (got.graph.source, got.graph.target))
        over = [-weight[e] * step.left[i].T @ step.right[j] for step in (operator.b, operator.a)]
        walks = operator.a.diagonal[i] * over[0] + over[1] * operator.b.diagonal[j]
        assert_close(got.flow[e], torch.linalg.matrix_norm(walks, ord=2), rtol=1e-12, atol=1e-14)
        for step, norms, block in (
            (operator.b, got.first, over[0]),
            (operator.a, got.second, over[1]),
        ):
            assert_close(norms.edge[e], torch.linalg.matrix_norm(block, ord=2), rtol=1e-12, atol=0)
            assert_close(norms.diagonal, step.diagonal)


@EACH_SEMANTICS
@settings(deadline=None, max_examples=30)
@given(graph=graphs(), seed=st.integers(0, 20))
def test_where_nothing_may_flow_the_dense_operator_is_exactly_zero(
    graph: Graph, seed: int, semantics: str
) -> None:
    n = graph.num_nodes
    source, target = maps_of(some(n, seed), seed=1), maps_of(some(n, seed + 1), seed=2)
    operator = SEMANTICS[semantics](graph, source, target, None)
    flow, dense = read_passes(operator), blocks(operator.to_dense(), n)
    silent = (target.scale == 0)[flow.graph.target] | (source.scale == 0)[flow.graph.source]
    assert torch.equal(silent & (flow.flow != 0), torch.zeros_like(silent))
    assert (dense[flow.graph.target[silent], flow.graph.source[silent]] == 0).all()
    assert (dense[target.scale == 0] == 0).all()
    assert (dense[:, source.scale == 0].transpose(0, 1)[:, :] == 0).all()
    if semantics != "released":
        assert (flow.flow[~silent] > 0).all()
