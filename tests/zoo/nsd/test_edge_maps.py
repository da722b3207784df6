"""Sheaves with maps at the ends of edges: their Laplacians, and what learns the maps."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from coboundaries import (
    adjacency_matrix,
    atlas,
    augmented_matrix,
    laplacian_matrix,
    reverse_of,
    symmetric_weight,
)
from graphs import bidirected, path, randn, random_orthogonal
from laws import EXACT, check_operator
from torch import Tensor
from torch.testing import assert_close

from coopsheaf import Graph
from coopsheaf.zoo.nsd.edge_learners import EdgeLearner
from coopsheaf.zoo.nsd.edge_maps import (
    DiagonalMaps,
    EdgeMaps,
    GeneralMaps,
    IdentityMaps,
    OrthogonalMaps,
    at_reverse,
    make_maps,
    undirected_partners,
)

D = 3
KINDS: dict[str, EdgeMaps] = {
    "diagonal": DiagonalMaps(D),
    "orthogonal": OrthogonalMaps(D),
    "cayley": OrthogonalMaps(D, "cayley"),
    "general": GeneralMaps(D),
    "identity": IdentityMaps(D),
}
ATLAS = atlas()
EACH_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def random_edge_maps(kind: EdgeMaps, m: int, seed: int = 0) -> Tensor:
    return kind.make(torch.tanh(randn(m, kind.num_parameters, seed=seed)))


def test_the_selection_of_graphs_is_large_and_odd() -> None:
    assert len(ATLAS) > 150
    assert {n for n, _ in ATLAS} == set(range(1, 8))
    assert any(edges.shape[1] == 0 for _, edges in ATLAS)


@EACH_KIND
def test_the_laplacian_is_the_square_of_the_coboundary_on_all_small_graphs(kind: EdgeMaps) -> None:
    for seed, (n, edges) in enumerate(ATLAS):
        graph, weight = Graph(edges, n), symmetric_weight(edges) if seed % 2 else None
        maps = random_edge_maps(kind, graph.num_edges, seed)
        want = laplacian_matrix(n, edges, kind.dense(maps), weight)
        x = randn(n, D, 2, seed=seed)
        laplacian = kind.laplacian(maps, graph, weight, None)
        assert_close(laplacian.mv(x).flatten(0, 1), want @ x.flatten(0, 1), **EXACT)
        normalized = kind.laplacian(maps, graph, weight, "augmented")
        want = augmented_matrix(want, n)
        assert_close(normalized.mv(x).flatten(0, 1), want @ x.flatten(0, 1), **EXACT)


@EACH_KIND
def test_spectra_are_those_of_laplacians_on_all_small_graphs(kind: EdgeMaps) -> None:
    """L is positive semi-definite; the augmented Δ has its spectrum in [0, 2)."""
    for seed, (n, edges) in enumerate(ATLAS):
        graph, weight = Graph(edges, n), symmetric_weight(edges) if seed % 2 else None
        maps = 3 * random_edge_maps(kind, graph.num_edges, seed)  # beyond what tanh reaches
        if isinstance(kind, OrthogonalMaps):
            maps = maps / 3
        for normalization in (None, "augmented"):
            matrix = kind.laplacian(maps, graph, weight, normalization).to_dense()
            assert_close(matrix, matrix.T, **EXACT)
            values = torch.linalg.eigvalsh(matrix)
            assert values.min() > -1e-12
            assert normalization is None or values.max() < 2


@EACH_KIND
@pytest.mark.parametrize("normalization", [None, "augmented", "degree"])
def test_they_are_operators(kind: EdgeMaps, normalization: str | None) -> None:
    if normalization == "degree" and isinstance(kind, OrthogonalMaps):
        with pytest.raises(ValueError, match="`normalization` must be 'augmented' or None for"):
            kind.check_normalization(normalization)
        return
    n, edges = ATLAS[-1]
    graph = Graph(edges, n)
    maps = random_edge_maps(kind, graph.num_edges)
    for weight in (None, symmetric_weight(edges)):
        check_operator(kind.laplacian(maps, graph, weight, normalization))


@pytest.mark.parametrize(
    ("kind", "factor"), [(DiagonalMaps(2), 1), (GeneralMaps(2), 2), (IdentityMaps(2), 2)]
)
def test_the_degree_normalisation_divides_by_numbers(kind: EdgeMaps, factor: int) -> None:
    edges = path(4)
    maps = random_edge_maps(kind, edges.shape[1])
    degree = torch.tensor([1.0, 2, 2, 1]).double().repeat_interleave(2)
    root = (factor * degree + 1).rsqrt().diag()
    want = root @ laplacian_matrix(4, edges, kind.dense(maps)) @ root
    assert_close(kind.laplacian(maps, Graph(edges), None, "degree").to_dense(), want, **EXACT)


def test_the_degree_normalisation_does_not_bound_the_spectrum_of_general_maps() -> None:
    """One edge, all entries 1 at one end and -1 at the other: 2 d² / (d + 1)."""
    maps = torch.stack([torch.ones(2, 2), -torch.ones(2, 2)]).double()
    laplacian = GeneralMaps(2).laplacian(maps, Graph(path(2)), None, "degree")
    largest = torch.linalg.eigvalsh(laplacian.to_dense()).max()
    assert_close(largest, torch.tensor(8 / 3, dtype=torch.float64), **EXACT)


@EACH_KIND
def test_no_entry_of_a_normalised_laplacian_exceeds_one(kind: EdgeMaps) -> None:
    """What the released code clamps to [-1, 1] is there already."""
    for seed, (n, edges) in enumerate(ATLAS[::3]):
        graph = Graph(edges, n)
        maps = random_edge_maps(kind, graph.num_edges, seed).sign()  # the largest tanh can give
        if isinstance(kind, OrthogonalMaps):
            maps = random_edge_maps(kind, graph.num_edges, seed)
        choices = [("augmented", 1.0)]
        if isinstance(kind, DiagonalMaps | GeneralMaps):
            choices += [("degree", 1.0), ("augmented", 9.0)]
        for normalization, scale in choices:
            matrix = kind.laplacian(scale * maps, graph, None, normalization).to_dense()
            assert matrix.numel() == 0 or matrix.abs().max() < 1


def test_the_trivial_sheaf_gives_the_adjacency_of_a_gcn() -> None:
    for n, edges in ATLAS[::4]:
        kind, adjacency = IdentityMaps(1), adjacency_matrix(n, edges) + torch.eye(n).double()
        root = adjacency.sum(1).rsqrt().diag()
        delta = kind.laplacian(randn(edges.shape[1], 0), Graph(edges, n), None, "augmented")
        want = root @ adjacency @ root
        assert_close(torch.eye(n).double() - delta.to_dense(), want, **EXACT)


def test_a_constant_sheaf_does_not_see_constants() -> None:
    n, edges = ATLAS[-1]
    for kind, maps in (
        (IdentityMaps(D), randn(edges.shape[1], 0)),
        (DiagonalMaps(D), torch.ones(edges.shape[1], D).double()),
        (GeneralMaps(D), randn(D, D).expand(edges.shape[1], D, D)),
    ):
        x = randn(1, D, 2).expand(n, D, 2)
        laplacian = kind.laplacian(maps, Graph(edges, n), symmetric_weight(edges), None)
        assert_close(laplacian.mv(x), torch.zeros(n, D, 2).double(), **EXACT)


def test_the_kernel_of_a_flat_bundle_has_d_dimensions_per_component() -> None:
    for seed, (n, edges) in enumerate(ATLAS[::4]):
        graph, bundle = Graph(edges, n), random_orthogonal(n, D, seed)
        laplacian = OrthogonalMaps(D).laplacian(bundle[graph.target], graph, None, None)
        v = randn(D, 2, seed=seed)
        assert_close(laplacian.mv(bundle.mT @ v), torch.zeros(n, D, 2).double(), **EXACT)
        components = nx.Graph(edges.T.tolist())
        components.add_nodes_from(range(n))
        zeros = int((torch.linalg.eigvalsh(laplacian.to_dense()) < 1e-9).sum())
        assert zeros == D * nx.number_connected_components(components)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_householder_transports_have_determinant_one(d: int) -> None:
    kind = OrthogonalMaps(d)
    maps, other = (random_edge_maps(kind, 20, seed) for seed in (0, 1))
    ones = torch.ones(20).double()
    assert_close(torch.linalg.det(maps), (-1) ** d * ones, **EXACT)
    assert_close(torch.linalg.det(maps.mT @ other), ones, **EXACT)


def test_gradients_of_the_general_normaliser_are_finite_at_identity_maps() -> None:
    """Where all eigenvalues coincide; tried against finite differences as well."""
    graph = Graph(path(4))
    maps = torch.eye(2).double().repeat(graph.num_edges, 1, 1).requires_grad_()
    x, weights = randn(4, 2, 3), randn(4, 2, 3, seed=1)

    def loss(maps: Tensor) -> Tensor:
        return (GeneralMaps(2).laplacian(maps, graph, None, "augmented").mv(x) * weights).sum()

    (grad,) = torch.autograd.grad(loss(maps), maps)
    assert torch.isfinite(grad).all()
    assert grad.abs().max() > 0.1
    assert torch.autograd.gradcheck(loss, maps)


@EACH_KIND
def test_forward_mode_sees_the_maps(kind: EdgeMaps) -> None:
    n, edges = ATLAS[-1]
    graph, x = Graph(edges, n), randn(n, D, 2)
    p, direction = (randn(edges.shape[1], kind.num_parameters, seed=seed) for seed in (0, 1))
    weights = randn(n, D, 2, seed=2)

    def loss(p: Tensor) -> Tensor:
        operator = kind.laplacian(kind.make(torch.tanh(p)), graph, None, "augmented")
        return (operator.mv(x) * weights).sum() + 0 * p.sum()

    p = p.requires_grad_()
    (grad,) = torch.autograd.grad(loss(p), p)
    _, tangent = torch.func.jvp(loss, (p.detach(),), (direction,))
    assert_close(tangent, (grad * direction).sum(), **EXACT)


# --- what is between maps and edges ---------------------------------------------------------------


def test_values_at_the_reverse_edges() -> None:
    n, edges = ATLAS[-1]
    graph, back = Graph(edges, n), reverse_of(edges)
    values = randn(edges.shape[1], 2).requires_grad_()
    assert torch.equal(at_reverse(values, graph), values[back])
    weights = randn(edges.shape[1], 2, seed=1)
    (grad,) = torch.autograd.grad((at_reverse(values, graph) * weights).sum(), values)
    assert torch.equal(grad, weights[back])
    assert torch.autograd.gradgradcheck(lambda v: at_reverse(v, graph).square(), values)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1, 1], [1, 0, 1]], r"must not hold self-loops: remove them .*; got one at node 1"),
        ([[0, 1, 1], [1, 0, 2]], r"must hold every edge both ways; \(1, 2\) is there without"),
    ],
)
def test_graphs_that_are_not_simple_and_undirected_are_refused(edges, message: str) -> None:
    graph = Graph(torch.tensor(edges), 3)
    with pytest.raises(ValueError, match=message):
        undirected_partners(graph)
    with pytest.raises(ValueError, match=message):
        IdentityMaps(2).laplacian(randn(3, 0), graph, None, None)


def test_parallel_edges_add_up() -> None:
    """Two edges with one map each are one edge more."""
    edges = bidirected(torch.tensor([[0, 0], [1, 1]]))
    laplacian = IdentityMaps(1).laplacian(randn(4, 0), Graph(edges), None, None)
    assert_close(laplacian.to_dense(), torch.tensor([[2.0, -2], [-2, 2]]).double())


def test_a_learner_sees_the_target_first() -> None:
    n, edges = ATLAS[-1]
    torch.manual_seed(0)
    learner, x = EdgeLearner(4, 3).double(), randn(n, 4)
    want = torch.stack([learner.lin(torch.cat([x[int(i)], x[int(j)]])) for j, i in edges.T])
    assert_close(learner(x, Graph(edges, n)), want, **EXACT)
    assert repr(learner) == "EdgeLearner(4, 3)"
    assert learner.bfloat16()(x.bfloat16(), Graph(edges, n)).dtype == torch.float32


def test_kinds_have_names_and_sizes() -> None:
    sizes = {name: make_maps(name, 4).num_parameters for name in ("diagonal", "general")}
    assert sizes == {"diagonal": 4, "general": 16}
    assert make_maps("orthogonal", 4).num_parameters == 6
    assert make_maps("identity", 4).num_parameters == 0
    assert repr(make_maps("orthogonal", 2)) == "OrthogonalMaps(Householder(2))"
    assert repr(make_maps("diagonal", 2)) == "DiagonalMaps(2)"
    with pytest.raises(ValueError, match="`maps` must be one of 'diagonal'"):
        make_maps("diag", 2)
    with pytest.raises(ValueError, match=r"stalk dimension 3; got DiagonalMaps\(2\)"):
        make_maps(DiagonalMaps(2), 3)
    with pytest.raises(ValueError, match="`stalk_dim` must be an integer of at least 2; got 1"):
        OrthogonalMaps(1)
