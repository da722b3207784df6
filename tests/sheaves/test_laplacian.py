"""Every Laplacian goes through the laws; then what is particular to each."""

from __future__ import annotations

import pytest
import torch
from graphs import (
    ODD_GRAPHS,
    bidirected,
    graphs,
    randn,
    random_directed,
    random_flat,
    random_sheaf,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import DIRECTED, EXACT, FLAT, UNDIRECTED, check_kernels_agree, check_operator, check_sheaf
from torch.testing import assert_close

from coopsheaf import (
    ConformalMaps,
    DirectedSheaf,
    FlatSheaf,
    Graph,
    Sheaf,
    coboundary,
    in_laplacian,
    out_laplacian,
    sheaf_laplacian,
)
from coopsheaf.sheaves.laplacian import EdgeMapOperator, GraphOperator
from coopsheaf.sheaves.operator import Identity

ALL_GRAPHS = pytest.mark.parametrize("name", ODD_GRAPHS)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
SOME = settings(deadline=None, max_examples=25)


def odd(name: str) -> Graph:
    n, edge_index = ODD_GRAPHS[name]
    return Graph(edge_index, n)


@ALL_GRAPHS
@WEIGHTED
@pytest.mark.parametrize("build", UNDIRECTED.values(), ids=UNDIRECTED)
def test_undirected_laws(name: str, weighted: bool, build) -> None:
    check_sheaf(random_sheaf(odd(name), 2, weighted=weighted), build)


@ALL_GRAPHS
@pytest.mark.parametrize("d", [1, 3])
def test_what_a_graph_does_alone(name: str, d: int) -> None:
    """Weights of any sign, the same for every coordinate of the stalks."""
    graph = odd(name)
    n, m = graph.num_nodes, graph.num_edges
    eye = torch.eye(d).double().expand(m, d, d)
    for weight in (None, randn(m)):
        operator = GraphOperator(graph, randn(n), weight, d)
        check_operator(operator)
        blocks = EdgeMapOperator(graph, randn(n), eye, eye, weight)
        assert_close(operator.to_dense(), blocks.to_dense(), **EXACT)


@ALL_GRAPHS
@WEIGHTED
@pytest.mark.parametrize("build", DIRECTED.values(), ids=DIRECTED)
def test_directed_laws(name: str, weighted: bool, build) -> None:
    check_sheaf(random_directed(odd(name), 2, weighted=weighted), build)


@ALL_GRAPHS
@WEIGHTED
@pytest.mark.parametrize("build", FLAT.values(), ids=FLAT)
def test_flat_conformal_laws(name: str, weighted: bool, build) -> None:
    check_sheaf(random_flat(odd(name), 2, weighted=weighted), build)


@ALL_GRAPHS
@pytest.mark.parametrize("build", DIRECTED.values(), ids=DIRECTED)
def test_flat_general_laws(name: str, build) -> None:
    check_sheaf(random_flat(odd(name), 2, conformal=False, weighted=True), build)


@SOME
@given(graphs(), st.integers(1, 4), st.integers(0, 99), st.booleans())
def test_laws_on_any_graph(graph: Graph, d: int, seed: int, weighted: bool) -> None:
    for build in UNDIRECTED.values():
        check_sheaf(random_sheaf(graph, d, weighted=weighted, seed=seed), build, seed)
    for build in DIRECTED.values():
        check_sheaf(random_directed(graph, d, weighted=weighted, seed=seed), build, seed)
    for build in FLAT.values():
        check_sheaf(random_flat(graph, d, weighted=weighted, seed=seed), build, seed)


@SOME
@given(graphs(), st.integers(1, 3), st.integers(0, 99), st.booleans(), st.booleans())
def test_a_flat_sheaf_is_its_directed_sheaf(
    graph: Graph, d: int, seed: int, conformal: bool, weighted: bool
) -> None:
    flat = random_flat(graph, d, conformal=conformal, weighted=weighted, seed=seed)
    for build in DIRECTED.values():
        assert_close(build(flat).to_dense(), build(flat.to_directed()).to_dense(), **EXACT)


@SOME
@given(graphs(), st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_conformal_maps_are_the_maps_they_stand_for(
    graph: Graph, d: int, weighted: bool, seed: int
) -> None:
    flat = random_flat(graph, d, weighted=weighted, seed=seed)
    general = FlatSheaf(graph, flat.source_maps, flat.target_maps, edge_weight=flat.edge_weight)
    for build in DIRECTED.values():
        assert_close(build(flat).to_dense(), build(general).to_dense(), **EXACT)


@SOME
@given(graphs(), st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_undirected_laplacians_are_psd_with_spectrum_up_to_two(
    graph: Graph, d: int, weighted: bool, seed: int
) -> None:
    sheaf = random_sheaf(graph, d, weighted=weighted, seed=seed)
    for name, build in UNDIRECTED.items():
        matrix = build(sheaf).to_dense()
        assert_close(matrix, matrix.T, **EXACT)
        values = torch.linalg.eigvalsh(matrix)
        assert values.min() >= -1e-10
        if name != "sheaf-None":
            assert values.max() <= 2 + 1e-10


@SOME
@given(graphs(), st.integers(1, 3), st.booleans(), st.integers(0, 99))
def test_the_laplacian_is_coboundary_transposed_times_coboundary(
    graph: Graph, d: int, weighted: bool, seed: int
) -> None:
    sheaf = random_sheaf(graph, d, weighted=weighted, seed=seed)
    delta = coboundary(sheaf)
    check_operator(delta)
    check_operator(delta.T)
    assert_close((delta.T @ delta).to_dense(), sheaf_laplacian(sheaf).to_dense(), **EXACT)


def test_an_undirected_self_loop_contributes_the_square_of_its_difference() -> None:
    maps = randn(1, 2, 2, 2)
    laplacian = sheaf_laplacian(Sheaf(torch.tensor([[0], [0]]), maps))
    difference = maps[0, 1] - maps[0, 0]
    assert_close(laplacian.to_dense(), difference.T @ difference, **EXACT)


def test_the_hand_computed_one_way_edge() -> None:
    """Edge 0→1 alone: L_out = [[SᵀS, 0], [-TᵀS, 0]], L_in = [[0, -SᵀT], [0, TᵀT]]."""
    s, t = randn(1, 2, 2, seed=1), randn(1, 2, 2, seed=2)
    sheaf = DirectedSheaf(torch.tensor([[0], [1]]), s, t)
    zero = torch.zeros(2, 2, dtype=torch.float64)
    expected_out = torch.cat(
        [torch.cat([s[0].T @ s[0], zero], 1), torch.cat([-t[0].T @ s[0], zero], 1)]
    )
    expected_in = torch.cat(
        [torch.cat([zero, -s[0].T @ t[0]], 1), torch.cat([zero, t[0].T @ t[0]], 1)]
    )
    assert_close(out_laplacian(sheaf).to_dense(), expected_out, **EXACT)
    assert_close(in_laplacian(sheaf).to_dense(), expected_in, **EXACT)


@SOME
@given(graphs(), st.integers(1, 3))
def test_trivial_directed_sheaves_give_the_degree_laplacians(graph: Graph, d: int) -> None:
    """With identity maps L_out = (D_out - A)ᵀ ⊗ I and L_in = (D_in - A) ⊗ I, A_ij = edges i→j."""
    n = graph.num_nodes
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    adjacency.index_put_((graph.source, graph.target), torch.tensor(1.0).double(), accumulate=True)
    eye = torch.eye(d, dtype=torch.float64)
    flat = FlatSheaf(graph, eye.expand(n, d, d), eye.expand(n, d, d))
    d_out, d_in = torch.diag(adjacency.sum(1)), torch.diag(adjacency.sum(0))
    assert_close(out_laplacian(flat).to_dense(), torch.kron(d_out - adjacency, eye).T, **EXACT)
    assert_close(in_laplacian(flat).to_dense(), torch.kron(d_in - adjacency, eye), **EXACT)


@SOME
@given(graphs(), st.integers(1, 3))
def test_the_trivial_augmented_sheaf_is_gcn(graph: Graph, d: int) -> None:
    """I - Δ = (D + I)^-½ (A + I) (D + I)^-½, without loops or parallel edges."""
    n = graph.num_nodes
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    adjacency[graph.source, graph.target] = 1.0
    adjacency = torch.triu(torch.maximum(adjacency, adjacency.T), 1)
    edge_index = adjacency.nonzero().T
    adjacency = adjacency + adjacency.T
    eye = torch.eye(d, dtype=torch.float64)
    sheaf = Sheaf(edge_index, eye.expand(edge_index.shape[1], 2, d, d), n)
    root = torch.diag((adjacency.sum(1) + 1).rsqrt())
    expected = root @ (adjacency + torch.eye(n, dtype=torch.float64)) @ root
    got = Identity(n, d, dtype=torch.float64) - sheaf_laplacian(sheaf, "augmented")
    assert_close(got.to_dense(), torch.kron(expected, eye), **EXACT)


def test_unit_edge_weights_change_nothing() -> None:
    graph = odd("random-directed")
    ones = torch.ones(graph.num_edges, dtype=torch.float64)
    plain, weighted = random_flat(graph, 3), random_flat(graph, 3)
    weighted = FlatSheaf(graph, weighted.source, weighted.target, edge_weight=ones)
    for build in FLAT.values():
        assert_close(build(weighted).to_dense(), build(plain).to_dense(), **EXACT)


def test_a_whole_weight_is_that_many_parallel_edges() -> None:
    once = torch.tensor([[0, 1, 2], [1, 2, 0]])
    thrice = torch.tensor([[0, 1, 1, 1, 2], [1, 2, 2, 2, 0]])
    maps = ConformalMaps(
        torch.tensor([0.5, 1.0, 2.0]).double(), random_flat(Graph(once), 2).source[1]
    )
    weight = torch.tensor([1.0, 3.0, 1.0]).double()
    a = FlatSheaf(once, maps, maps, edge_weight=weight)
    b = FlatSheaf(thrice, maps, maps)
    for build in FLAT.values():
        assert_close(build(a).to_dense(), build(b).to_dense(), **EXACT)


@pytest.mark.parametrize("normalization", ["augmented", "plain"])
def test_gradients_are_finite_where_maps_vanish(normalization: str) -> None:
    graph = Graph(bidirected(torch.tensor([[0, 1], [1, 2]])), 4)
    for maps in (torch.zeros(4, 2, 2), torch.eye(2).expand(4, 2, 2).clone()):
        maps = maps.double().requires_grad_()
        scale = torch.tensor([0.0, 1.0, 0.0, 1.0]).double().requires_grad_()
        eye = torch.eye(2).double().expand(4, 2, 2)
        x = randn(4, 2, 3)
        for sheaf, leaf in (
            (FlatSheaf(graph, maps, maps), maps),
            (FlatSheaf(graph, (scale, eye), (scale, eye)), scale),
        ):
            for kind in (out_laplacian, in_laplacian):
                y = kind(sheaf, normalization).mv(x)
                (gradient,) = torch.autograd.grad(y.square().sum(), leaf)
                assert torch.isfinite(y).all()
                assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_is_as_near_as_the_dense_product_of_that_precision(
    dtype: torch.dtype,
) -> None:
    """A small multiple of what eager's own dense product loses, measured."""
    graph = Graph(torch.randint(0, 30, (2, 150), generator=torch.Generator().manual_seed(0)), 30)
    exact = random_flat(graph, 3)
    rough = FlatSheaf(
        graph,
        ConformalMaps(*(part.to(dtype) for part in exact.source)),
        ConformalMaps(*(part.to(dtype) for part in exact.target)),
    )
    x = randn(30, 3, 8)
    for build in FLAT.values():
        truth = build(exact).mv(x)
        matrix = build(exact).to_dense().to(dtype)
        dense_error = ((matrix @ x.to(dtype).flatten(0, 1)).view(30, 3, 8).double() - truth).abs()
        got = build(rough).mv(x.to(dtype))
        assert got.dtype == dtype
        assert (got.double() - truth).abs().max() <= 8 * dense_error.max()


def test_second_derivatives_through_the_factored_kernel() -> None:
    graph = odd("random-directed")
    sheaf = random_flat(graph, 2, weighted=True)
    scale, q = sheaf.source

    def energy(x, s, w):
        flat = FlatSheaf(graph, ConformalMaps(s, q), sheaf.target, edge_weight=w)
        return out_laplacian(flat, "augmented").mv(x).square().sum()

    inputs = (randn(9, 2, 1), scale, sheaf.edge_weight)
    inputs = tuple(value.detach().clone().requires_grad_() for value in inputs)
    assert torch.autograd.gradgradcheck(energy, inputs)


def test_the_edgewise_kernel_agrees_on_a_larger_graph() -> None:
    edges = torch.randint(0, 40, (2, 200), generator=torch.Generator().manual_seed(0))
    check_kernels_agree(random_flat(Graph(edges, 40), 4, weighted=True), FLAT["paper"])


def test_errors_name_argument_rule_and_value() -> None:
    flat = random_flat(odd("path"), 2)
    with pytest.raises(
        ValueError, match="`normalization` must be one of 'augmented', 'plain'; got 'sym'"
    ):
        out_laplacian(flat, "sym")
    with pytest.raises(ValueError, match="`sheaf` must be a Sheaf; got FlatSheaf"):
        sheaf_laplacian(flat)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`sheaf` must be a DirectedSheaf or FlatSheaf; got Sheaf"):
        out_laplacian(random_sheaf(odd("path"), 2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`x` must have shape \(5, 2, h\); got \(5, 3, 1\)"):
        out_laplacian(flat).mv(randn(5, 3, 1))
    with pytest.raises(ValueError, match="`x` must have a floating point dtype"):
        out_laplacian(flat).mv(torch.ones(5, 2, 1, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("degree", [300, 5000])
def test_hubs_in_half_precision(dtype: torch.dtype, degree: int) -> None:
    """Weights of 1 are no weights, also where a sum of halves would stop growing."""
    edges = torch.stack([torch.arange(1, degree + 1), torch.zeros(degree, dtype=torch.int64)])
    scale, eye = torch.ones(degree + 1, dtype=dtype), torch.ones(degree + 1, 1, 1, dtype=dtype)
    weight = torch.ones(degree, dtype=dtype)
    plain = FlatSheaf(edges, (scale, eye), (scale, eye))
    weighted = FlatSheaf(edges, (scale, eye), (scale, eye), edge_weight=weight)
    expected = torch.tensor(float(degree)).to(dtype)
    for sheaf in (plain, weighted, weighted.to_directed()):
        assert in_laplacian(sheaf).diagonal.flatten()[0] == expected


def test_autocast_leaves_sheaves_alone() -> None:
    graph = odd("random-directed")
    single = [maps.float() for maps in random_flat(graph, 2).source]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        conformal = FlatSheaf(graph, tuple(single), tuple(single))
        general = FlatSheaf(graph, conformal.source_maps, conformal.target_maps)
        for sheaf in (conformal, general, general.to_directed()):
            for normalization in (None, "augmented", "plain"):
                y = out_laplacian(sheaf, normalization).mv(torch.ones(9, 2, 1))
                assert torch.isfinite(y).all()


def test_no_nodes_at_all() -> None:
    graph = Graph(torch.empty(2, 0, dtype=torch.int64), 0)
    for build in FLAT.values():
        assert build(random_flat(graph, 2)).mv(randn(0, 2, 3)).shape == (0, 2, 3)
    for build in UNDIRECTED.values():
        assert build(random_sheaf(graph, 2)).mv(randn(0, 2, 3)).shape == (0, 2, 3)


def test_an_undirected_graph_is_sorted_once() -> None:
    sheaf = random_sheaf(odd("path"), 2)
    assert sheaf_laplacian(sheaf).graph is sheaf_laplacian(sheaf, "plain").graph
