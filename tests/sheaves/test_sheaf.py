"""Sheaves: what they accept, refuse, and how doubled lists are folded."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from graphs import bidirected, generator, graphs, randn, random_conformal, random_orthogonal
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from coopsheaf import (
    ConformalMaps,
    DirectedSheaf,
    FlatSheaf,
    Graph,
    Sheaf,
    out_laplacian,
    sheaf_laplacian,
)

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


@settings(deadline=None, max_examples=40)
@given(graphs(), st.integers(0, 99))
def test_folding_a_doubled_list_gives_the_sheaf_back(graph: Graph, seed: int) -> None:
    """With loops and parallel edges."""
    m = graph.num_edges
    # Parallel edges are paired in order, which only their own direction tells apart.
    graph = Graph(graph.edge_index.sort(dim=0).values, graph.num_nodes)
    maps = randn(m, 2, 2, 2, seed=seed)
    weight = torch.rand(m, generator=generator(seed), dtype=torch.float64)
    sheaf = Sheaf(graph, maps, edge_weight=weight)
    doubled = bidirected(graph.edge_index)
    doubled_maps = torch.cat([maps[:, 0], maps[:, 1]])
    folded = Sheaf.from_bidirected(
        doubled, doubled_maps, graph.num_nodes, edge_weight=weight.repeat(2)
    )
    assert folded.num_edges == m
    assert (folded.graph.source <= folded.graph.target).all()
    assert_close(sheaf_laplacian(folded).to_dense(), sheaf_laplacian(sheaf).to_dense())


def test_folding_does_not_depend_on_the_order_of_a_simple_graph() -> None:
    doubled, maps = bidirected(EDGES), randn(6, 2, 2)
    shuffle = torch.randperm(6, generator=generator(0))
    a = Sheaf.from_bidirected(doubled, maps)
    b = Sheaf.from_bidirected(doubled[:, shuffle], maps[shuffle])
    assert torch.equal(a.edge_index, b.edge_index)
    assert torch.equal(a.maps, b.maps)
    # Edge (0, 1): end 0 carries the map listed at (0, 1), end 1 the one listed at (1, 0).
    assert torch.equal(a.maps[0], torch.stack([maps[0], maps[3]]))


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1, 1], [1, 0, 2]], r"\(1, 2\) is there without its reverse \(2, 1\)"),
        ([[0, 1, 0], [1, 0, 1]], "a parallel edge occurs more often in one direction"),
        ([[0, 1, 2], [1, 0, 2]], r"self-loop twice, once per end; \(2, 2\) occurs 1 times"),
    ],
)
def test_folding_rejects_a_missing_reverse(edges: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sheaf.from_bidirected(torch.tensor(edges), randn(3, 2, 2))


def test_folding_rejects_uneven_weights() -> None:
    weight = torch.arange(6, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"differs between \(0, 1\) and \(1, 0\)"):
        Sheaf.from_bidirected(bidirected(EDGES), randn(6, 2, 2), edge_weight=weight)


def test_a_flat_sheaf_written_out() -> None:
    source, target = randn(3, 2, 2, seed=1), randn(3, 2, 2, seed=2)
    directed = FlatSheaf(EDGES, source, target).to_directed()
    assert torch.equal(directed.source_maps, source[EDGES[0]])
    assert torch.equal(directed.target_maps, target[EDGES[1]])


def test_conformal_maps_are_scale_times_orthogonal() -> None:
    maps = random_conformal(3, 2)
    sheaf = FlatSheaf(EDGES, tuple(maps), tuple(maps))
    assert isinstance(sheaf.source, ConformalMaps)
    assert_close(sheaf.source_maps, maps.scale[:, None, None] * maps.orthogonal)
    gram = sheaf.target_maps.mT @ sheaf.target_maps
    assert_close(gram, maps.scale.square()[:, None, None] * torch.eye(2).double().expand(3, 2, 2))


def test_a_prepared_graph_is_accepted_wherever_edges_are() -> None:
    graph = Graph(EDGES, 3)
    assert Sheaf(graph, randn(3, 2, 1, 1)).graph is graph
    assert DirectedSheaf(graph, randn(3, 1, 1), randn(3, 1, 1)).graph is graph
    assert FlatSheaf(graph, randn(3, 1, 1), randn(3, 1, 1)).graph is graph


def test_copies_and_pickles() -> None:
    sheaf = FlatSheaf(EDGES, random_conformal(3, 2), randn(3, 2, 2))
    for other in (copy.deepcopy(sheaf), pickle.loads(pickle.dumps(sheaf))):
        assert_close(out_laplacian(other).to_dense(), out_laplacian(sheaf).to_dense())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_dtypes_and_dimensions(dtype: torch.dtype, d: int) -> None:
    scale, q = random_conformal(3, d)
    q = random_orthogonal(3, d).to(dtype)
    sheaf = FlatSheaf(EDGES, (scale.to(dtype), q), (scale.to(dtype), q))
    assert sheaf.stalk_dim == d
    for normalization in (None, "augmented", "plain"):
        for candidate in (sheaf, sheaf.to_directed()):
            y = out_laplacian(candidate, normalization).mv(torch.ones(3, d, 2, dtype=dtype))
            assert y.dtype == dtype
            assert torch.isfinite(y).all()


def test_sheaves_are_immutable_and_say_what_they_are() -> None:
    sheaf = Sheaf(EDGES, randn(3, 2, 2, 2), edge_weight=torch.ones(3).double())
    with pytest.raises(AttributeError, match="a Sheaf does not change"):
        sheaf.maps = randn(3, 2, 2, 2)
    assert repr(sheaf) == "Sheaf(num_nodes=3, num_edges=3, stalk_dim=2, weighted)"
    flat = FlatSheaf(EDGES, randn(3, 2, 2), randn(3, 2, 2))
    assert repr(flat) == "FlatSheaf(num_nodes=3, num_edges=3, stalk_dim=2)"
    assert repr(flat.to_directed()) == "DirectedSheaf(num_nodes=3, num_edges=3, stalk_dim=2)"
    wide = Sheaf(EDGES, randn(3, 2, 1, 2))
    assert repr(wide) == "Sheaf(num_nodes=3, num_edges=3, stalk_dim=2, edge_stalk_dim=1)"


A, B = randn(3, 2, 2), randn(3, 2, 2, seed=1)
Q, R = random_conformal(3, 2)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Sheaf(EDGES, A), r"`maps` must have shape \(m, 2, e, d\) with m = 3; got \(3, 2, 2\)"),
        (lambda: Sheaf(EDGES, randn(3, 2, 0, 2)), "stalk dimensions e and d of at least 1"),
        (lambda: Sheaf(EDGES, randn(3, 2, 2, 0)), "stalk dimensions e and d of at least 1"),
        (lambda: Sheaf(EDGES, randn(3, 2, 2, 2).long()), "`maps` must have a floating point dtype"),
        (lambda: Sheaf(EDGES, A.tolist()), "`maps` must be a torch.Tensor; got list"),
        (lambda: Sheaf(EDGES, randn(3, 2, 2, 2), 2), "below the number of nodes, 2; got 2"),
        (lambda: DirectedSheaf(EDGES, A[:2], B), r"`source_maps` must have shape \(m, e, d\) with m = 3"),
        (lambda: DirectedSheaf(EDGES, A, randn(3, 2, 3)), r"must have the same shape; got \(3, 2, 2\) and \(3, 2, 3\)"),
        (lambda: DirectedSheaf(EDGES, A, randn(3, 0, 2)), r"`target_maps` must have shape \(m, e, d\) with stalk dimensions"),
        (lambda: DirectedSheaf(EDGES, A, randn(3, 3, 3)), "must have the same shape; got"),
        (lambda: DirectedSheaf(EDGES, A, B.float()), "same dtype; got torch.float64 and torch.float32"),
        (lambda: DirectedSheaf(EDGES, A, B.to("meta")), "same device; got cpu and meta"),
        (lambda: FlatSheaf(EDGES, randn(5, 3, 2), B), r"`source_maps` must have shape \(n, d, d\).*got \(5, 3, 2\)"),
        (lambda: FlatSheaf(EDGES, A, B[:2]), r"`target_maps` must have shape \(n, d, d\) with n = 3"),
        (lambda: FlatSheaf(EDGES, A, B, 4), r"`source_maps` must have shape \(n, d, d\) with n = 4"),
        (lambda: FlatSheaf(EDGES, A[:2], B[:2]), "below the number of nodes, 2; got 2"),
        (lambda: FlatSheaf(EDGES, (Q, A), (Q, R)), r"`source_maps\[1\]` must hold orthogonal matrices"),
        (lambda: FlatSheaf(EDGES, (Q, R), (Q[:2], R)), r"`target_maps\[0\]` must have shape \(n,\) with n = 3"),
        (lambda: FlatSheaf(EDGES, (Q, R, Q), (Q, R)), r"a tensor or a pair \(scale, orthogonal\)"),
        (lambda: FlatSheaf(EDGES, A, B, edge_weight=torch.ones(2)), r"`edge_weight` must have shape \(m,\) with m = 3"),
        (lambda: FlatSheaf(EDGES, A, B, edge_weight=-torch.ones(3).double()), "not negative .*from -1 to -1"),
        (lambda: FlatSheaf(EDGES, A, B, edge_weight=torch.full((3,), torch.nan).double()), "finite"),
        (lambda: FlatSheaf(EDGES, A, B, edge_weight=torch.ones(3)), "`edge_weight` and `source_maps` must have the same dtype"),
        (lambda: FlatSheaf(EDGES, A, B, edge_weight=torch.full((3,), torch.inf).double()), "finite"),
        (lambda: FlatSheaf(Graph(EDGES).to("meta"), A, B), "`edge_index` and `source_maps` must be on the same device"),
    ],
)  # fmt: skip
def test_bad_input(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
